#include "core/user_path.hpp"

#include <fmt/format.h>

#include <cerrno>

#include "core/errors.hpp"

namespace carousel {
namespace fs = std::filesystem;

fs::path working_directory() {
    std::error_code failed;
    fs::path here = fs::current_path(failed);
    if (!failed) return here;
    throw config_error(fmt::format("the working directory can't be read: {}; {}", errno_text(failed.value()),
                                   failed.value() == ENOENT ? "it was deleted: change to a folder that exists"
                                                            : "change to a folder that this user may read"));
}

fs::path absolute_path(const fs::path& path) {
    return path.is_absolute() ? path : working_directory() / path;
}

std::string as_pattern(std::string_view text) {
    std::string out;
    for (const char c : text) out.append(c == '%' ? 2 : 1, c);
    return out;
}

std::optional<std::string> literal_text(std::string_view pattern) {
    std::string out;
    for (std::size_t at = 0; at < pattern.size(); ++at) {
        out += pattern[at];
        if (pattern[at] == '%' && (++at == pattern.size() || pattern[at] != '%')) return std::nullopt;
    }
    return out;
}

std::string absolute_pattern(const std::string& pattern) {
    const fs::path path(pattern);
    const fs::path whole =
        path.is_absolute() ? path : fs::path(as_pattern(working_directory().string())) / path;
    return whole.lexically_normal().string();
}

}  // namespace carousel
