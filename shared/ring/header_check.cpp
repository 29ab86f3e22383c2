#include "ring/header_check.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

// A check of a header races with its producer by design: two seats of a stage may check the same frame, and
// the process on the slower seat may read the header after the slot was leased, freed and refilled. The
// slower process then reads inconsistent data. This has no effect, because the loads of the check come before
// the CAS of the lease (acq_rel), and that CAS fails because the slot's generation has moved. ThreadSanitizer
// cannot verify that argument, so the check is not instrumented; reads after a lease are instrumented.
#define CAROUSEL_UNSYNCHRONIZED [[gnu::no_sanitize("thread")]]

namespace carousel::ring {
namespace {

class sum {
public:
    // For every fixed state, the new state is a bijection of `value`; for every fixed `value`, it is a
    // bijection of the old state.
    CAROUSEL_UNSYNCHRONIZED void add(u64 value) noexcept {
        state_ = std::rotl((state_ ^ value) * 0x9E37'79B9'7F4A'7C15ULL, 29);
    }
    CAROUSEL_UNSYNCHRONIZED void add(u32 first, u32 second) noexcept { add(u64{first} << 32U | second); }
    CAROUSEL_UNSYNCHRONIZED void add(const std::byte* from, std::size_t bytes) noexcept {
        for (; bytes >= 8; from += 8, bytes -= 8) {
            u64 value = 0;
            std::memcpy(&value, from, 8);
            add(value);
        }
        // The bytes are copied one by one, because a copy whose length is unknown at compile time becomes a
        // function call, and ThreadSanitizer intercepts that call.
        u64 value = 0;
        for (std::size_t k = 0; k < bytes; ++k) value |= std::to_integer<u64>(from[k]) << 8 * k;
        if (bytes > 0) add(value);
    }
    [[nodiscard]] u64 value() const noexcept { return state_; }

private:
    u64 state_ = 0x4341'524F'5553'454CULL;
};

}  // namespace

CAROUSEL_UNSYNCHRONIZED u64 header_sum(const shm::frame_header& h, u32 parameter_bytes) noexcept {
    // The values are copied first, because a function that takes a reference would read the header in code
    // that ThreadSanitizer instruments.
    const f64 time_s = h.meta.time_s;
    const u32 metadata_bytes = h.metadata_bytes, sampled_inputs = h.sampled_inputs;
    sum s;
    s.add(h.ring_sequence.raw().load(std::memory_order_relaxed));
    s.add(h.epoch, h.meta.tombstone_stage);
    s.add(h.meta.tombstone_reason, h.maker_seat);
    s.add(h.meta.born_ns);
    s.add(h.claimed_ns);
    s.add(h.submitted_ns);
    s.add(std::bit_cast<u64>(time_s));
    s.add(h.meta.parameter_number);
    s.add(h.meta.frame_number);
    s.add(h.meta.capture_ns);
    s.add(static_cast<u32>(h.meta.clock), metadata_bytes);
    s.add(h.metadata_omitted, h.used.planes);
    for (u32 p = 0; p < shm::max_used_planes; ++p)
        if ((h.used.planes >> p & 1U) != 0)
            for (const u64 extent : h.used.of[p]) s.add(extent);
    s.add(sampled_inputs, h.previous_epoch);
    for (u32 k = 0; k < std::min(sampled_inputs, shm::max_sampled_inputs); ++k) s.add(h.sampled_sequence[k]);
    s.add(h.parameters, std::min(parameter_bytes, shm::max_parameter_bytes));
    s.add(h.metadata, std::min(metadata_bytes, shm::max_metadata_bytes));
    return s.value();
}

CAROUSEL_UNSYNCHRONIZED bool is_sealed(const shm::frame_header& h, u32 parameter_bytes) noexcept {
    return h.seal == header_sum(h, parameter_bytes);
}

}  // namespace carousel::ring
