#include "stages/display/picture_sequence.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <system_error>
#include <utility>

#include "core/errors.hpp"
#include "shm/fd_socket.hpp"
#include "stages/sdk/configuration.hpp"

namespace carousel::stages {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t most_digits = 20;

/// The length and the number of digits of the conversion that begins at pattern[at] == '%'. The length is 0
/// if the conversion is not supported.
struct conversion {
    std::size_t length = 0;
    std::size_t digits = 1;
};

conversion parse_conversion(std::string_view pattern, std::size_t at) {
    std::size_t end = at + 1;
    std::size_t digits = 0;
    const bool padded = end < pattern.size() && pattern[end] == '0';
    while (padded && end < pattern.size() && pattern[end] >= '0' && pattern[end] <= '9' &&
           digits <= most_digits) {
        digits = digits * 10 + static_cast<std::size_t>(pattern[end++] - '0');
    }
    if (end >= pattern.size() || pattern[end] != 'd' || digits > most_digits || (padded && digits == 0)) {
        return {};
    }
    return {end + 1 - at, padded ? digits : 1};
}

}  // namespace

picture_name::picture_name(std::string key, const std::string& pattern) {
    const auto refuse = [&](std::string_view why) {
        throw settings_error(
            key, fmt::format("{} = \"{}\": {}; expected a name like \"frame_%05d.png\"", key, pattern, why));
    };
    std::string* part = &before_;
    for (std::size_t at = 0; at < pattern.size(); ++at) {
        if (pattern[at] != '%') {
            *part += pattern[at];
        } else if (pattern.compare(at, 2, "%%") == 0) {
            *part += '%';
            ++at;
        } else {
            const conversion found = parse_conversion(pattern, at);
            if (found.length == 0) {
                refuse(
                    fmt::format("\"{}\" is not a placeholder for a number: use %d, or %0Nd with N from 1 to "
                                "20 (%% is a percent sign)",
                                pattern.substr(at, 4)));
            }
            if (part == &after_) {
                refuse("it has more than one placeholder for the frame's number");
            }
            digits_ = found.digits;
            part = &after_;
            at += found.length - 1;
        }
    }
    if (part == &before_) {
        refuse(
            "it has no placeholder for the frame's number, so every picture would replace the previous "
            "one");
    }
    if (after_.find('/') != std::string::npos) {
        refuse("the frame's number belongs in the file's name, not in the folder's");
    }
    const std::optional<picture_format> format = picture_format_of(after_);
    if (!format) {
        refuse(fmt::format("pictures are files that end in {}", picture_endings()));
    }
    if (const std::string_view why = why_not_written(*format); !why.empty()) refuse(why);
    format_ = *format;
    if (pattern.find('\0') != std::string::npos) {
        refuse("it has a zero byte in it");
    }
}

std::filesystem::path picture_name::of(u64 frame_number, const std::filesystem::path& folder) const {
    return folder / fmt::format("{}{:0{}}{}", before_, frame_number, digits_, after_);
}

std::optional<u64> picture_name::number_of(const std::string& file_name) const {
    const std::string before = before_.substr(before_.rfind('/') + 1);
    if (file_name.size() <= before.size() + after_.size() || !file_name.starts_with(before))
        return std::nullopt;
    const char* first = file_name.data() + before.size();
    const char* last = file_name.data() + file_name.size() - after_.size();
    u64 frame_number = 0;
    const auto [end, failed] = std::from_chars(first, last, frame_number);
    if (failed != std::errc() || end != last || of(frame_number, {}).filename() != file_name)
        return std::nullopt;
    return frame_number;
}

std::filesystem::path picture_name::parent(const std::filesystem::path& folder) const {
    return of(0, folder).parent_path();
}

kept_pictures::kept_pictures(picture_name names, fs::path folder, fs::path note, u64 keep)
    : names_(std::move(names)), folder_(std::move(folder)), keep_(keep) {
    // if the file exists already, its time is not changed
    const shm::unique_fd fd(::open(note.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    struct stat made {};
    if (!fd || ::fstat(fd.get(), &made) != 0)
        throw output_error(fmt::format("can't write {}: {}", note.string(), errno_text(errno)));
    begun_ = made.st_mtim;
}

bool kept_pictures::is_of_this_run(const fs::path& path) const noexcept {
    struct stat file {};
    if (::lstat(path.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) return false;
    return std::pair(file.st_mtim.tv_sec, file.st_mtim.tv_nsec) >= std::pair(begun_.tv_sec, begun_.tv_nsec);
}

// Called with the first frame and not earlier, because a standby may wait for hours while its predecessor
// still writes pictures.
void kept_pictures::scan_folder() {
    if (std::exchange(scanned_, true)) return;
    std::error_code failed;
    for (fs::directory_iterator at(names_.parent(folder_), failed), end; !failed && at != end;
         at.increment(failed))
        if (const auto frame_number = names_.number_of(at->path().filename().string());
            frame_number && is_of_this_run(at->path()))
            existing_.insert(*frame_number);
}

void kept_pictures::wrote(u64 frame_number) {
    const std::lock_guard lock(mutex_);
    scan_folder();
    existing_.insert(frame_number);
    newest_ = std::max(newest_, frame_number);
    remove_oldest();
}

void kept_pictures::passed(u64 frame_number) {
    const std::lock_guard lock(mutex_);
    scan_folder();
    newest_ = std::max(newest_, frame_number);
    remove_oldest();
}

void kept_pictures::remove_oldest() {
    while (!existing_.empty() && newest_ >= keep_ && *existing_.begin() <= newest_ - keep_) {
        const fs::path path = names_.of(*existing_.begin(), folder_);
        // an error is ignored: a picture that cannot be removed must not block the run
        if (is_of_this_run(path)) ::unlink(path.c_str());
        existing_.erase(existing_.begin());
    }
}

}  // namespace carousel::stages
