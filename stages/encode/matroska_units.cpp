#include <algorithm>
#include <array>
#include <bit>

#include "stages/encode/units.hpp"

namespace carousel::stages {
namespace {

using detail::number;
using detail::store;

constexpr u64 segment_id = 0x18538067, cluster_id = 0x1F43B675;
constexpr u64 unknown_size = ~u64{0};
constexpr std::size_t longest_head = 12;  // identifier (4) and size (8)

/// The head of an element: its identifier, and the size of its content.
struct element {
    u64 id = 0, size = 0;
    std::size_t head = 0;  ///< bytes of identifier and size; 0: cut off, or not an element
};

element parse(std::span<const u8> in) noexcept {
    if (in.empty() || in[0] < 0x10) return {};
    const std::size_t id_bytes = static_cast<std::size_t>(std::countl_zero(in[0])) + 1;
    if (in.size() <= id_bytes || in[id_bytes] == 0) return {};
    const std::size_t size_bytes = static_cast<std::size_t>(std::countl_zero(in[id_bytes])) + 1;
    if (in.size() < id_bytes + size_bytes) return {};
    const u64 mask = (u64{1} << (7 * size_bytes)) - 1;
    const u64 size = number(&in[id_bytes], size_bytes) & mask;
    return {number(in.data(), id_bytes), size == mask ? unknown_size : size, id_bytes + size_bytes};
}

// The stamp: the Void element's identifier, its size, a mark, the frame number.
constexpr std::array<u8, 8> stamp_head = {0xEC, 0x8E, 'c', 'a', 'r', 'o', 's', 'l'};
constexpr std::size_t stamp_bytes = stamp_head.size() + 8;

std::size_t store_cluster_head(u8* at, u64 size) noexcept {
    store(at, 4, cluster_id);
    store(at + 4, 8, size | u64{1} << 56U);
    return longest_head;
}

}  // namespace

u64 detail::matroska_heading_bytes(int fd) {
    u64 at = 0;
    for (std::array<u8, longest_head> bytes{};;) {
        const element e = parse({bytes.data(), read_some(fd, bytes.data(), bytes.size(), at)});
        if (e.head == 0 || e.id == cluster_id) return at;
        at += e.head;
        if (e.id != segment_id) at += e.size;  // the segment contains all that follows
    }
}

unit_contents detail::read_clusters(int fd, u64 heading_bytes) {
    const u64 end = size_of(fd);
    unit_contents out{heading_bytes, {}, {}, 0};
    for (std::array<u8, longest_head + stamp_bytes> bytes{};;) {
        const std::span<const u8> seen(bytes.data(), read_some(fd, bytes.data(), bytes.size(), out.bytes));
        const element e = parse(seen);
        if (e.head != longest_head || e.id != cluster_id || seen.size() < bytes.size()) break;
        if (e.size > end - out.bytes - e.head) break;
        if (!std::equal(stamp_head.begin(), stamp_head.end(), &bytes[longest_head])) break;
        const u64 frame_number = number(&bytes[longest_head + stamp_head.size()], 8);
        if (!out.first) out.first = frame_number;
        out.last = std::max(out.last.value_or(0), frame_number);
        ++out.frames;
        out.bytes += e.head + e.size;
    }
    return out;
}

std::vector<u8> stamp_cluster(std::span<const u8> cluster, u64 frame_number) {
    const element e = parse(cluster);
    if (e.head == 0 || e.id != cluster_id) return {};
    if (e.size != unknown_size && e.size != cluster.size() - e.head) return {};
    const std::span<const u8> content = cluster.subspan(e.head);
    std::vector<u8> out(longest_head + stamp_bytes);
    u8* at = out.data() + store_cluster_head(out.data(), stamp_bytes + content.size());
    std::copy(stamp_head.begin(), stamp_head.end(), at);
    store(at + stamp_head.size(), 8, frame_number);
    out.insert(out.end(), content.begin(), content.end());
    return out;
}

}  // namespace carousel::stages
