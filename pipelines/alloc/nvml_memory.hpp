#pragma once
// Free memory of a GPU, without a context on it: read from the driver's management library (NVML), if there
// is one.

#include <optional>
#include <string>

#include "core/types.hpp"

namespace carousel {

/// Returns the free bytes of the GPU `uuid` (32 hexadecimal digits). Empty if there is no library, or if it
/// doesn't know that GPU (a MIG slice).
[[nodiscard]] std::optional<u64> nvml_free_bytes(const std::string& uuid);

}  // namespace carousel
