#pragma once
// The named steps of crash_point.hpp for tests that run participants as objects or threads of one process:
// what shall happen between two steps is done by a function.

#include <functional>

#include "core/crash_point.hpp"

namespace carousel {

/// `at_each` is called at every crash point, on the thread that passes it; empty: none any more. Set it while
/// no other thread runs.
void set_crash_hook(std::function<void(crash_point)> at_each);

}  // namespace carousel
