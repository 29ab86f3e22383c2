#pragma once
// Messages of two hosts over a link, as bytes: little-endian, each text preceded by its length. The side that
// sends frames connects, the side that receives them listens.
//   sending side                                      receiving side
//   HELLO {run, format, oldest frame, nonce, ...}     ->
//                                                  <-  PROOF {nonce, proof}
//   PROOF {proof}                                     ->
//                                                  <-  WELCOME {committed, next, window}, or REFUSE {why}
//   FRAME {epoch, sequence, hash, ...} + bytes        ->
//                                                  <-  ACK {committed, durable}
//   PING {time}, PONG {time}                       <->
//   END {sequence}                                    ->
//                                                  <-  BYE {why}
// A HELLO of any version begins with its version number, which is read even if the rest cannot be decoded.
// A side that receives a HELLO of another version replies with a HELLO of its own version, so that both sides
// can report the difference.
// decode() accepts any bytes: it never reads beyond them, checks each length, and returns nothing for bytes
// that are not a message of this version.

#include <array>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/types.hpp"
#include "shm/frame_header.hpp"

namespace carousel::hosts {

inline constexpr u32 link_version = 5;
inline constexpr u32 longest_text = 16384;     ///< limit for one text in a message
inline constexpr u32 longest_message = 65536;  ///< longer messages are invalid
inline constexpr u32 most_bytes = 1024;        ///< limit for a frame's parameters, and for its metadata
static_assert(most_bytes >= shm::max_metadata_bytes && most_bytes >= shm::max_parameter_bytes);

using nonce = std::array<u8, 32>;
using proof = std::array<u8, 32>;
using message_bytes = std::vector<std::byte>;

/// Meaning of a link's frames. Work that is sent to another host passes through a ring on that host, and the
/// frames of the work have the numbers of this ring. On the requesting host, the ends of both links store
/// nothing and have no ring.
enum class link_kind : u8 {
    ring,     ///< continues a ring, with the same numbers on both hosts
    work,     ///< frames to be processed: each sender continues at the receiver's next number
    answers,  ///< results of such work: the receiver accepts every frame that arrives
};

struct hello {
    u32 version = link_version;
    std::string run;         ///< run id of the sending run
    std::string pipeline;    ///< name of the sending run's pipeline, for messages
    std::string ring;        ///< the ring that the frames come from: the name of the stage before the sender
    std::string format;      ///< ring::frame_format::to_json()
    u64 payload_bytes = 0;   ///< per frame
    std::string parameters;  ///< type of the pipeline's parameters; "": none
    u32 parameter_bytes = 0;
    u64 epoch = 0;   ///< increases with each connection, whichever process of this sender opens it
    u64 oldest = 0;  ///< the first frame that the sender still has
    u64 begins = 0;  ///< number of the first frame in the sending run's rings; above 0 if that run started in
                     ///< the middle of a stream
    u8 packed = 0;   ///< a `packing`: the compression that the sender may use for its frames
    u8 by_durable = 0;  ///< above 0 if the sender keeps each frame until the receiver's sinks have the frame
                        ///< on disk: the number of frames that it can keep
    u8 kind = 0;        ///< a link_kind, equal at both ends
    nonce fresh{};
    bool operator==(const hello&) const = default;
};
struct proof_message {
    nonce fresh{};  ///< nonce of the side that sends this message
    proof of_token{};
    u64 sent_ns = 0;  ///< time on the receiving side's clock; the sender returns it, so it serves as a first
                      ///< PING
    u64 here_ns = 0;  ///< time on the sending side's clock; serves as the PONG
    bool operator==(const proof_message&) const = default;
};
struct welcome {
    std::string run;    ///< run id of the receiver
    u64 committed = 0;  ///< all frames below this number are committed on the receiving host
    u64 durable = 0;    ///< all frames below this number are in the files of every sink on the receiving host
    u64 next = 0;       ///< the first frame that is not complete on the receiving host
    u32 window = 1;     ///< number of frames that may be in flight without an acknowledgement
    bool operator==(const welcome&) const = default;
};
struct refuse {
    std::string why;
    bool operator==(const refuse&) const = default;
};
/// Encoding of a frame's bytes on the link.
enum class packing : u8 { none, lz4, zstd };
/// Used extents of those planes of which the frame uses only a part: one row of extents for each bit that is
/// set in `planes`.
struct used_planes {
    u32 planes = 0;
    std::array<std::array<u64, shm::max_plane_rank>, shm::max_used_planes> of{};
    bool operator==(const used_planes&) const = default;
};
/// Header before a frame's bytes.
struct frame_message {
    u64 epoch = 0, ring_sequence = 0;
    u64 hash = 0, bytes = 0;  ///< hash and size of the frame in the rings of both hosts
    u64 packed_bytes = 0;     ///< number of bytes that are sent over the link; equal to `bytes` if the frame
                              ///< is not packed
    u8 packed = 0;            ///< a `packing`
    u64 born_ns = 0;          ///< time on the sending host's clock, like capture_ns
    u64 capture_ns = 0;
    u8 clock = 0;  ///< a shm::capture_clock; determines whether capture_ns is on the sending host's clock
    f64 time_s = 0;
    u64 frame_number = 0;  ///< the frame number that stages see; `ring_sequence` is the frame's position on
                           ///< this link
    u64 parameter_number = 0;
    std::vector<std::byte> parameters;
    std::vector<std::byte> metadata;  ///< entries as in a frame's header (frame/metadata.hpp)
    used_planes used;
    std::string tombstone_reason;  ///< not empty: the frame was abandoned, and has no bytes
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
    u64 here_ns = 0;  ///< time of the reply, on the clock of the side that replies
    bool operator==(const pong&) const = default;
};
struct stream_end {
    u64 ring_sequence = 0;  ///< number of the frame before which the stream ends
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

// The shared secret of both ends of a link: a file that only its owner can read (mode 0600). The secret is
// never sent over the link; each side proves knowledge of it with an HMAC-SHA256 over both nonces and the
// hello. This is not encryption, and messages after the WELCOME have no proof: an attacker that can change
// packets in transit can change frames.

enum class side : u8 { sending = 1, receiving = 2 };

class token_file {
public:
    token_file() = default;
    explicit token_file(std::string secret) : secret_(std::move(secret)) {}
    /// Throws config_error if the file does not exist, belongs to another user, can be read by others, or has
    /// fewer than 16 bytes.
    [[nodiscard]] static token_file read(const std::string& path);

    [[nodiscard]] proof prove(side prover, const hello& h, const nonce& of_receiver) const;
    /// The time that this comparison takes does not depend on the secret.
    [[nodiscard]] bool fits(const proof& given, side prover, const hello& h, const nonce& of_receiver) const;

private:
    std::string secret_;
};

}  // namespace carousel::hosts
