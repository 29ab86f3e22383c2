#include "stages/display/picture_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <string_view>

#include <fmt/format.h>

#include "core/disk_full.hpp"
#include "core/whole_io.hpp"

namespace carousel::stages {
namespace {

constexpr std::string_view temporary_mark = ".carousel-tmp.";

[[noreturn]] void fail(std::string_view what, const std::filesystem::path& where, int error_number) {
    const char* hint =
        error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG
            ? "make room on that disk, or run without pictures (--out '')"
            : "choose a folder that this user may write to (--out), or run without pictures (--out '')";
    throw_output_error(
        where.string(), error_number,
        fmt::format("can't {} {}: {}; {}", what, where.string(), errno_text(error_number), hint));
}

std::filesystem::path temporary_of(const std::filesystem::path& path) {
    return path.parent_path() / fmt::format(".{}{}{}", path.filename().string(), temporary_mark, getpid());
}

/// Is `name` a temporary file whose process is gone?
bool left_behind(const std::string& name) {
    const auto at = name.rfind(temporary_mark);
    if (at == std::string::npos) {
        return false;
    }
    pid_t pid = 0;
    const char* first = name.c_str() + at + temporary_mark.size();
    const auto [end, failed] = std::from_chars(first, name.c_str() + name.size(), pid);
    return failed == std::errc() && end == name.c_str() + name.size() && pid > 0 && kill(pid, 0) != 0 &&
           errno == ESRCH;
}

int write_all(int fd, std::span<const std::byte> bytes) {
    return write_whole(fd, bytes.data(), bytes.size()) ? 0 : errno;
}

}  // namespace

void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes,
                           const std::function<bool()>& wanted, std::span<const std::byte> rest) {
    const auto temporary = temporary_of(path);
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) {
        fail("write the picture", path, errno);
    }
    int failed = write_all(fd, bytes);
    if (failed == 0) failed = write_all(fd, rest);
    if (::close(fd) != 0 && failed == 0) {
        failed = errno;  // some file systems report a full disk only here
    }
    if (failed == 0 && wanted && !wanted()) {
        ::unlink(temporary.c_str());
        return;
    }
    if (failed == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) {
        failed = errno;
    }
    if (failed != 0) {
        ::unlink(temporary.c_str());
        fail("write the picture", path, failed);
    }
}

void prepare_folder(const std::filesystem::path& folder) {
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    if (failed) {
        fail("make the folder for pictures", folder, failed.value());
    }
    const auto probe = temporary_of(folder / "probe");
    const int fd = ::open(probe.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) {
        fail("write to the folder for pictures", folder, errno);
    }
    ::close(fd);
    ::unlink(probe.c_str());
    for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
        if (left_behind(entry.path().filename().string())) {
            ::unlink(entry.path().c_str());
        }
    }
}

}  // namespace carousel::stages
