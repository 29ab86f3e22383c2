#include "ring/header_check.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace carousel::ring {
namespace {

class sum {
public:
    // One to one in `value` for any state, and in the state for any value.
    void add(u64 value) noexcept { state_ = std::rotl((state_ ^ value) * 0x9E37'79B9'7F4A'7C15ULL, 29); }
    void add(u32 first, u32 second) noexcept { add(u64{first} << 32U | second); }
    void add(const std::byte* from, std::size_t bytes) noexcept {
        for (; bytes >= 8; from += 8, bytes -= 8) {
            u64 value = 0;
            std::memcpy(&value, from, 8);
            add(value);
        }
        if (bytes == 0) return;
        u64 value = 0;
        std::memcpy(&value, from, bytes);
        add(value);
    }
    [[nodiscard]] u64 value() const noexcept { return state_; }

private:
    u64 state_ = 0x4341'524F'5553'454CULL;
};

}  // namespace

u64 header_sum(const shm::frame_header& h, u32 parameter_bytes) noexcept {
    sum s;
    s.add(h.sequence.raw().load(std::memory_order_relaxed));
    s.add(h.epoch, h.void_stage);
    s.add(h.void_reason, h.maker_seat);
    s.add(h.born_ns);
    s.add(h.claimed_ns);
    s.add(h.submitted_ns);
    s.add(std::bit_cast<u64>(h.time_s));
    s.add(h.parameter_number);
    s.add(h.capture_ns);
    s.add(static_cast<u32>(h.clock), h.metadata_bytes);
    s.add(h.metadata_left_out, h.used.planes);
    for (u32 p = 0; p < shm::max_used_planes; ++p)
        if ((h.used.planes >> p & 1U) != 0)
            for (const u64 extent : h.used.of[p]) s.add(extent);
    s.add(h.parameters, std::min(parameter_bytes, shm::max_parameter_bytes));
    s.add(h.metadata, std::min(h.metadata_bytes, shm::max_metadata_bytes));
    return s.value();
}

}  // namespace carousel::ring
