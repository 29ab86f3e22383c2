#pragma once
// The crash points of crash_point.hpp for tests that run participants as objects or threads of one process: a
// function of the test is called between two steps.

#include <functional>

#include "core/crash_point.hpp"

namespace carousel {

/// Sets the function that is called at every crash point, on the thread that passes it; an empty function
/// removes it. To be called while no other thread runs.
void set_crash_hook(std::function<void(crash_point)> at_each);

}  // namespace carousel
