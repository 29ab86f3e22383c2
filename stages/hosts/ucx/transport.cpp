#include "stages/hosts/ucx/transport.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::hosts {
namespace {

constexpr unsigned message_id = 1, frame_id = 2;
constexpr u64 rendezvous_from = 64 * 1024;  ///< a frame of more bytes goes straight into its buffer

std::string device_of(const std::string& address) {
    ifaddrs* all = nullptr;
    std::string found;
    if (::getifaddrs(&all) != 0) return found;
    for (const ifaddrs* at = all; at != nullptr && found.empty(); at = at->ifa_next) {
        if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
        char text[INET_ADDRSTRLEN] = {};
        ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr, text,
                    sizeof text);
        if (address == text) found = at->ifa_name;
    }
    ::freeifaddrs(all);
    return found;
}

sockaddr_in socket_address(const std::string& address, u16 port) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    if (::inet_pton(AF_INET, address.c_str(), &to.sin_addr) != 1)
        throw config_error(fmt::format("{} is no IPv4 address", address));
    return to;
}

void require(ucs_status_t s, const std::string& what) {
    if (s != UCS_OK) throw config_error(fmt::format("{}: UCX says \"{}\"", what, ucs_status_string(s)));
}

}  // namespace

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
    bool progress();
    void wait(u64 at_most_ns);
    void wake() noexcept {
        const u64 one = 1;
        (void)!::write(bell_.get(), &one, sizeof one);
    }

private:
    struct link {
        u32 number = 0;
        ucp_ep_h endpoint = nullptr;
        bool failed = false;  ///< UCX has said so
        std::string why;
    };
    struct outgoing {
        implementation* of;
        u32 connection;
        std::vector<std::byte> bytes;
        bool frame;
        u64 sequence;
    };
    struct incoming {
        implementation* of;
        u64 ticket;
    };

    void open_endpoint(u32 connection, ucp_ep_params_t& with);
    void post(u32 connection, unsigned id, outgoing* o, const std::byte* data, u64 bytes);
    void sent(outgoing* o);
    [[nodiscard]] link* link_of(ucp_ep_h endpoint);
    ucs_status_t on_message(const ucp_am_recv_param_t* p, const void* data, size_t bytes);
    ucs_status_t on_frame(const void* header, size_t header_bytes, void* data, size_t bytes,
                          const ucp_am_recv_param_t* p);
    static void sent_by_ucx(void* request, ucs_status_t, void* user);
    static void received_by_ucx(void* request, ucs_status_t s, size_t, void* user);

    events* to_;
    transport_options how_;
    ucp_context_h context_ = nullptr;
    ucp_worker_h worker_ = nullptr;
    ucp_listener_h listener_ = nullptr;
    std::map<u32, std::unique_ptr<link>> links_;
    std::vector<std::pair<void*, std::unique_ptr<link>>> closing_;  ///< a request each
    std::vector<ucp_conn_request_h> asked_;
    u32 next_number_ = 1;
    u64 under_way_ = 0;
    shm::unique_fd bell_;
};

transport::implementation::implementation(events& to, const transport_options& how)
    : to_(&to), how_(how), bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    const std::string device = device_of(how.address);
    if (device.empty())
        throw config_error(fmt::format(
            "no network device of this host has the address {} (`ip -4 addr` lists them)", how.address));
    // A process may have two of these, made by a thread each, and the environment is all threads'.
    static std::mutex environment;
    const std::lock_guard alone(environment);
    ::setenv("UCX_NET_DEVICES", device.c_str(), 1);
    ::setenv("UCX_TLS", how.transports.c_str(), 1);
    if (how.first_port != 0)
        ::setenv("UCX_TCP_PORT_RANGE", fmt::format("{}-{}", how.first_port, how.first_port + 63).c_str(), 1);
    ucp_config_t* config = nullptr;
    require(ucp_config_read(nullptr, nullptr, &config), "reading UCX's settings");
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
    const ucs_status_t made = ucp_init(&params, config, &context_);
    ucp_config_release(config);
    require(made, fmt::format("UCX on {} ({}) with the transports {}", device, how.address, how.transports));
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
               return static_cast<implementation*>(me)->on_message(p, data, bytes);
           });
    handle(frame_id, [](void* me, const void* header, size_t header_bytes, void* data, size_t bytes,
                        const ucp_am_recv_param_t* p) {
        return static_cast<implementation*>(me)->on_frame(header, header_bytes, data, bytes, p);
    });
}

