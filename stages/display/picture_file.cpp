#include "stages/display/picture_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include <fmt/format.h>

#include "core/errors.hpp"
#include "core/output_file.hpp"

namespace carousel::stages {
namespace {

[[noreturn]] void fail(std::string_view what, const std::filesystem::path& where, int error_number) {
    throw_output_error(
        where.string(), error_number,
        fmt::format("can't {} {}: {}, or run without pictures (--out '')", what, where.string(),
                    output_cause(error_number, "choose a folder that this user may write to (--out)")));
}

}  // namespace

void write_picture_file(const std::filesystem::path& path, std::span<const std::byte> bytes,
                        const std::function<bool()>& wanted, std::span<const std::byte> rest) {
    if (const int failed = write_output_file(path.string(), {bytes, rest}, wanted); failed != 0)
        fail("write the picture", path, failed);
}

void prepare_folder(const std::filesystem::path& folder) {
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    if (failed) {
        fail("create the folder for pictures", folder, failed.value());
    }
    const std::string probe = temporary_output((folder / "probe").string(), ::getpid());
    const int fd = ::open(probe.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) {
        fail("write to the folder for pictures", folder, errno);
    }
    ::close(fd);
    ::unlink(probe.c_str());
    for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
        if (is_abandoned_output(entry.path().filename().string())) {
            ::unlink(entry.path().c_str());
        }
    }
}

}  // namespace carousel::stages
