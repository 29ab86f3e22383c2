// `carousel cont`.

#include "cli/clients.hpp"

namespace carousel::supervisor {

extern const command cont_command{"cont", "Continue paused stages", add_plain};

}  // namespace carousel::supervisor