transport::implementation::~implementation() {
    if (listener_ != nullptr) ucp_listener_destroy(listener_);
    while (!links_.empty()) close(links_.begin()->first);
    const u64 until = now_ns() + ns_per_s;
    while ((!closing_.empty() || under_way_ > 0) && now_ns() < until) progress();
    if (worker_ != nullptr) ucp_worker_destroy(worker_);
    if (context_ != nullptr) ucp_cleanup(context_);
}

bool transport::implementation::listen(u16 port) {
    const sockaddr_in at = socket_address(how_.address, port);
    ucp_listener_params_t p{};
    p.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
    p.sockaddr.addr = reinterpret_cast<const sockaddr*>(&at);
    p.sockaddr.addrlen = sizeof at;
    p.conn_handler.cb = [](ucp_conn_request_h request, void* me) {
        static_cast<implementation*>(me)->asked_.push_back(request);
    };
    p.conn_handler.arg = this;
    const ucs_status_t s = ucp_listener_create(worker_, &p, &listener_);
    if (s == UCS_ERR_BUSY) return false;
    require(s, fmt::format("listening on {} port {}", how_.address, port));
    return true;
}

void transport::implementation::open_endpoint(u32 connection, ucp_ep_params_t& with) {
    auto l = std::make_unique<link>();
    l->number = connection;
    with.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    with.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    with.err_handler.arg = l.get();
    with.err_handler.cb = [](void* of, ucp_ep_h,
                             ucs_status_t s) {  // may come from anywhere: progress() tells
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

transport::implementation::link* transport::implementation::link_of(ucp_ep_h endpoint) {
    for (auto& [number, l] : links_)
        if (l->endpoint == endpoint && !l->failed) return l.get();
    return nullptr;
}

void transport::implementation::sent(outgoing* o) {
    const std::unique_ptr<outgoing> over(o);
    --under_way_;
    if (o->frame) to_->frame_sent(o->connection, o->sequence);
}

void transport::implementation::sent_by_ucx(void* request, ucs_status_t, void* user) {
    auto* o = static_cast<outgoing*>(user);
    o->of->sent(o);
    ucp_request_free(request);
}

void transport::implementation::post(u32 connection, unsigned id, outgoing* o, const std::byte* data,
                                     u64 bytes) {
    ++under_way_;
    const auto at = links_.find(connection);
    if (at == links_.end() || at->second->failed) return sent(o);
    ucp_request_param_t p{};
    p.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
    p.cb.send = &sent_by_ucx;
    p.user_data = o;
    p.flags =
        UCP_AM_SEND_FLAG_REPLY | (bytes > rendezvous_from ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER);
    const bool frame = id == frame_id;
    void* request = ucp_am_send_nbx(at->second->endpoint, id, frame ? o->bytes.data() : nullptr,
                                    frame ? o->bytes.size() : 0, data, bytes, &p);
    if (request == nullptr) return sent(o);
    if (!UCS_PTR_IS_ERR(request)) return;
    at->second->failed = true;
    at->second->why = ucs_status_string(UCS_PTR_STATUS(request));
    sent(o);
}

void transport::implementation::send(u32 connection, const std::vector<std::byte>& bytes) {
    auto* o = new outgoing{this, connection, bytes, false, 0};
    post(connection, message_id, o, o->bytes.data(), o->bytes.size());
}

void transport::implementation::send_frame(u32 connection, const std::vector<std::byte>& header,
                                           const std::byte* data, u64 bytes, u64 sequence) {
    post(connection, frame_id, new outgoing{this, connection, header, true, sequence}, data, bytes);
}

ucs_status_t transport::implementation::on_message(const ucp_am_recv_param_t* p, const void* data,
                                                   size_t bytes) {
    link* l = (p->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0 ? link_of(p->reply_ep) : nullptr;
    // A message of ours is always short; a rendezvous is refused by not asking for its bytes.
    if (l != nullptr && (p->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0)
        to_->message_came(l->number, {static_cast<const std::byte*>(data), bytes});
    return UCS_OK;
}

void transport::implementation::received_by_ucx(void* request, ucs_status_t s, size_t, void* user) {
    const std::unique_ptr<incoming> in(static_cast<incoming*>(user));
    --in->of->under_way_;
    in->of->to_->frame_came(in->ticket, s == UCS_OK);
    ucp_request_free(request);
}

ucs_status_t transport::implementation::on_frame(const void* header, size_t header_bytes, void* data,
                                                 size_t bytes, const ucp_am_recv_param_t* p) {
    link* l = (p->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0 ? link_of(p->reply_ep) : nullptr;
    if (l == nullptr) return UCS_OK;
    u64 ticket = 0;
    std::byte* room =
        to_->frame_begins(l->number, {static_cast<const std::byte*>(header), header_bytes}, bytes, ticket);
    if (room == nullptr) return UCS_OK;
    if ((p->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0) {
        std::memcpy(room, data, bytes);
        to_->frame_came(ticket, true);
        return UCS_OK;
    }
    auto* in = new incoming{this, ticket};
    ucp_request_param_t with{};
    with.op_attr_mask =
        UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    with.cb.recv_am = &received_by_ucx;
    with.user_data = in;
    ++under_way_;
    void* request = ucp_am_recv_data_nbx(worker_, data, room, bytes, &with);
    if (request != nullptr && UCS_PTR_IS_ERR(request)) {
        --under_way_;
        to_->frame_came(ticket, false);
        delete in;
        return UCS_OK;
    }
    return UCS_INPROGRESS;
}

void transport::implementation::close(u32 connection) {
    const auto at = links_.find(connection);
    if (at == links_.end()) return;
    std::unique_ptr<link> l = std::move(at->second);
    links_.erase(at);
    if (l->endpoint != nullptr) {
        ucp_request_param_t p{};
        p.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        p.flags = UCP_EP_CLOSE_FLAG_FORCE;
        void* request = ucp_ep_close_nbx(l->endpoint, &p);
        if (request != nullptr && !UCS_PTR_IS_ERR(request)) closing_.emplace_back(request, std::move(l));
    }
}

bool transport::implementation::progress() {
    bool any = ucp_worker_progress(worker_) != 0;
    for (const ucp_conn_request_h request : std::exchange(asked_, {})) {
        ucp_ep_params_t p{};
        p.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
        p.conn_request = request;
        const u32 number = next_number_++;
        open_endpoint(number, p);
        to_->accepted(number);
        any = true;
    }
    std::erase_if(closing_, [](const auto& each) {
        if (ucp_request_check_status(each.first) == UCS_INPROGRESS) return false;
        ucp_request_free(each.first);
        return true;
    });
    std::vector<u32> failed;
    for (const auto& [number, l] : links_)
        if (l->failed) failed.push_back(number);
    for (const u32 number : failed) {
        const std::string why = links_[number]->why;
        close(number);
        to_->closed(number, why);
        any = true;
    }
    return any;
}

void transport::implementation::wait(u64 at_most_ns) {
    if (ucp_worker_arm(worker_) != UCS_OK) return;  // something came meanwhile
    int fd = -1;
    if (ucp_worker_get_efd(worker_, &fd) != UCS_OK) return;
    pollfd both[] = {{fd, POLLIN, 0}, {bell_.get(), POLLIN, 0}};
    const timespec most{static_cast<time_t>(at_most_ns / ns_per_s), static_cast<long>(at_most_ns % ns_per_s)};
    (void)::ppoll(both, 2, &most, nullptr);
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
                           u64 bytes, u64 sequence) {
    me_->send_frame(connection, header, data, bytes, sequence);
}
void transport::close(u32 connection) { me_->close(connection); }
bool transport::progress() { return me_->progress(); }
void transport::wait(u64 at_most_ns) { me_->wait(at_most_ns); }
void transport::wake() noexcept { me_->wake(); }

}  // namespace carousel::hosts
