#include "core/usable_cores.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <exception>

#include "core/cgroup.hpp"

namespace carousel {

unsigned affine_cores() noexcept {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    return static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
}

unsigned usable_cores() noexcept {
    const unsigned affine = affine_cores();
    try {
        const auto quota = cgroups::of().cpu();
        if (quota && quota->cpus < affine) return std::max(1U, static_cast<unsigned>(std::ceil(quota->cpus)));
    } catch (const std::exception&) {  // no memory for the text: the affinity mask alone is a valid result
    }
    return affine;
}

}  // namespace carousel
