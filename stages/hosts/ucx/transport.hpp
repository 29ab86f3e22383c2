#pragma once
// Messages and frames between two processes over UCX (UCP active messages). Only this folder includes ucp
// headers. A transport is created, used and destroyed by one thread; only wake() may be called from any
// thread.
//
// A peer that sends without a limit is disconnected: see trust(), transport_options::allowance and
// progress_all().
//
// The number of a connection does not change. closed() is called once per connection. After closed(), the
// only events of the connection are the ends of frames: for each frame that was begun, frame_received() or
// frame_sent() is called once, even after a failure. Until that call the frame's memory belongs to the
// transport: reuse a buffer only after the call. close() is forced: it does not wait for the peer, so a
// silent peer causes no delay. Callbacks are called from within progress() and the send calls.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/types.hpp"

namespace carousel::hosts {

struct transport_options {
    std::string address;             ///< numeric address of this host; only the network device that has this
                                     ///< address is used
    std::string transports = "tcp";  ///< UCX_TLS
    u16 first_port = 0;       ///< first of 64 ports for the connections' data (UCX_TCP_PORT_RANGE); 0: any
    bool gpu_memory = false;  ///< true if the frames to be sent are in the memory of the thread's current GPU
    u64 first_message_bytes = 4096;  ///< longest message of an untrusted peer
    u64 message_bytes = 65536;       ///< longest message of a trusted peer
    /// Bytes that the process may allocate by malloc() while the transport exists. If the process allocates
    /// more, a peer has made UCX assemble a message that is not permitted (implementation.hpp).
    u64 allowance = ~u64{0} >> 1U;
};

/// Allocations of a link's process in addition to its frames: UCX takes 2 MiB, a decompressor up to 5 MiB.
inline constexpr u64 usual_allowance = 16U << 20U;

class transport {
public:
    class events {
    public:
        virtual ~events() = default;
        virtual void accepted(u32 connection) = 0;
        virtual void closed(u32 connection, const std::string& why) = 0;
        /// Called if the peer has exceeded the limits; closed() is called next.
        virtual void broke_limits(u32, const std::string&) {}
        virtual void message_received(u32 connection, std::span<const std::byte> bytes) = 0;
        /// Returns the destination for a frame's bytes, or null to discard them. `ticket` is passed to
        /// frame_received().
        virtual std::byte* frame_begins(u32 connection, std::span<const std::byte> header, u64 bytes,
                                        u64& ticket) = 0;
        virtual void frame_received(u64 ticket, bool whole) = 0;
        virtual void frame_sent(u32 connection, u64 ring_sequence) = 0;
    };

    /// Throws config_error if no device has this address as its first address, if UCX cannot be set up on the
    /// device, or if access to GPU memory is required and UCX does not have it.
    transport(events& to, const transport_options& how);
    ~transport();
    transport(const transport&) = delete;
    transport& operator=(const transport&) = delete;

    /// Accepts connections on the options' address. Returns false if the port is in use. Throws config_error.
    [[nodiscard]] bool listen(u16 port);
    /// `connection`: a number chosen by the caller, used once.
    void connect(u32 connection, const std::string& address, u16 port);
    void send(u32 connection, const std::vector<std::byte>& bytes);
    /// `data` must stay valid until frame_sent().
    void send_frame(u32 connection, const std::vector<std::byte>& header, const std::byte* data, u64 bytes,
                    u64 ring_sequence);
    void close(u32 connection);
    /// Called when the peer has proven that it has the token. Before that call the peer may send messages of
    /// up to `first_message_bytes`, and no frames. Unknown connections are ignored.
    void trust(u32 connection);

    /// Returns true if there was something to do.
    bool progress();
    /// Makes progress until no work is left, for up to 1 ms, so that a peer that sends without end cannot
    /// prevent the calling thread from serving its timers. Closes peers that exceed the allowance.
    void progress_all();
    /// Waits until an event occurs, wake() is called, or the time is over.
    void wait(u64 at_most_ns);
    void wake() noexcept;

private:
    class implementation;
    std::unique_ptr<implementation> me_;
};

/// Returns the UCX settings for one link on that network device. These settings are made in UCX's own
/// configuration and not in the environment, which other threads of the process may be reading.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> ucx_settings(const transport_options& how,
                                                                            const std::string& device);
/// Sets the settings that UCX reads from the environment when it is loaded, and executes the program again.
/// To be called first in main().
void set_ucx_environment(char** argv);
/// "UCX 1.13.1".
[[nodiscard]] std::string ucx_version();
/// Description of this UCX: {"version", "cuda": whether it can access GPU memory on this machine, or null,
/// "set": the UCX settings that these programs change, with the values that are the same for all links}.
/// Probes devices of every kind and can hang while it does so: call it only in a process that is allowed to
/// hang.
[[nodiscard]] std::string ucx_json();

}  // namespace carousel::hosts
