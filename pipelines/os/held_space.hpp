#pragma once
// A space (`carousel hold`) for as long as this object lives, under a name that nobody else has. Its
// holder is a child of this process and dies with it (PR_SET_PDEATHSIG), so that nothing is left behind
// however we end.

#include <string>

#include "core/types.hpp"

namespace carousel::supervisor {

class held_space {
public:
    /// Returns when programs can open it. Throws config_error: no program, no room, no answer in 10 s.
    /// `device`: as of `carousel hold --device`.
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
