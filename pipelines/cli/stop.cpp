// `carousel stop`.

#include "cli/clients.hpp"

namespace carousel::supervisor {

extern const command stop_command{
    "stop", "Pause stages (SIGSTOP, no deadline): the pipeline waits until `cont`", add_plain};

}  // namespace carousel::supervisor
