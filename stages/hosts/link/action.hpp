#pragma once
// Actions that a side of a link requests from its transport, and the timing constants of both sides. The
// sides (sending_side, receiving_side) use no socket, no thread and no clock: their callers pass events and
// times to them.

#include <vector>

#include "core/clock.hpp"
#include "stages/hosts/link/message.hpp"

namespace carousel::hosts {

struct action {
    enum class what : u8 { connect, send, send_frame, close };
    what kind = what::send;
    u32 connection = 0;     ///< number of the connection: assigned by the sender when the sender connects, by
                            ///< the transport when the transport accepts a connection
    message_bytes bytes{};  ///< for the action send: a message; for send_frame: the header that precedes the
                            ///< frame's bytes
    u64 ring_sequence = 0;  ///< send_frame
};
using actions = std::vector<action>;

/// UCX detects neither a silent link nor a stopped peer, so both sides send pings and detect this themselves.
inline constexpr u64 ping_every_ns = 250 * ns_per_ms;
/// The first pings of a connection are more frequent, to measure the clocks.
inline constexpr u64 first_pings = 8, first_ping_every_ns = 20 * ns_per_ms;
[[nodiscard]] constexpr u64 ping_rest_ns(u64 answers) noexcept {
    return answers < first_pings ? first_ping_every_ns : ping_every_ns;
}
inline constexpr u64 dead_after_ns = 1000 * ns_per_ms;
/// longest permitted time from the first packet to the WELCOME
inline constexpr u64 handshake_ns = 2000 * ns_per_ms;
/// delay before a retry if the two hosts have different builds: one of the builds must be replaced first
inline constexpr u64 other_version_rest_ns = 2000 * ns_per_ms;
inline constexpr u64 shortest_rest_ns = 20 * ns_per_ms, longest_rest_ns = 320 * ns_per_ms;
/// Number of frames in flight on a durable link; equal to the maximum of the key in_flight of a sending
/// stage.
inline constexpr u64 most_durable_under_way = 16;

}  // namespace carousel::hosts
