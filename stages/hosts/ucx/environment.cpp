// UCX reads its settings from the environment, some of them as soon as it is loaded.
#include <fmt/format.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <utility>

#include "core/json.hpp"
#include "stages/hosts/ucx/transport.hpp"

namespace carousel::hosts {
namespace {

// UCX_ERROR_SIGNALS: UCX's handlers of SEGV and other signals would hide a stage's cause of death from the
// supervisor. UCX_LOG_LEVEL: the loss of a peer is logged once, by Carousel's own code. UCX_MEMTYPE_CACHE:
// the cache is filled by hooks of CUDA's allocation functions. UCX 1.13 has no hook for cuMemCreate, so it
// would classify the memory of rings as CPU memory. Therefore each message specifies its memory type.
constexpr std::pair<const char*, const char*> early[] = {
    {"UCX_ERROR_SIGNALS", ""},         {"UCX_HANDLE_ERRORS", "none"}, {"UCX_LOG_LEVEL", "fatal"},
    {"UCX_WARN_UNUSED_ENV_VARS", "n"}, {"UCX_CM_REUSEADDR", "y"},     {"UCX_MEMTYPE_CACHE", "n"},
};

/// Checks all transports of this UCX on this machine; nothing: UCX cannot be set up.
std::optional<bool> reaches_cuda() {
    ucp_config_t* config = nullptr;
    if (ucp_config_read(nullptr, nullptr, &config) != UCS_OK) return std::nullopt;
    if (ucp_config_modify(config, "TLS", "all") != UCS_OK) {
        ucp_config_release(config);
        return std::nullopt;
    }
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_AM;
    ucp_context_h context = nullptr;
    const ucs_status_t made = ucp_init(&params, config, &context);
    ucp_config_release(config);
    if (made != UCS_OK) return std::nullopt;
    ucp_context_attr_t is{};
    is.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
    const bool known = ucp_context_query(context, &is) == UCS_OK;
    ucp_cleanup(context);
    if (!known) return std::nullopt;
    return (is.memory_types >> UCS_MEMORY_TYPE_CUDA & 1U) != 0;
}

}  // namespace

void set_ucx_environment(char** argv) {
    if (std::getenv("CAROUSEL_UCX_SET") != nullptr) return;
    for (const auto& [name, value] : early) ::setenv(name, value, 1);
    ::setenv("CAROUSEL_UCX_SET", "1", 1);
    ::execv("/proc/self/exe", argv);  // if this fails, the program continues with UCX's handlers
}

std::string ucx_version() {
    unsigned major = 0, minor = 0, release = 0;
    ucp_get_version(&major, &minor, &release);
    return fmt::format("UCX {}.{}.{}", major, minor, release);
}

std::string ucx_json() {
    nlohmann::json j{{"version", ucp_get_version_string()}, {"cuda", nullptr}};
    if (const auto cuda = reaches_cuda()) j["cuda"] = *cuda;
    for (const auto& [name, value] : early) j["set"][name] = value;
    for (const char* of_each_link :
         {"UCX_NET_DEVICES", "UCX_RCACHE_ENABLE", "UCX_TCP_PORT_RANGE", "UCX_TCP_RX_SEG_SIZE",
          "UCX_TCP_TX_SEG_SIZE", "UCX_TLS", "UCX_ZCOPY_THRESH"})
        j["set"][of_each_link] = nullptr;
    return j.dump();
}

}  // namespace carousel::hosts
