// Selects the instruction set at run time.
#include <cstdlib>
#include <cstring>

#include "kernels/cpu/entries.hpp"

namespace carousel::kernels::cpu {

namespace baseline {
extern const entries table;
}
#if defined(CAROUSEL_X86_VARIANTS)
namespace avx2 {
extern const entries table;
}
namespace avx512 {
extern const entries table;
}
#endif

const entries* find_entries(std::string_view name) {
    if (name == "baseline") return &baseline::table;
#if defined(CAROUSEL_X86_VARIANTS)
    __builtin_cpu_init();
    const bool fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (name == "avx2" && fma) return &avx2::table;
    if (name == "avx512" && fma && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
        return &avx512::table;
    }
#endif
    return nullptr;
}

const entries& best_entries() {
    static const entries& chosen = []() -> const entries& {
        if (const char* requested = std::getenv("CAROUSEL_SIMD")) {
            if (const entries* e = find_entries(requested)) return *e;
        }
        for (const char* name : {"avx512", "avx2"}) {
            if (const entries* e = find_entries(name)) return *e;
        }
        return baseline::table;
    }();
    return chosen;
}

}  // namespace carousel::kernels::cpu
