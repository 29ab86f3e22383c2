#include "dead_letters/traceback.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "core/errors.hpp"
#include "dead_letters/dead_letter.hpp"
#include "shm/runtime_folder.hpp"

namespace carousel::run {
namespace {

namespace fs = std::filesystem;
constexpr const char* prefix = "traceback-";

std::string path_of(const std::string& runtime_directory, std::string_view stage, u64 ring_sequence) {
    return fmt::format("{}/{}{}.txt", dead_letters_folder(runtime_directory), prefix,
                       dead_letter_name(stage, ring_sequence));
}

u32 tracebacks_in(const std::string& folder) {
    u32 count = 0;
    std::error_code failed;
    for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
        if (at->path().filename().string().starts_with(prefix)) ++count;
    return count;
}

}  // namespace

void keep_traceback(const std::string& runtime_directory, std::string_view stage, u64 ring_sequence,
                    const std::string& text) {
    const std::string folder = dead_letters_folder(runtime_directory);
    const std::string path = path_of(runtime_directory, stage, ring_sequence);
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
        throw output_error(
            fmt::format("the traceback is not saved: creating {}: {}", folder, errno_text(errno)));
    std::error_code failed;
    if (!fs::exists(path, failed) && tracebacks_in(folder) >= most_tracebacks) return;
    try {
        shm::write_whole_file(path, text);
    } catch (const error& e) {
        throw output_error(fmt::format("the traceback is not saved: {}", e.what()));
    }
}

void move_traceback(const std::string& runtime_directory, std::string_view stage, u64 ring_sequence,
                    const std::string& dead_letter_folder) noexcept {
    // Most frames have no traceback.
    (void)std::rename(path_of(runtime_directory, stage, ring_sequence).c_str(),
                      (dead_letter_folder + "/traceback.txt").c_str());
}

}  // namespace carousel::run
