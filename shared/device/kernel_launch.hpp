#pragma once
// A kernel launch as plain data, for code that passes it on without a dependency on CUDA.

#include <array>
#include <cstddef>

#include "core/types.hpp"

namespace carousel::device {

struct kernel_launch {
    static constexpr std::size_t most = 16;
    struct argument {
        const void* at = nullptr;
        u32 bytes = 0;
    };
    const char* name = "";         ///< for messages
    const void* kernel = nullptr;  ///< the function's address on the host
    std::array<u32, 3> blocks{1, 1, 1}, threads{1, 1, 1};
    u32 shared_bytes = 0;
    bool overlaps = false;  ///< the kernel may begin before its predecessor has ended, and waits for it
                            ///< itself
    std::array<argument, most> arguments{};
    u32 count = 0;  ///< number of arguments
};

}  // namespace carousel::device
