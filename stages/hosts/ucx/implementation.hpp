#pragma once
// The implementation of a transport: one UCX worker, and for each connection its outgoing and incoming frames
// (messages.cpp).

#include <malloc.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "core/io.hpp"
#include "core/types.hpp"
#include "shm/fd_socket.hpp"
#include "stages/hosts/ucx/pieces.hpp"
#include "stages/hosts/ucx/transport.hpp"

namespace carousel::hosts {

// Detects a peer that makes UCX assemble a message that is longer than any plan allows.
// UCX assembles an eager message of several fragments itself: it allocates the announced length when the
// first fragment arrives, queues fragments that come before the first one, and calls the handler after the
// last fragment. UCX has no setting for the largest length, and no callback before the last fragment (UCX
// 1.13). But it allocates with malloc(), so the announced length is visible in malloc()'s statistics before
// the bytes have arrived, and closing the endpoint frees the memory. malloc() is shared by the whole process,
// so the allowance includes allocations of the process's other threads while a link exists.

class memory_watch {
public:
    explicit memory_watch(u64 allowance) noexcept : allowance_(allowance), base_(allocated_bytes()) {}
    /// After this call, only allocations in addition to the present ones count towards the allowance.
    void restart() noexcept { base_ = allocated_bytes(); }
    /// Each check takes a little time, so at most one check is made per millisecond.
    [[nodiscard]] bool is_due(u64 now_ns) noexcept {
        if (now_ns < next_ns_) return false;
        next_ns_ = now_ns + ns_per_ms;
        return true;
    }
    /// True if the process has allocated more than the allowance since construction or restart().
    [[nodiscard]] bool exceeded() const noexcept { return allocated_bytes() > base_ + allowance_; }
    /// Returns zero if malloc() has no statistics, e.g. with a sanitizer; in that case no excess is detected.
    [[nodiscard]] static u64 allocated_bytes() noexcept {
        const struct mallinfo2 m = ::mallinfo2();
        return m.uordblks + m.hblkhd;
    }

private:
    u64 allowance_, base_, next_ns_ = 0;
};

inline constexpr unsigned message_id = 1, frame_id = 2;  ///< ids of UCX's active messages

inline bool is_rendezvous(const ucp_am_recv_param_t* p) {
    return (p->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
}

/// Returns the network device that has the address. Throws config_error.
[[nodiscard]] std::string device_of(const std::string& address);
/// Value of UCX_TLS.
[[nodiscard]] std::string transports_of(const transport_options& how);
[[nodiscard]] bool registers_memory(const transport_options& how);

class transport::implementation {
public:
    implementation(events& to, const transport_options& how);
    ~implementation();
    bool listen(u16 port);
    void connect(u32 connection, const std::string& address, u16 port);
    void send(u32 connection, const std::vector<std::byte>& bytes);
    void send_frame(u32 connection, const std::vector<std::byte>& header, const std::byte* data, u64 bytes,
                    u64 seq);
    void close(u32 connection);
    void trust(u32 connection);
    bool progress();
    void progress_all();
    void wait(u64 at_most_ns);
    void wake() noexcept {
        const u64 one = 1;
        (void)write_whole(bell_.get(), &one, sizeof one);
        rung_.store(true, std::memory_order_relaxed);  // wait() checks this flag before it sleeps on the bell
    }

private:
    struct link {
        u32 number = 0;
        ucp_ep_h endpoint = nullptr;
        bool failed = false;  ///< UCX has reported an error, or the peer exceeded the limits
        bool trusted = false, broke_limits = false;
        std::string why;
        outgoing_frames frames;
        std::shared_ptr<pace> pieces;  ///< may outlive the link
        incoming_frames coming;
    };
    struct outgoing {
        implementation* of;
        std::vector<std::byte> bytes;  ///< a message, or the header of a piece
        std::shared_ptr<outgoing_frame> frame{};
        std::shared_ptr<pace> pieces{};
        u64 data_bytes = 0;  ///< bytes of the piece
    };

    struct incoming {
        implementation* of;
        std::shared_ptr<arriving_frame> frame;
        u64 bytes;
    };

    /// The connections that were closed because the allowance was exceeded.
    enum class relief : u8 { none, untrusted_closed, all_closed };

    /// Creates context and worker. Throws config_error.
    void set_up();
    /// Frees all UCX resources. All connections must have been closed.
    void tear_down();
    void bound_memory(u64 now);
    bool disconnect(bool trusted_too);
    static void disconnect(link& l, std::string why);
    bool accept_requests();
    bool close_failed();
    /// Throws config_error if this UCX cannot access GPU memory.
    void require_gpu_memory();
    void open_endpoint(u32 connection, ucp_ep_params_t& with);
    void post(link& l, unsigned id, outgoing* o, std::span<const std::byte> data);
    bool post_pieces(link& l);
    void sent(outgoing* o);
    [[nodiscard]] link* link_of(const ucp_am_recv_param_t* p);
    void on_message(link& l, std::span<const std::byte> bytes, bool rendezvous);
    ucs_status_t on_piece(link& l, std::span<const std::byte> front, void* data, u64 bytes, bool rendezvous);
    static void sent_by_ucx(void* request, ucs_status_t, void* user);
    static void received_by_ucx(void* request, ucs_status_t s, size_t, void* user);

    events* to_;
    transport_options options_;
    ucp_context_h context_ = nullptr;
    ucp_worker_h worker_ = nullptr;
    ucp_listener_h listener_ = nullptr;
    std::map<u32, std::unique_ptr<link>> links_;
    std::vector<std::pair<void*, std::unique_ptr<link>>> closing_;  ///< one request each
    std::vector<ucp_conn_request_h> requests_;
    u32 next_number_ = 1;
    u16 port_ = 0;  ///< listening port; 0: not listening
    relief relief_ = relief::none;
    u64 under_way_ = 0;
    memory_watch memory_;
    const bool busy_polls_;  ///< true if the host has enough cores for busy polling
    std::atomic<bool> rung_ = false;
    shm::unique_fd bell_;
};

}  // namespace carousel::hosts
