// `carousel restart`.

#include "cli/clients.hpp"

namespace carousel::supervisor {

const command restart_command{
    "restart", "End stages and start them anew (a rebuilt program takes over); no frame is lost", add_plain};

}  // namespace carousel::supervisor
