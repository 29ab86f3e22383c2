#include "stages/display/film_encoder.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "core/errors.hpp"
#include "core/io.hpp"

namespace carousel::stages {
namespace {

constexpr u64 box_heading = 8;
constexpr std::size_t longest_moof = 4096;  // largest size of a moof box; with one track and one frame it has
                                            // about 100 bytes

u64 number(const u8* at, std::size_t bytes) noexcept {
    u64 v = 0;
    for (std::size_t k = 0; k < bytes; ++k) v = v << 8U | at[k];
    return v;
}

void store(u8* at, std::size_t bytes, u64 v) noexcept {
    for (std::size_t k = 0; k < bytes; ++k) at[k] = static_cast<u8>(v >> 8U * (bytes - 1 - k));
}

/// A box in memory; the size is 0 if the box is absent or cut off.
struct box {
    std::size_t at = 0, size = 0;
};

bool is_kind(const u8* at, std::string_view kind) noexcept {
    return std::equal(kind.begin(), kind.end(), at + 4, [](char a, u8 b) { return static_cast<u8>(a) == b; });
}

box find(std::span<const u8> in, std::size_t at, std::size_t end, std::string_view kind) noexcept {
    while (at + box_heading <= end) {
        const std::size_t size = number(&in[at], 4);
        if (size < box_heading || size > end - at) return {};
        if (is_kind(&in[at], kind)) return {at, size};
        at += size;
    }
    return {};
}

/// The position and length (4 or 8 bytes) of the decode time in a fragment.
box find_time(std::span<const u8> fragment) noexcept {
    if (fragment.size() < box_heading || !is_kind(fragment.data(), "moof")) return {};
    const std::size_t moof = number(fragment.data(), 4);
    if (moof > fragment.size()) return {};
    const box traf = find(fragment, box_heading, moof, "traf");
    if (traf.size == 0) return {};
    const box tfdt = find(fragment, traf.at + box_heading, traf.at + traf.size, "tfdt");
    if (tfdt.size < 16) return {};
    const std::size_t length = fragment[tfdt.at + 8] == 1 ? 8 : 4;
    return tfdt.size >= 12 + length ? box{tfdt.at + 12, length} : box{};
}

}  // namespace

u64 heading_bytes_of(int fd) {
    u64 at = 0;
    for (std::array<u8, box_heading> bytes{};;) {
        const ssize_t got = read_whole_at(fd, bytes.data(), bytes.size(), at);
        if (got < 0) throw output_error(fmt::format("reading the film: {}", errno_text(errno)));
        if (got < static_cast<ssize_t>(bytes.size()) || is_kind(bytes.data(), "moof")) return at;
        const u64 size = number(bytes.data(), 4);
        if (size < box_heading) return at;
        at += size;
    }
}

film_contents read_film(int fd, u64 heading_bytes) {
    struct stat info {};
    if (::fstat(fd, &info) != 0)
        throw output_error(fmt::format("inspecting the film: {}", errno_text(errno)));
    const u64 end = static_cast<u64>(info.st_size);
    film_contents out{heading_bytes, {}, 0};
    std::array<u8, longest_moof + box_heading> bytes{};
    while (out.bytes + box_heading <= end) {
        const ssize_t got = read_whole_at(fd, bytes.data(), bytes.size(), out.bytes);
        if (got < 0) throw output_error(fmt::format("reading the film: {}", errno_text(errno)));
        const std::span<const u8> seen(bytes.data(), static_cast<std::size_t>(got));
        const box time = find_time(seen);
        const u64 moof = time.size == 0 ? 0 : number(bytes.data(), 4);
        if (time.size == 0 || moof + box_heading > seen.size() || !is_kind(&bytes[moof], "mdat")) break;
        const u64 whole = moof + number(&bytes[moof], 4);
        if (whole > end - out.bytes) break;
        out.last = std::max(out.last.value_or(0), number(&bytes[time.at], time.size) / film_ticks);
        ++out.frames;
        out.bytes += whole;
    }
    return out;
}

bool stamp_fragment(std::span<u8> fragment, u64 frame_number) noexcept {
    const box time = find_time(fragment);
    if (time.size != 8) return false;
    const std::size_t moof = number(fragment.data(), 4);
    if (moof + box_heading > fragment.size() || !is_kind(&fragment[moof], "mdat") ||
        moof + number(&fragment[moof], 4) != fragment.size())
        return false;
    store(&fragment[time.at], time.size, frame_number * film_ticks);
    const box mfhd = find(fragment, box_heading, moof, "mfhd");
    if (mfhd.size == 16) store(&fragment[mfhd.at + 12], 4, frame_number + 1);  // fragments count from 1
    return true;
}

}  // namespace carousel::stages
