// The UCX settings: those for one link, and those that UCX reads from the environment.

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <utility>

#include "core/errors.hpp"
#include "core/json.hpp"
#include "stages/hosts/ucx/implementation.hpp"
#include "stages/hosts/ucx/transport.hpp"

namespace carousel::hosts {
namespace {

// UCX settings of one link.

/// One UCX message has room for a piece of the least size and the headers of UCX and of this link. A longer
/// piece is transferred directly to its destination, by a rendezvous.
const std::string segment = std::to_string(least_piece + 4096);

/// IPv4 addresses by device, in the kernel's order. Throws config_error.
std::vector<std::pair<std::string, std::string>> addresses() {
    ifaddrs* all = nullptr;
    if (::getifaddrs(&all) != 0)
        throw config_error("this host's network devices can't be listed: " + errno_text(errno));
    std::vector<std::pair<std::string, std::string>> out;
    for (const ifaddrs* at = all; at != nullptr; at = at->ifa_next) {
        if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
        char text[INET_ADDRSTRLEN] = {};
        ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr, text,
                    sizeof text);
        out.emplace_back(at->ifa_name, text);
    }
    ::freeifaddrs(all);
    return out;
}

// UCX reads its settings from the environment, some of them as soon as it is loaded.

// UCX_ERROR_SIGNALS: UCX's handlers of SEGV and other signals would hide a stage's cause of death from the
// supervisor. UCX_LOG_LEVEL: UCX must not log the loss of a peer, because Carousel's own code logs it once.
// UCX_MEMTYPE_CACHE: the cache is filled by hooks of CUDA's allocation functions. UCX 1.13 has no hook for
// cuMemCreate, so it would classify the memory of rings as CPU memory. Therefore each message specifies its
// memory type.
constexpr std::pair<const char*, const char*> early[] = {
    {"UCX_ERROR_SIGNALS", ""},         {"UCX_HANDLE_ERRORS", "none"}, {"UCX_LOG_LEVEL", "fatal"},
    {"UCX_WARN_UNUSED_ENV_VARS", "n"}, {"UCX_CM_REUSEADDR", "y"},     {"UCX_MEMTYPE_CACHE", "n"},
};

/// Returns whether any transport of this UCX can access GPU memory on this machine; nothing if UCX cannot be
/// set up.
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

// UCX is configured with a device, and uses the first address of that device for the frames, regardless of
// the link's address. If this differs from the link's address, no connection is established (observed with
// UCX 1.13.1).
std::string device_of(const std::string& address) {
    const auto all = addresses();
    const auto it = std::find_if(all.begin(), all.end(), [&](const auto& a) { return a.second == address; });
    if (it == all.end())
        throw config_error(fmt::format(
            "no network device of this host has the address {} (`ip -4 addr` lists them)", address));
    const auto& [device, first] =
        *std::find_if(all.begin(), all.end(), [&](const auto& a) { return a.first == it->first; });
    if (first != address)
        throw config_error(fmt::format(
            "{} is not the first address of {}, and UCX uses only the first: {}. Use that address for the "
            "link, or make {} the first (`ip -4 addr show dev {}` lists them in order)",
            address, device, first, address, device));
    return device;
}

// GPU memory is read by cuda_copy, because cuda_ipc works only within one host. "all" includes cuda_copy;
// neither another name nor a list of excluded transports may follow "all".
std::string transports_of(const transport_options& how) {
    const bool names = how.transports != "all" && !how.transports.starts_with("^");
    return how.gpu_memory && names ? how.transports + ",cuda_copy" : how.transports;
}

// To cache registrations, UCX must detect when memory is freed. For this purpose it rewrites functions of
// libcuda (cuMemFree and others) in this process, while other threads may be executing them. TCP registers
// no memory.
bool registers_memory(const transport_options& how) { return how.transports != "tcp"; }

// UCX 1.13 expects the TCP settings here without the prefix that is used in the environment, so they are set
// under both names: UCX ignores unknown names.
std::vector<std::pair<std::string, std::string>> ucx_settings(const transport_options& how,
                                                              const std::string& device) {
    std::vector<std::pair<std::string, std::string>> out{
        {"NET_DEVICES", device},
        {"TLS", transports_of(how)},
        {"RCACHE_ENABLE", registers_memory(how) ? "try" : "n"},
        {"ZCOPY_THRESH", "16384"},  // without this setting a piece is split into copies of 8 KB
        {"TCP_RX_SEG_SIZE", segment},
        {"RX_SEG_SIZE", segment},
    };
    // Without a rendezvous, UCX copies from a GPU one segment at a time and waits for each of them; with
    // segments of 8 KB this would be too many copies.
    if (how.gpu_memory) out.insert(out.end(), {{"TCP_TX_SEG_SIZE", segment}, {"TX_SEG_SIZE", segment}});
    if (how.first_port == 0) return out;
    const std::string ports = fmt::format("{}-{}", how.first_port, how.first_port + 63);
    out.insert(out.end(), {{"TCP_PORT_RANGE", ports}, {"PORT_RANGE", ports}});
    return out;
}

void set_ucx_environment(char** argv) {
    if (std::getenv("CAROUSEL_UCX_SET") != nullptr) return;
    for (const auto& [name, value] : early) ::setenv(name, value, 1);
    ::setenv("CAROUSEL_UCX_SET", "1", 1);
    ::execv("/proc/self/exe", argv);  // if this fails, the program continues, and UCX's signal handlers stay
                                      // installed
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
