#pragma once
// A recording of two small rings whose bytes are a function of the frame's number.

#include <vector>

#include "stages/recording/frame_message.hpp"
#include "stages/recording/mcap/writer.hpp"
#include "stages/recording/recording.hpp"
#include "stages/sdk/payload.hpp"

namespace carousel::test {

inline stages::recording two_rings() {
    stages::recording r{
        "7", 1000, {{"picture", image_format(3, 2)}, {"numbers", {"test.numbers", {}, {}}}}, {}};
    r.rings[1].format.planes = {{"a", ring::element::u16_, {5}}, {"b", ring::element::f64_, {2, 2}}};
    for (stages::recorded_ring& ring : r.rings) (void)ring.format.lay_out();
    return r;
}

/// The content of plane `p` at byte k of frame `number`.
inline std::byte byte_of(u64 number, u64 k) { return static_cast<std::byte>(number * 31 + k * 7); }

inline std::vector<std::byte> slot_of(const ring::frame_format& f, u64 number) {
    ring::frame_format copy = f;
    std::vector<std::byte> slot(copy.lay_out());
    for (const ring::plane& p : f.planes)
        for (u64 k = 0; k < p.bytes(); ++k) slot[p.offset + k] = byte_of(number, k);
    return slot;
}

/// One unit: frame `number` of rings [first, first + count).
inline void add_frame(stages::mcap::writer& w, const stages::recording& r, u64 number, std::size_t first = 0,
                      std::size_t count = 2) {
    std::vector<stages::mcap::buffer> data(r.rings.size());
    std::vector<stages::mcap::message> unit;
    for (std::size_t k = first; k < first + count; ++k) {
        const auto slot = slot_of(r.rings[k].format, number);
        const u64 wall = 1'000'000 + number;
        stages::put_frame(
            data[k], r.rings[k].format, r.rings[k].stage,
            {{.frame_number = number, .time_s = 0.5, .born_ns = number + 5, .parameter_number = 2}}, wall,
            slot.data());
        unit.push_back({static_cast<u16>(k + 1), static_cast<u32>(number), wall, data[k]});
    }
    w.append(unit);
}

}  // namespace carousel::test
