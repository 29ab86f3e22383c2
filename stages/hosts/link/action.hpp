#pragma once
// What a side of a link wants done by its transport, and the clocks of both sides. The sides themselves
// (sending_side, receiving_side) touch no socket, no thread and no clock: they are told what happened and
// when.

#include <vector>

#include "core/clock.hpp"
#include "stages/hosts/link/message.hpp"

namespace carousel::hosts {

struct action {
    enum class what : u8 { connect, send, send_frame, close };
    what kind = what::send;
    u32 connection = 0;     ///< named by who sends when it connects, by the transport when it accepts
    message_bytes bytes{};  ///< send: a message; send_frame: what stands in front of the frame's bytes
    u64 ring_sequence = 0;  ///< send_frame
};
using actions = std::vector<action>;

/// UCX sees neither a silent link nor a stopped peer, so both sides ask and listen themselves.
inline constexpr u64 ping_every_ns = 250 * ns_per_ms;
/// The first few of a connection follow each other sooner, for the clocks' sake.
inline constexpr u64 first_pings = 8, first_ping_every_ns = 20 * ns_per_ms;
[[nodiscard]] constexpr u64 ping_rest_ns(u64 answers) noexcept {
    return answers < first_pings ? first_ping_every_ns : ping_every_ns;
}
inline constexpr u64 dead_after_ns = 1000 * ns_per_ms;
/// from the first packet to the WELCOME
inline constexpr u64 handshake_ns = 2000 * ns_per_ms;
/// Another build must be installed there first.
inline constexpr u64 other_version_rest_ns = 2000 * ns_per_ms;
inline constexpr u64 shortest_rest_ns = 20 * ns_per_ms, longest_rest_ns = 320 * ns_per_ms;
/// Frames of a durable link; in_flight of a sending stage is no more.
inline constexpr u64 most_durable_under_way = 16;

}  // namespace carousel::hosts
