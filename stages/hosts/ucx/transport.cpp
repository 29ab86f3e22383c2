#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/cgroup.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "stages/hosts/ucx/implementation.hpp"

namespace carousel::hosts {
namespace {

/// On a host with enough cores, a link with frames in flight polls for this time before it sleeps, because
/// waking up takes as long as transferring a part of a piece. With fewer cores, pieces use no rendezvous.
constexpr u64 poll_limit_ns = 50'000;
constexpr unsigned cores_to_busy_poll = 8;
constexpr u64 longest_progress_ns = ns_per_ms;

sockaddr_in socket_address(const std::string& address, u16 port) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    if (::inet_pton(AF_INET, address.c_str(), &to.sin_addr) != 1)
        throw config_error(fmt::format("{} is not an IPv4 address", address));
    return to;
}

void require(ucs_status_t s, const std::string& what) {
    if (s != UCS_OK) throw config_error(fmt::format("{}: UCX reports \"{}\"", what, ucs_status_string(s)));
}

}  // namespace

transport::implementation::implementation(events& to, const transport_options& how)
    : to_(&to),
      options_(how),
      memory_(how.allowance),
      busy_polls_(usable_cores() >= cores_to_busy_poll),
      bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    set_up();
    memory_.restart();
}

void transport::implementation::set_up() {
    const std::string device = device_of(options_.address);
    ucp_config_t* config = nullptr;
    require(ucp_config_read(nullptr, nullptr, &config), "reading UCX's settings");
    for (const auto& [name, value] : ucx_settings(options_, device)) {
        const ucs_status_t set = ucp_config_modify(config, name.c_str(), value.c_str());
        if (set == UCS_OK) continue;
        ucp_config_release(config);
        require(set, fmt::format("the setting {} = {} of UCX", name, value));
    }
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
    const ucs_status_t made = ucp_init(&params, config, &context_);
    ucp_config_release(config);
    require(made, fmt::format("UCX on {} ({}) with the transports {}", device, options_.address,
                              transports_of(options_)));
    if (options_.gpu_memory) require_gpu_memory();
    ucp_worker_params_t worker{};
    worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    worker.thread_mode = UCS_THREAD_MODE_SINGLE;
    require(ucp_worker_create(context_, &worker, &worker_), "a worker of UCX");
    const auto handle = [&](unsigned id, ucp_am_recv_callback_t how_to) {
        ucp_am_handler_param_t p{};
        p.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                       UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
        p.id = id;
        p.flags = UCP_AM_FLAG_WHOLE_MSG;
        p.cb = how_to;
        p.arg = this;
        require(ucp_worker_set_am_recv_handler(worker_, &p), "a handler of UCX's messages");
    };
    handle(message_id,
           [](void* me, const void*, size_t, void* data, size_t bytes, const ucp_am_recv_param_t* p) {
               auto* const here = static_cast<implementation*>(me);
               if (link* const l = here->link_of(p); l != nullptr)
                   here->on_message(*l, {static_cast<const std::byte*>(data), bytes}, is_rendezvous(p));
               return UCS_OK;
           });
    handle(frame_id, [](void* me, const void* front, size_t front_bytes, void* data, size_t bytes,
                        const ucp_am_recv_param_t* p) {
        auto* const here = static_cast<implementation*>(me);
        link* const l = here->link_of(p);
        if (l == nullptr) return UCS_OK;
        return here->on_piece(*l, {static_cast<const std::byte*>(front), front_bytes}, data, bytes,
                              is_rendezvous(p));
    });
}

// Frees the objects that the constructor has created so far, because the destructor does not run if a
// constructor throws.
void transport::implementation::require_gpu_memory() {
    ucp_context_attr_t is{};
    is.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
    const bool known = ucp_context_query(context_, &is) == UCS_OK;
    if (known && (is.memory_types >> UCS_MEMORY_TYPE_CUDA & 1U) != 0) return;
    ucp_cleanup(std::exchange(context_, nullptr));
    throw config_error(fmt::format(
        "memory = \"direct\": {} with the transports {} can't access GPU memory here; use memory = "
        "\"staged\", which sends from page-locked memory, or load a UCX that was built --with-cuda",
        ucx_version(), transports_of(options_)));
}

