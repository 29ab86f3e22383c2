#include "stages/display/picture_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>

#include "core/errors.hpp"
#include "core/output_file.hpp"

#ifdef CAROUSEL_WITH_JPEG
#include <turbojpeg.h>

#include <memory>
#endif

namespace carousel::stages {
namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
    const auto* first = reinterpret_cast<const std::byte*>(text.data());
    return {first, first + text.size()};
}

/// The file begins with the magic, the version, the header's length (two bytes) and the header. Their total
/// size is a multiple of 64 bytes, so that the pixels are aligned if the file is mapped.
std::vector<std::byte> npy_header(u32 width, u32 height) {
    std::string header =
        fmt::format("{{'descr': '|u1', 'fortran_order': False, 'shape': ({}, {}, 4), }}", height, width);
    constexpr std::size_t before = 10, alignment = 64;
    header.append(alignment - 1 - (before + header.size()) % alignment, ' ');
    header += '\n';
    std::string out = "\x93NUMPY";
    out += {'\x01', '\x00'};
    out += {static_cast<char>(header.size() & 0xFFU), static_cast<char>(header.size() >> 8U)};
    return bytes_of(out + header);
}

#ifdef CAROUSEL_WITH_JPEG
constexpr int jpeg_quality = 90;

std::vector<std::byte> encode_jpeg(std::span<const std::byte> rgba, u32 width, u32 height) {
    const std::unique_ptr<void, int (*)(tjhandle)> jpeg(tjInitCompress(), tjDestroy);
    unsigned char* out = nullptr;
    unsigned long length = 0;
    const bool failed = !jpeg || tjCompress2(jpeg.get(), reinterpret_cast<const unsigned char*>(rgba.data()),
                                             static_cast<int>(width), 0, static_cast<int>(height), TJPF_RGBX,
                                             &out, &length, TJSAMP_420, jpeg_quality, 0) != 0;
    const std::unique_ptr<unsigned char, void (*)(unsigned char*)> owned(out, tjFree);
    if (failed)
        throw output_error(fmt::format("can't encode a picture of {} x {} as JPEG: {}", width, height,
                                       jpeg ? tjGetErrorStr2(jpeg.get()) : "out of memory"));
    return bytes_of({reinterpret_cast<const char*>(out), length});
}
#else
std::vector<std::byte> encode_jpeg(std::span<const std::byte>, u32, u32) {
    throw output_error(std::string(why_not_written(picture_format::jpeg)));
}
#endif

[[noreturn]] void fail(std::string_view what, const std::filesystem::path& where, int error_number) {
    throw_output_error(
        where.string(), error_number,
        fmt::format("can't {} {}: {}, or run without pictures (--out '')", what, where.string(),
                    output_cause(error_number, "choose a folder that this user may write to (--out)")));
}

}  // namespace

std::optional<picture_format> picture_format_of(std::string_view name) {
    if (name.ends_with(".png")) return picture_format::png;
    if (name.ends_with(".jpg") || name.ends_with(".jpeg")) return picture_format::jpeg;
    if (name.ends_with(".rgba")) return picture_format::rgba;
    if (name.ends_with(".npy")) return picture_format::npy;
    return std::nullopt;
}

std::string_view picture_endings() noexcept { return ".png, .jpg, .jpeg, .rgba or .npy"; }

std::string_view why_not_written([[maybe_unused]] picture_format format) noexcept {
#ifndef CAROUSEL_WITH_JPEG
    if (format == picture_format::jpeg)
        return "this build writes no JPEG: install libturbojpeg (apt-get install libturbojpeg0-dev) and "
               "build "
               "again, or write .png";
#endif
    return "";
}

encoded_picture encode_picture(picture_format format, std::span<const std::byte> rgba, u32 width, u32 height,
                               const part_runner& run) {
    switch (format) {
        case picture_format::png:
            return {encode_png(rgba, width, height, run)};
        case picture_format::jpeg:
            return {encode_jpeg(rgba, width, height)};
        case picture_format::rgba:
            return {{}, true};
        case picture_format::npy:
            return {npy_header(width, height), true};
    }
    return {};
}

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
