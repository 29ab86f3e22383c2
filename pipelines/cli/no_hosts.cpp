// A build without extras has no links between hosts.
#include <fmt/format.h>

#include "cli/start.hpp"
#include "spec/programs.hpp"

namespace carousel::supervisor {

int run_over_hosts(const start_arguments&, const cli_environment&, const pipeline& whole) {
    throw config_error(fmt::format(
        "{}: some of its stages are on other hosts, and this build has no links between hosts: {}",
        whole.file, how_to_get_extras));
}

}  // namespace carousel::supervisor
