// What UCX is set to for one link.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <cerrno>

#include "core/errors.hpp"
#include "stages/hosts/ucx/implementation.hpp"

namespace carousel::hosts {
namespace {

/// A piece of the least size, and what UCX and this link put in front of it, is one of UCX's messages. A
/// longer one goes straight into its place, by a rendezvous.
const std::string segment = std::to_string(least_piece + 4096);

/// Addresses of IPv4 by their devices, in the kernel's order. Throws config_error.
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

}  // namespace

// UCX is told a device, and takes its first address for the frames, whatever the one of the link is: that
// would be no address that anybody has named, and no connection comes about by it (seen with UCX 1.13.1).
std::string device_of(const std::string& address) {
    const auto all = addresses();
    const auto it = std::find_if(all.begin(), all.end(), [&](const auto& a) { return a.second == address; });
    if (it == all.end())
        throw config_error(fmt::format(
            "no network device of this host has the address {} (`ip -4 addr` lists them)", address));
    const auto& [device, first] =
        *std::find_if(all.begin(), all.end(), [&](const auto& a) { return a.first == it->first; });
    if (first != address)
        throw config_error(
            fmt::format("{} is not the first address of {}, and UCX takes none but that: {}. Let the link "
                        "use that one, or "
                        "make {} the first (`ip -4 addr show dev {}` lists them in order)",
                        address, device, first, address, device));
    return device;
}

// A GPU's memory is read by cuda_copy: cuda_ipc is for one host. "all" has it, and takes no further name;
// nor does a list of what UCX is not to use.
std::string transports_of(const transport_options& how) {
    const bool names = how.transports != "all" && !how.transports.starts_with("^");
    return how.gpu_memory && names ? how.transports + ",cuda_copy" : how.transports;
}

// To keep what it has registered UCX must hear of what is freed. For that it rewrites functions of libcuda
// (cuMemFree and others) in this process, while other threads may be in them. TCP registers nothing.
bool registers_memory(const transport_options& how) { return how.transports != "tcp"; }

// UCX 1.13 finds the settings of TCP here without the prefix that they have in the environment, so they are
// set under both names: UCX ignores a name that it does not know.
std::vector<std::pair<std::string, std::string>> ucx_settings(const transport_options& how,
                                                              const std::string& device) {
    std::vector<std::pair<std::string, std::string>> out{
        {"NET_DEVICES", device},
        {"TLS", transports_of(how)},
        {"RCACHE_ENABLE", registers_memory(how) ? "try" : "n"},
        {"ZCOPY_THRESH", "16384"},  // else a piece is cut into copies of 8 KB
        {"TCP_RX_SEG_SIZE", segment},
        {"RX_SEG_SIZE", segment},
    };
    // What UCX moves by no rendezvous it copies from a GPU segment by segment, and waits for each: of 8 KB
    // they would be many.
    if (how.gpu_memory) out.insert(out.end(), {{"TCP_TX_SEG_SIZE", segment}, {"TX_SEG_SIZE", segment}});
    if (how.first_port == 0) return out;
    const std::string ports = fmt::format("{}-{}", how.first_port, how.first_port + 63);
    out.insert(out.end(), {{"TCP_PORT_RANGE", ports}, {"PORT_RANGE", ports}});
    return out;
}

}  // namespace carousel::hosts