transport::implementation::~implementation() {
    relief_ = relief::all_closed;  // accepts no further connection
    while (!links_.empty()) close(links_.begin()->first);
    const u64 until = now_ns() + ns_per_s;
    while ((!closing_.empty() || under_way_ > 0) && now_ns() < until) progress();
    tear_down();
}

void transport::implementation::tear_down() {
    if (listener_ != nullptr) {
        for (const ucp_conn_request_h request : std::exchange(requests_, {}))
            (void)ucp_listener_reject(listener_, request);
        ucp_listener_destroy(std::exchange(listener_, nullptr));
    }
    if (worker_ != nullptr) ucp_worker_destroy(std::exchange(worker_, nullptr));
    if (context_ != nullptr) ucp_cleanup(std::exchange(context_, nullptr));
}

bool transport::implementation::listen(u16 port) {
    const sockaddr_in at = socket_address(options_.address, port);
    ucp_listener_params_t p{};
    p.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
    p.sockaddr.addr = reinterpret_cast<const sockaddr*>(&at);
    p.sockaddr.addrlen = sizeof at;
    p.conn_handler.cb = [](ucp_conn_request_h request, void* me) {
        static_cast<implementation*>(me)->requests_.push_back(request);
    };
    p.conn_handler.arg = this;
    const ucs_status_t s = ucp_listener_create(worker_, &p, &listener_);
    if (s == UCS_ERR_BUSY) return false;
    require(s, fmt::format("listening on {} port {}", options_.address, port));
    port_ = port;
    return true;
}

void transport::implementation::open_endpoint(u32 connection, ucp_ep_params_t& with) {
    auto l = std::make_unique<link>();
    l->number = connection;
    // GPU memory is not sent over TCP by rendezvous: UCX 1.13 copies it in parts during the transfer, and
    // ends the process if the connection breaks ("unable to get PUT Zcopy lane").
    const bool large = busy_polls_ && (!options_.gpu_memory || registers_memory(options_));
    l->pieces = std::make_shared<pace>(large ? most_piece : least_piece);
    with.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    with.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    with.err_handler.arg = l.get();
    with.err_handler.cb = [](void* of, ucp_ep_h,
                             ucs_status_t s) {  // this handler may be called at any time, so it only stores
                                                // the error, which progress() then reports
        auto* failed = static_cast<link*>(of);
        failed->failed = true;
        failed->why = ucs_status_string(s);
    };
    const ucs_status_t s = ucp_ep_create(worker_, &with, &l->endpoint);
    if (s != UCS_OK) {
        l->endpoint = nullptr;
        l->failed = true;
        l->why = ucs_status_string(s);
    }
    links_[connection] = std::move(l);
}

void transport::implementation::connect(u32 connection, const std::string& address, u16 port) {
    const sockaddr_in at = socket_address(address, port);
    ucp_ep_params_t p{};
    p.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
    p.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    p.sockaddr.addr = reinterpret_cast<const sockaddr*>(&at);
    p.sockaddr.addrlen = sizeof at;
    open_endpoint(connection, p);
}

void transport::implementation::close(u32 connection) {
    const auto at = links_.find(connection);
    if (at == links_.end()) return;
    std::unique_ptr<link> l = std::move(at->second);
    links_.erase(at);
    l->coming = {};
    l->frames = {};
    if (l->endpoint != nullptr) {
        ucp_request_param_t p{};
        p.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        p.flags = UCP_EP_CLOSE_FLAG_FORCE;
        void* request = ucp_ep_close_nbx(l->endpoint, &p);
        if (request != nullptr && !UCS_PTR_IS_ERR(request)) closing_.emplace_back(request, std::move(l));
    }
}

void transport::implementation::trust(u32 connection) {
    if (const auto at = links_.find(connection); at != links_.end()) at->second->trusted = true;
}

bool transport::implementation::accept_requests() {
    bool any = false;
    for (const ucp_conn_request_h request : std::exchange(requests_, {})) {
        any = true;
        if (relief_ == relief::all_closed) {
            (void)ucp_listener_reject(listener_, request);
            continue;
        }
        ucp_ep_params_t p{};
        p.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
        p.conn_request = request;
        const u32 number = next_number_++;
        open_endpoint(number, p);
        to_->accepted(number);
    }
    return any;
}

