#include "stages/sdk/output_directory.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "core/errors.hpp"

namespace carousel {

std::string make_output_directory(const std::string& path) {
    if (path.empty())
        throw output_error(
            "this run has no output directory: the directory in which it was started no longer existed; "
            "start the "
            "run in a directory that exists");
    std::error_code failed;
    std::filesystem::create_directories(path, failed);
    if (failed)
        throw_output_error(
            path, failed.value(),
            fmt::format("creating the output directory {}: {}; start the run in a directory that "
                        "this user can write to",
                        path, errno_text(failed.value())));
    return path;
}

}  // namespace carousel
