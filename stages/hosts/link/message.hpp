#pragma once
// What two hosts say to each other over a link, as bytes: little-endian, each text behind its length. The
// side that sends frames connects, the one that receives them listens.
//
//   sending side                                   receiving side
//   HELLO {who, of what format, oldest frame, nonce}  ->
//                                                  <-  PROOF {nonce, proof}
//   PROOF {proof}                                     ->
//                                                  <-  WELCOME {committed, next, window}, or REFUSE {why}
//   FRAME {epoch, sequence, hash, ...} + bytes        ->
//                                                  <-  ACK {committed, durable}
//   PING {time}, PONG {time}                       <->
//   END {sequence}                                    ->
//                                                  <-  BYE {why}
//
// A HELLO begins with the version, in every version, and is read that far whatever follows. Who receives a
// HELLO of another version answers with one of its own, and both can name the difference.
//
// decode() takes anything: it reads within its bytes, knows each length, and returns nothing for what is no
// message of this version.

#include <array>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/types.hpp"
#include "shm/frame_header.hpp"

namespace carousel::hosts {

inline constexpr u32 link_version = 4;
inline constexpr u32 longest_text = 16384;     ///< of one text in a message
inline constexpr u32 longest_message = 65536;  ///< a longer one is none
inline constexpr u32 most_bytes = 1024;        ///< of a frame's parameters, and of its metadata
static_assert(most_bytes >= shm::max_metadata_bytes && most_bytes >= shm::max_parameter_bytes);

using nonce = std::array<u8, 32>;
using proof = std::array<u8, 32>;
using message_bytes = std::vector<std::byte>;

/// What a link's frames are. Of work for another host the numbers are those of the ring there, which the
/// frames go through and come back from: the near end of both links remembers nothing and has no ring.
enum class link_kind : u8 {
    ring,     ///< a ring goes on: its numbers are the same on both hosts
    work,     ///< frames that are to be worked on: whoever sends goes on at the receiver's next number
    answers,  ///< what was made of them: whoever receives takes what comes
};

struct hello {
    u32 version = link_version;
    std::string run;         ///< which run, and which pipeline, sends
    std::string pipeline;    ///< for sentences
    std::string ring;        ///< whose frames: the stage in front of the sender
    std::string format;      ///< ring::frame_format::to_json()
    u64 payload_bytes = 0;   ///< of each frame
    std::string parameters;  ///< type of the pipeline's parameters; "": none
    u32 parameter_bytes = 0;
    u64 epoch = 0;      ///< grows with each connection of each process of this sender
    u64 oldest = 0;     ///< the first frame that the sender has still
    u64 begins = 0;     ///< where its rings begin; above 0: in the middle of a stream
    u8 packed = 0;      ///< a `packing` that its frames may come in
    u8 by_durable = 0;  ///< 1: it keeps a frame until the receiver's sinks have it on disk
    u8 kind = 0;        ///< a link_kind, the same at both ends
    nonce fresh{};
    bool operator==(const hello&) const = default;
};
struct proof_message {
    nonce fresh{};  ///< of who says it
    proof of_token{};
    u64 sent_ns = 0;  ///< by the receiving side's clock, which gets it back: a first PING
    u64 here_ns = 0;  ///< by the sending side's clock, and its PONG
    bool operator==(const proof_message&) const = default;
};
struct welcome {
    std::string run;    ///< the receiver's
    u64 committed = 0;  ///< every frame below is committed there
    u64 durable = 0;    ///< every frame below is in the files of each sink there
    u64 next = 0;       ///< the first that is not there whole
    u32 window = 1;     ///< so many may be under way without an acknowledgement
    bool operator==(const welcome&) const = default;
};
struct refuse {
    std::string why;
    bool operator==(const refuse&) const = default;
};
/// How a frame's bytes cross the link.
enum class packing : u8 { none, lz4, zstd };
/// Which of a frame's planes are used in part, and how far: a row of extents a bit that is set.
struct used_planes {
    u32 planes = 0;
    std::array<std::array<u64, shm::max_plane_rank>, shm::max_used_planes> of{};
    bool operator==(const used_planes&) const = default;
};
/// In front of a frame's bytes.
struct frame_message {
    u64 epoch = 0, ring_sequence = 0;
    u64 hash = 0, bytes = 0;  ///< of what the frame is in the rings on both hosts
    u64 packed_bytes = 0;     ///< that cross the link; as `bytes` where it is not packed
    u8 packed = 0;            ///< a `packing`
    u64 born_ns = 0;          ///< by the clock of the host that sends, as the next one
    u64 capture_ns = 0;
    u8 clock = 0;  ///< a shm::capture_clock: whether capture_ns is of that clock
    f64 time_s = 0;
    u64 frame_number = 0;  ///< what its stages call it, where `ring_sequence` is its place on this link
    u64 parameter_number = 0;
    std::vector<std::byte> parameters;
    std::vector<std::byte> metadata;  ///< entries as in a frame's header (ring/metadata.hpp)
    used_planes used;
    std::string tombstone_reason;  ///< not empty: it was given up, and has no bytes
    bool operator==(const frame_message&) const = default;
};
struct ack {
    u64 committed = 0, durable = 0;
    bool operator==(const ack&) const = default;
};
struct ping {
    u64 sent_ns = 0;
    bool operator==(const ping&) const = default;
};
struct pong {
    u64 sent_ns = 0;  ///< of the ping
    u64 here_ns = 0;  ///< by the clock of who answers
    bool operator==(const pong&) const = default;
};
struct stream_end {
    u64 ring_sequence = 0;  ///< the first that will not exist
    bool operator==(const stream_end&) const = default;
};
struct bye {
    std::string why;
    bool operator==(const bye&) const = default;
};

using message =
    std::variant<hello, proof_message, welcome, refuse, frame_message, ack, ping, pong, stream_end, bye>;

[[nodiscard]] message_bytes encode(const message& m);
[[nodiscard]] std::optional<message> decode(std::span<const std::byte> bytes);

}  // namespace carousel::hosts
