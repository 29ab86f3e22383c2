#include "runs/driver_leftovers.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace carousel::supervisor {

u32 remove_driver_leftovers(i32 pid, const char* folder) noexcept try {
    const std::string prefix = fmt::format("cuda.shm.{:x}.{:x}.", ::getuid(), static_cast<u32>(pid));
    u32 removed = 0;
    std::error_code why;
    for (const auto& file : std::filesystem::directory_iterator(folder, why)) {
        if (!file.path().filename().string().starts_with(prefix)) continue;
        std::error_code failed;
        if (std::filesystem::remove(file.path(), failed)) ++removed;
    }
    return removed;
} catch (...) {  // out of memory, or a changing folder: the files take little space, so the run continues
    return 0;
}

}  // namespace carousel::supervisor
