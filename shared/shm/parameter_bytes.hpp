#pragma once
// How large a set of parameters may be. A header of its own: what users include of parameters needs this
// number and nothing else of the control block.

#include "core/types.hpp"

namespace carousel::shm {

inline constexpr u32 max_parameter_bytes = 256;

}  // namespace carousel::shm
