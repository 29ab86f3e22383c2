#pragma once
// Maximum size of a set of parameters. A separate header, so that the headers that users include for
// parameters need not include the control block.

#include "core/types.hpp"

namespace carousel::shm {

inline constexpr u32 max_parameter_bytes = 256;

}  // namespace carousel::shm
