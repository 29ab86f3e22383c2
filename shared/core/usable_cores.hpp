#pragma once

namespace carousel {

/// Threads that can compute at once: the processors of this process's affinity mask, or fewer where a CPU
/// quota of its control groups allows fewer (rounded up). At least 1.
[[nodiscard]] unsigned usable_cores() noexcept;
/// The same without the quota.
[[nodiscard]] unsigned affine_cores() noexcept;

}  // namespace carousel
