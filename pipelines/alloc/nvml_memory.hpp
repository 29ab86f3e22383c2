#pragma once
// What is free of a GPU's memory, without a context on it: the driver's management library says it, where
// there is one.

#include <optional>
#include <string>

#include "core/types.hpp"

namespace carousel {

/// Bytes. `uuid`: 32 hexadecimal digits. Nothing: no library, or it doesn't know that GPU (a MIG slice).
[[nodiscard]] std::optional<u64> nvml_free_bytes(const std::string& uuid);

}  // namespace carousel
