// UCX takes its settings from the environment, some of them as soon as it is loaded.
#include <fmt/format.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "stages/hosts/ucx/transport.hpp"

namespace carousel::hosts {

// UCX_ERROR_SIGNALS: its handlers of SEGV and others would hide from the supervisor what a stage has died of.
// UCX_LOG_LEVEL: a peer that is gone is our own news, told once.
void set_ucx_environment(char** argv) {
    constexpr std::pair<const char*, const char*> early[] = {
        {"UCX_ERROR_SIGNALS", ""},         {"UCX_HANDLE_ERRORS", "none"}, {"UCX_LOG_LEVEL", "fatal"},
        {"UCX_WARN_UNUSED_ENV_VARS", "n"}, {"UCX_CM_REUSEADDR", "y"},
    };
    if (std::getenv("CAROUSEL_UCX_SET") != nullptr) return;
    for (const auto& [name, value] : early) ::setenv(name, value, 1);
    ::setenv("CAROUSEL_UCX_SET", "1", 1);
    ::execv("/proc/self/exe", argv);  // where that can't be done it goes on, with UCX's handlers
}

std::string ucx_version() {
    unsigned major = 0, minor = 0, release = 0;
    ucp_get_version(&major, &minor, &release);
    return fmt::format("UCX {}.{}.{}", major, minor, release);
}

}  // namespace carousel::hosts
