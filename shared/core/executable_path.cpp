#include "core/executable_path.hpp"

#include <filesystem>
#include <system_error>

namespace carousel {

std::string executable_path() {
    std::error_code failed;
    return std::filesystem::read_symlink("/proc/self/exe", failed).string();
}

std::string executable_folder() { return std::filesystem::path(executable_path()).parent_path().string(); }

}  // namespace carousel
