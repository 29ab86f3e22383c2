#include "stages/encode/units.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "core/errors.hpp"
#include "core/io.hpp"

namespace carousel::stages {

std::string_view name_of(container c) noexcept {
    switch (c) {
        case container::mp4:
            return "mp4";
        case container::matroska:
            return "mkv";
        case container::hls:
            return "hls";
        case container::mpegts:
            return "mpegts";
        case container::rtsp:
            return "rtsp";
        case container::flv:
            return "flv";
    }
    return "";
}

u64 heading_bytes_of(int fd, container format) {
    return format == container::matroska ? detail::matroska_heading_bytes(fd) : detail::mp4_heading_bytes(fd);
}

unit_contents read_units(int fd, u64 heading_bytes, container format) {
    return format == container::matroska ? detail::read_clusters(fd, heading_bytes)
                                         : detail::read_fragments(fd, heading_bytes);
}

namespace detail {

u64 number(const u8* at, std::size_t bytes) noexcept {
    u64 v = 0;
    for (std::size_t k = 0; k < bytes; ++k) v = v << 8U | at[k];
    return v;
}

void store(u8* at, std::size_t bytes, u64 v) noexcept {
    for (std::size_t k = 0; k < bytes; ++k) at[k] = static_cast<u8>(v >> 8U * (bytes - 1 - k));
}

std::size_t read_some(int fd, u8* to, std::size_t count, u64 at) {
    const ssize_t got = read_whole_at(fd, to, count, at);
    if (got < 0) throw output_error(fmt::format("reading the encoded file: {}", errno_text(errno)));
    return static_cast<std::size_t>(got);
}

u64 size_of(int fd) {
    struct stat info {};
    if (::fstat(fd, &info) != 0)
        throw output_error(fmt::format("inspecting the encoded file: {}", errno_text(errno)));
    return static_cast<u64>(info.st_size);
}

}  // namespace detail
}  // namespace carousel::stages
