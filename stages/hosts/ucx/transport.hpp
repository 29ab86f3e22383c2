#pragma once
// Messages and frames between two processes by UCX (UCP active messages). The one folder that includes ucp
// headers. One thread makes it, uses it and destroys it; wake() alone may be called from any.
//
// A peer that sends without a limit is closed: see trust(), transport_options::allowance and progress_all().
//
// A connection has a number for life. closed() is told once, and nothing of that connection comes after it,
// but for the ends of frames: frame_received() and frame_sent() come once for each frame that was begun, also
// when it failed. Until then its memory is the transport's: a buffer is used again only behind that call.
// close() is forced: it doesn't wait for the other side, so a silent one costs nothing.
// Callbacks come from within progress() and the send calls.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/types.hpp"

namespace carousel::hosts {

struct transport_options {
    std::string address;             ///< numeric, of this host: only the device that has it is used
    std::string transports = "tcp";  ///< UCX_TLS
    u16 first_port = 0;              ///< of 64 for the connections' data (UCX_TCP_PORT_RANGE); 0: any
    bool gpu_memory = false;         ///< frames to send lie in memory of the GPU that the thread is bound to
    u64 first_message_bytes = 4096;  ///< the longest message of a peer that is not trusted
    u64 message_bytes = 65536;       ///< the longest message of one that is
    /// Bytes that the process may allocate by malloc() while the transport exists. Beyond them some peer
    /// makes UCX assemble a message that no plan allows (memory_watch.hpp).
    u64 allowance = ~u64{0} >> 1U;
};

/// What a link's process allocates apart from frames: UCX takes 2 MiB, a decompressor up to 5 MiB.
inline constexpr u64 usual_allowance = 16U << 20U;

class transport {
public:
    class events {
    public:
        virtual ~events() = default;
        virtual void accepted(u32 connection) = 0;
        virtual void closed(u32 connection, const std::string& why) = 0;
        /// The peer has sent what the limits forbid; closed() follows.
        virtual void broke_limits(u32, const std::string&) {}
        virtual void message_received(u32 connection, std::span<const std::byte> bytes) = 0;
        /// Where to put a frame's bytes, or null: nowhere. `ticket` comes back with frame_received().
        virtual std::byte* frame_begins(u32 connection, std::span<const std::byte> header, u64 bytes,
                                        u64& ticket) = 0;
        virtual void frame_received(u64 ticket, bool whole) = 0;
        virtual void frame_sent(u32 connection, u64 ring_sequence) = 0;
    };

    /// Throws config_error: no device has the address, or has it as its first; or UCX can't be set up on it,
    /// or reaches no GPU's memory and is to.
    transport(events& to, const transport_options& how);
    ~transport();
    transport(const transport&) = delete;
    transport& operator=(const transport&) = delete;

    /// Takes connections on the options' address. False: the port is in use. Throws config_error.
    [[nodiscard]] bool listen(u16 port);
    /// `connection`: a number that the caller chooses, once.
    void connect(u32 connection, const std::string& address, u16 port);
    void send(u32 connection, const std::vector<std::byte>& bytes);
    /// `data` must stay until frame_sent().
    void send_frame(u32 connection, const std::vector<std::byte>& header, const std::byte* data, u64 bytes,
                    u64 ring_sequence);
    void close(u32 connection);
    /// The peer has proved that it knows the token. Before that it may send messages up to
    /// `first_message_bytes`, and no frames. Unknown connections are ignored.
    void trust(u32 connection);

    /// True: something happened.
    bool progress();
    /// Progresses until nothing is left to do, for up to 1 ms: a peer that sends without end must not keep
    /// the calling thread from its clocks. Closes peers that exceed the allowance.
    void progress_all();
    /// Until something happens, wake(), or the time is over.
    void wait(u64 at_most_ns);
    void wake() noexcept;

private:
    class implementation;
    std::unique_ptr<implementation> me_;
};

/// UCX's settings for one link on that network device. They go into UCX's own configuration, not into the
/// environment, which other threads of the process may be reading.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> ucx_settings(const transport_options& how,
                                                                            const std::string& device);
/// UCX reads some of its settings when it is loaded: the program starts itself once more with them. First
/// thing in main().
void set_ucx_environment(char** argv);
/// "UCX 1.13.1".
[[nodiscard]] std::string ucx_version();
/// What UCX this is: {"version", "cuda": whether it reaches a GPU's memory here, or null, "set": the settings
/// that these programs make, with values that are the same for all links}. It looks for devices of every
/// kind, so it is for a process that may hang.
[[nodiscard]] std::string ucx_json();

}  // namespace carousel::hosts
