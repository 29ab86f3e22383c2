// A peer that does not know a link's token, and makes the receiving host's UCX assemble a message that is
// longer than any message of a link.
//
//   carousel-test-hostile-peer ADDRESS PORT BYTES
//
// It connects, sends one eager active message of BYTES bytes, and connects again when it is closed, until it
// is killed. It prints how long each connection existed. The message's bytes are never written, so they take
// no memory here.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <ucp/api/ucp.h>

#include <cstdio>
#include <cstdlib>

#include "core/clock.hpp"
#include "stages/hosts/ucx/transport.hpp"

namespace {

using namespace carousel;

void require(bool so, const char* what) {
    if (so) return;
    fmt::print(stderr, "{} failed\n", what);
    std::exit(1);
}

struct ucx {
    ucp_context_h context = nullptr;
    ucp_worker_h worker = nullptr;

    ucx() {
        ucp_config_t* config = nullptr;
        require(ucp_config_read(nullptr, nullptr, &config) == UCS_OK, "ucp_config_read");
        require(ucp_config_modify(config, "TLS", "tcp") == UCS_OK, "UCX_TLS");
        ucp_params_t with{};
        with.field_mask = UCP_PARAM_FIELD_FEATURES;
        with.features = UCP_FEATURE_AM;
        require(ucp_init(&with, config, &context) == UCS_OK, "ucp_init");
        ucp_config_release(config);
        ucp_worker_params_t one_thread{};
        require(ucp_worker_create(context, &one_thread, &worker) == UCS_OK, "ucp_worker_create");
    }
};

void attack(const ucx& u, const sockaddr_in& at, const void* data, u64 bytes) {
    bool closed = false;
    ucp_ep_params_t to{};
    to.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR | UCP_EP_PARAM_FIELD_ERR_HANDLER |
                    UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    to.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    to.sockaddr.addr = reinterpret_cast<const sockaddr*>(&at);
    to.sockaddr.addrlen = sizeof at;
    to.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    to.err_handler.arg = &closed;
    to.err_handler.cb = [](void* is, ucp_ep_h, ucs_status_t) { *static_cast<bool*>(is) = true; };
    ucp_ep_h endpoint = nullptr;
    require(ucp_ep_create(u.worker, &to, &endpoint) == UCS_OK, "ucp_ep_create");
    const u64 since = now_ns();
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    how.memory_type = UCS_MEMORY_TYPE_HOST;
    how.flags = UCP_AM_SEND_FLAG_REPLY | UCP_AM_SEND_FLAG_EAGER;
    void* const sent = bytes > 0 ? ucp_am_send_nbx(endpoint, 1, nullptr, 0, data, bytes, &how) : nullptr;
    while (!closed) ucp_worker_progress(u.worker);
    if (UCS_PTR_IS_PTR(sent)) ucp_request_free(sent);
    how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    how.flags = UCP_EP_CLOSE_FLAG_FORCE;
    void* const closing = ucp_ep_close_nbx(endpoint, &how);
    if (UCS_PTR_IS_PTR(closing)) {
        while (ucp_request_check_status(closing) == UCS_INPROGRESS) ucp_worker_progress(u.worker);
        ucp_request_free(closing);
    }
    fmt::print("closed after {} ms\n", (now_ns() - since) / ns_per_ms);
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    hosts::set_ucx_environment(argv);
    if (argc != 4) {
        fmt::print(stderr, "usage: {} ADDRESS PORT BYTES\n", argv[0]);
        return 2;
    }
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<u16>(std::atoi(argv[2])));
    require(::inet_pton(AF_INET, argv[1], &at.sin_addr) == 1, "ADDRESS");
    const u64 bytes = std::strtoull(argv[3], nullptr, 10);
    const void* const data =
        ::mmap(nullptr, bytes + 1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    require(data != MAP_FAILED, "mmap");
    for (const ucx u;;) attack(u, at, data, bytes);
}
