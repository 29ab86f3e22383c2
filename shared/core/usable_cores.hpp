#pragma once

namespace carousel {

/// Number of threads that can compute concurrently: the processors of this process's affinity mask, or fewer
/// if a CPU quota of its control groups allows fewer (rounded up). At least 1.
[[nodiscard]] unsigned usable_cores() noexcept;
/// The same, ignoring the quota.
[[nodiscard]] unsigned affine_cores() noexcept;

}  // namespace carousel
