// `carousel cont`.

#include "cli/clients.hpp"

namespace carousel::supervisor {

const command cont_command{"cont", "Let held stages go on", add_plain};

}  // namespace carousel::supervisor
