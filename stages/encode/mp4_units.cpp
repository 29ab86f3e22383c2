#include <algorithm>
#include <array>
#include <string_view>

#include "stages/encode/units.hpp"

namespace carousel::stages {
namespace {

using detail::number;
using detail::store;

constexpr u64 box_heading = 8;
constexpr std::size_t longest_moof = 4096;  // largest size of a moof box; with one track and one frame it has
                                            // about 100 bytes

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

/// The positions of a fragment's decode time (4 or 8 bytes) and sequence number (4 bytes).
struct stamps {
    box time, sequence;
    std::size_t moof = 0;  ///< 0: the bytes do not begin with a fragment
};

stamps find_stamps(std::span<const u8> fragment) noexcept {
    if (fragment.size() < box_heading || !is_kind(fragment.data(), "moof")) return {};
    const std::size_t moof = number(fragment.data(), 4);
    if (moof > fragment.size()) return {};
    const box mfhd = find(fragment, box_heading, moof, "mfhd");
    const box traf = find(fragment, box_heading, moof, "traf");
    if (traf.size == 0 || mfhd.size != 16) return {};
    const box tfdt = find(fragment, traf.at + box_heading, traf.at + traf.size, "tfdt");
    if (tfdt.size < 16) return {};
    const std::size_t length = fragment[tfdt.at + 8] == 1 ? 8 : 4;
    if (tfdt.size < 12 + length) return {};
    return {{tfdt.at + 12, length}, {mfhd.at + 12, 4}, moof};
}

/// The sequence number has only the lower half of a frame number. Without own times, the decode time has all
/// of it.
u64 number_of(u64 sequence, u64 time) noexcept {
    const u64 by_time = time / mp4_ticks;
    return static_cast<u32>(by_time + 1) == sequence ? by_time : static_cast<u32>(sequence - 1);
}

}  // namespace

u64 detail::mp4_heading_bytes(int fd) {
    u64 at = 0;
    for (std::array<u8, box_heading> bytes{};;) {
        const std::size_t got = read_some(fd, bytes.data(), bytes.size(), at);
        if (got < bytes.size() || is_kind(bytes.data(), "moof")) return at;
        const u64 size = number(bytes.data(), 4);
        if (size < box_heading) return at;
        at += size;
    }
}

unit_contents detail::read_fragments(int fd, u64 heading_bytes) {
    const u64 end = size_of(fd);
    unit_contents out{heading_bytes, {}, {}, 0};
    std::array<u8, longest_moof + box_heading> bytes{};
    while (out.bytes + box_heading <= end) {
        const std::span<const u8> seen(bytes.data(), read_some(fd, bytes.data(), bytes.size(), out.bytes));
        const stamps s = find_stamps(seen);
        if (s.moof == 0 || s.moof + box_heading > seen.size() || !is_kind(&bytes[s.moof], "mdat")) break;
        const u64 whole = s.moof + number(&bytes[s.moof], 4);
        if (whole > end - out.bytes) break;
        const u64 frame_number =
            number_of(number(&bytes[s.sequence.at], 4), number(&bytes[s.time.at], s.time.size));
        if (!out.first) out.first = frame_number;
        out.last = std::max(out.last.value_or(0), frame_number);
        ++out.frames;
        out.bytes += whole;
    }
    return out;
}

bool stamp_fragment(std::span<u8> fragment, u64 frame_number, u64 time) noexcept {
    const stamps s = find_stamps(fragment);
    if (s.moof == 0 || s.time.size != 8) return false;
    if (s.moof + box_heading > fragment.size() || !is_kind(&fragment[s.moof], "mdat") ||
        s.moof + number(&fragment[s.moof], 4) != fragment.size())
        return false;
    store(&fragment[s.time.at], s.time.size, time);
    store(&fragment[s.sequence.at], s.sequence.size, frame_number + 1);  // fragments count from 1
    return true;
}

}  // namespace carousel::stages
