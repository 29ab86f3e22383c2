#include "stages/hosts/frame_to_message.hpp"

#include <algorithm>
#include <iterator>

namespace carousel::hosts {
namespace {
constexpr std::size_t longest_reason = 1000;
}

frame_message message_of(frame& f) {
    frame_message m;
    m.ring_sequence = f.ring_sequence();
    m.frame_number = f.frame_number();
    m.time_s = f.time_s();
    m.born_ns = f.born_ns();
    m.capture_ns = f.capture_ns();
    m.clock = static_cast<u8>(f.capture_clock());
    m.parameter_number = f.parameter_number();
    m.parameters.assign(f.parameter_bytes().begin(), f.parameter_bytes().end());
    const auto metadata = f.metadata().bytes();
    m.metadata.assign(metadata.begin(), metadata.end());
    m.tombstone_reason = f.tombstone_reason().substr(0, longest_reason);
    return m;
}

used_planes used_of(const shm::used_extents& from) {
    used_planes out;
    out.planes = from.planes & ((1U << shm::max_used_planes) - 1);
    for (u32 k = 0; k < shm::max_used_planes; ++k)
        std::copy(std::begin(from.of[k]), std::end(from.of[k]), out.of[k].begin());
    return out;
}

shm::used_extents extents_of(const used_planes& from) {
    shm::used_extents to{};
    to.planes = from.planes;
    for (u32 k = 0; k < shm::max_used_planes; ++k)
        std::copy(from.of[k].begin(), from.of[k].end(), std::begin(to.of[k]));
    return to;
}

}  // namespace carousel::hosts
