#include "core/unexpected.hpp"

#include <new>
#include <system_error>

namespace carousel {

std::string unexpected_text(const std::exception& e) {
    if (dynamic_cast<const std::system_error*>(&e) != nullptr)  // includes std::filesystem::filesystem_error
        return std::string(e.what()) + ": refused by the operating system";
    if (dynamic_cast<const std::bad_alloc*>(&e) != nullptr)
        return "out of memory: end other programs, or raise this process's limit (ulimit -v, its cgroup)";
    return std::string(e.what()) + ": this is a bug in Carousel";
}

}  // namespace carousel
