#include "device/described.hpp"

namespace carousel::device {

const char* name_of(memory_kind kind) noexcept { return enum_name(kind, "unknown"); }

}  // namespace carousel::device
