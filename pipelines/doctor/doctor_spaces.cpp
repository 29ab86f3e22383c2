// doctor: reports whether this machine can hold spaces for programs that are not stages, and the state of
// existing spaces.
#include <fmt/format.h>

#include "core/errors.hpp"
#include "doctor/doctor.hpp"
#include "ipc/memory.hpp"
#include "ipc/spaces.hpp"

namespace carousel::supervisor {

void examine_spaces(std::vector<finding>& all) {
    try {
        (void)ipc::memory::make("doctor", 1 << 20);  // created, sealed, mapped and removed
    } catch (const error& e) {
        all.push_back(
            {"spaces", verdict::warn, e.what(),
             "pipelines run without it; `carousel hold` needs sealed memfds (Linux 3.17 or newer)"});
        return;
    }
    u32 held = 0, orphaned = 0, dead = 0;
    for (const ipc::found_space& s : ipc::spaces_here()) {
        held += s.state == ipc::space_state::held ? 1U : 0U;
        orphaned += s.state == ipc::space_state::orphaned ? 1U : 0U;
        dead += s.state == ipc::space_state::dead ? 1U : 0U;
    }
    all.push_back(
        {"spaces", orphaned > 0 ? verdict::warn : verdict::ok,
         fmt::format("memory can be sealed and passed on; {} held, {} without a holder, {} dead (in {})",
                     held, orphaned, dead, ipc::spaces_folder()),
         orphaned > 0 ? "`carousel hold NAME` takes over a space without a holder (`carousel ps` lists them)"
         : dead > 0   ? "`carousel clean` removes the files of dead spaces"
                      : ""});
}

}  // namespace carousel::supervisor
