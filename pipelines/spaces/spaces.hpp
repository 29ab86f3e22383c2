#pragma once
// Spaces (shared/ipc) on the command line; implements runs/spaces.hpp, which the commands for runs use.

#include <string>

#include "core/types.hpp"

namespace carousel::supervisor {

/// Throws config_error if a run of that name is alive or continues without its supervisor, because the space
/// belongs to that run.
void require_no_run(const std::string& name);

// A space (`carousel hold`) with the lifetime of this object and a unique name. The space's holder is a child
// of this process and dies with this process (PR_SET_PDEATHSIG), so nothing is left, however this process
// ends.

class held_space {
public:
    /// Returns when programs can open the space. `device`: in the form that `carousel hold --device` takes.
    /// Throws config_error if there is no program, no room, or no reply in 10 s; device_error if the GPU is
    /// missing or unusable.
    held_space(const std::string& programs, const std::string& purpose, const std::string& device = "cpu");
    ~held_space();
    held_space(const held_space&) = delete;
    held_space& operator=(const held_space&) = delete;
    [[nodiscard]] const std::string& name() const noexcept { return name_; }

private:
    std::string name_;
    i32 pid_ = 0;
};

}  // namespace carousel::supervisor
