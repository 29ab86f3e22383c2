#include "stages/display/png.hpp"

#include <fcntl.h>
#include <spng.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>

#include "core/disk_full.hpp"

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
    while (!bytes.empty()) {
        const ssize_t n = ::write(fd, bytes.data(), bytes.size());
        if (n < 0 && errno != EINTR) {
            return errno;
        }
        bytes = bytes.subspan(n > 0 ? static_cast<std::size_t>(n) : 0);
    }
    return 0;
}

void expect_ok(int status, const char* step) {
    if (status != 0) {
        throw output_error(
            fmt::format("can't encode a picture as PNG ({}): {}", step, spng_strerror(status)));
    }
}

}  // namespace

std::vector<std::byte> encode_png(std::span<const std::byte> rgba, u32 width, u32 height) {
    CAROUSEL_ASSERT(rgba.size() == std::size_t{width} * height * 4);
    const std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> png(spng_ctx_new(SPNG_CTX_ENCODER), spng_ctx_free);
    if (!png) {
        throw output_error("can't encode a picture as PNG: out of memory");
    }
    expect_ok(spng_set_option(png.get(), SPNG_ENCODE_TO_BUFFER, 1), "target");
    // On rendered pictures one fixed filter costs no time, since what it leaves packs faster, and saves up to
    // a third; a search among the filters takes three times as long for a few per cent.
    expect_ok(spng_set_option(png.get(), SPNG_IMG_COMPRESSION_LEVEL, 1), "level");
    expect_ok(spng_set_option(png.get(), SPNG_FILTER_CHOICE, SPNG_FILTER_CHOICE_UP), "filter");
    spng_ihdr header{};
    header.width = width;
    header.height = height;
    header.bit_depth = 8;
    header.color_type = SPNG_COLOR_TYPE_TRUECOLOR_ALPHA;
    expect_ok(spng_set_ihdr(png.get(), &header), "header");
    expect_ok(spng_set_srgb(png.get(), 0), "colour space");
    expect_ok(spng_encode_image(png.get(), rgba.data(), rgba.size(), SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE),
              "pixels");
    std::size_t bytes = 0;
    int status = 0;
    const std::unique_ptr<void, void (*)(void*)> buffer(spng_get_png_buffer(png.get(), &bytes, &status),
                                                        std::free);
    expect_ok(status, "result");
    const auto* first = static_cast<const std::byte*>(buffer.get());
    return {first, first + bytes};
}

void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes,
                           const std::function<bool()>& wanted) {
    const auto temporary = temporary_of(path);
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) {
        fail("write the picture", path, errno);
    }
    int failed = write_all(fd, bytes);
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
