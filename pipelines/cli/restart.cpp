// `carousel restart`.

#include "cli/clients.hpp"
#include "supervisor/plan/compatibility.hpp"

namespace carousel::supervisor {

extern const command restart_command{
    "restart", "Restart stages (a rebuilt program takes over); no frame is lost",
    [](const command_parts& p) { return add_plain(p, require_able_successor); }};

}  // namespace carousel::supervisor
