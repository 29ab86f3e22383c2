#pragma once
// A seeded bug that is compiled into a primitive, and the rule by which its histories must fail. Each control
// build has its own (CMakeLists.txt).
#include "campaign.hpp"

namespace carousel::test {

struct control {
    const char* bug;
    const char* rule;
    one_history of;
};
extern const control this_control;

}  // namespace carousel::test