bool transport::implementation::close_failed() {
    std::vector<u32> failed;
    for (const auto& [number, l] : links_)
        if (l->failed) failed.push_back(number);
    for (const u32 number : failed) {
        const std::string why = links_[number]->why;
        const bool broke_limits = links_[number]->broke_limits;
        close(number);
        if (broke_limits) to_->broke_limits(number, why);
        to_->closed(number, why);
    }
    return !failed.empty();
}

bool transport::implementation::progress() {
    bool any = ucp_worker_progress(worker_) != 0;
    any = accept_requests() || any;
    std::erase_if(closing_, [](const auto& each) {
        if (ucp_request_check_status(each.first) == UCS_INPROGRESS) return false;
        ucp_request_free(each.first);
        return true;
    });
    for (const auto& [number, l] : links_) any = post_pieces(*l) || any;
    return close_failed() || any;
}

void transport::implementation::progress_all() {
    const u64 until = now_ns() + longest_progress_ns;
    while (progress() && now_ns() < until) {
    }
    bound_memory(now_ns());
}

void transport::implementation::disconnect(link& l, std::string why) {
    l.failed = l.broke_limits = true;
    l.why = std::move(why);
}

bool transport::implementation::disconnect(bool trusted_too) {
    for (const auto& [number, l] : links_)
        if (!l->failed && (trusted_too || !l->trusted))
            disconnect(*l, fmt::format("a peer sends a message that exceeds the size limit of this link: it "
                                       "would need more than {} MiB of memory",
                                       options_.allowance >> 20U));
    return close_failed();
}

// Closing an endpoint frees the messages that UCX is assembling for it. Peers without the token are closed
// first. If closing these peers is not enough, all peers are closed and UCX is set up again. Only this frees
// the connections that UCX accepts by itself, without this class.
void transport::implementation::bound_memory(u64 now) {
    if (!memory_.is_due(now)) return;
    if (port_ != 0 && listener_ == nullptr) (void)listen(port_);  // again, after tear_down()
    if (!memory_.exceeded()) {
        relief_ = relief::none;
        return;
    }
    if (!closing_.empty()) return;  // UCX frees the memory of connections after they are closed
    if (relief_ == relief::none) {
        relief_ = relief::untrusted_closed;
        if (disconnect(false)) return;
    }
    relief_ = relief::all_closed;
    if (disconnect(true) || !closing_.empty() || under_way_ > 0) return;
    tear_down();
    set_up();
    relief_ = relief::none;
    memory_.restart();
}

void transport::implementation::wait(u64 at_most_ns) {
    if (under_way_ > 0 && busy_polls_) {
        const u64 until = now_ns() + std::min(at_most_ns, poll_limit_ns);
        while (now_ns() < until)
            if (rung_.exchange(false, std::memory_order_relaxed) || progress()) return;
    }
    if (ucp_worker_arm(worker_) != UCS_OK) return;  // an event arrived meanwhile
    int fd = -1;
    if (ucp_worker_get_efd(worker_, &fd) != UCS_OK) return;
    pollfd both[] = {{fd, POLLIN, 0}, {bell_.get(), POLLIN, 0}};
    (void)poll_until(both, 2, now_ns() + at_most_ns);
    u64 rung = 0;
    (void)!::read(bell_.get(), &rung, sizeof rung);
}

transport::transport(events& to, const transport_options& how)
    : me_(std::make_unique<implementation>(to, how)) {}
transport::~transport() = default;
bool transport::listen(u16 port) { return me_->listen(port); }
void transport::connect(u32 connection, const std::string& address, u16 port) {
    me_->connect(connection, address, port);
}
void transport::send(u32 connection, const std::vector<std::byte>& bytes) { me_->send(connection, bytes); }
void transport::send_frame(u32 connection, const std::vector<std::byte>& header, const std::byte* data,
                           u64 bytes, u64 ring_sequence) {
    me_->send_frame(connection, header, data, bytes, ring_sequence);
}
void transport::close(u32 connection) { me_->close(connection); }
void transport::trust(u32 connection) { me_->trust(connection); }
bool transport::progress() { return me_->progress(); }
void transport::progress_all() { me_->progress_all(); }
void transport::wait(u64 at_most_ns) { me_->wait(at_most_ns); }
void transport::wake() noexcept { me_->wake(); }

}  // namespace carousel::hosts
