#pragma once
// The seeded bugs that are compiled into a primitive, one in each control program, and the rule by which its
// histories must fail. CMakeLists.txt lists them.
#include <vector>

#include "campaign.hpp"

namespace carousel::test {

struct control {
    const char* bug;
    const char* rule;
    one_history of;
};
extern const std::vector<control> controls;

}  // namespace carousel::test
