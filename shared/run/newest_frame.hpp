#pragma once
// The newest frame of one ring, taken out by a process that is no stage: it joins the link as a `latest`
// member, leases, copies and gives back. It never holds a producer up; what is taken is always whole: a frame
// whose lease was revoked meanwhile, or whose status word or header does not fit before or behind it, is
// discarded. The lease lasts as long as the copy: what is done with the copy afterwards takes as long as it
// likes.
//
// The supervisor may die: the ring is there as before, and frames are taken as before. Another one that takes
// the run over is asked again, a few times a second, and given another place for the old one: from then on it
// knows of this process.
//
// One thread at a time. Crash: the place in the link's groups is freed by the supervisor, which sees the end
// of the lent ring's connection; a lease that is held is revoked with it, or before, when it is too old. Who
// dies while there is no supervisor keeps its place until the run ends; its lease doesn't. For such a place,
// too, the ring's newest frame stays in its slot while another slot is free.

#include <memory>
#include <vector>

#include "device/backend.hpp"
#include "ring/latest.hpp"
#include "run/mapped_ring.hpp"

namespace carousel::run {

/// Frames that were taken and thrown away.
struct discarded {
    u64 revoked = 0, torn = 0, tombstones = 0;
};

class newest_frame {
public:
    /// Joins the ring and maps it. `c` is a writable mapping of the run's block that outlives this, as does
    /// `on`. Throws config_error: all places are taken; device_error: the memory can't be mapped on this
    /// device.
    newest_frame(shm::control_block& c, mapped_ring from, device::context& on);

    struct about {
        u64 ring_sequence = 0, frame_number = 0, born_ns = 0;
        f64 time_s = 0;
        u64 took_ns = 0;  ///< lease to release
        u64 capture_ns = 0;
        shm::capture_clock clock = shm::capture_clock::none;
        std::vector<std::byte> metadata = {};  ///< ring/metadata.hpp
        /// The run's set of parameters that it was made with; empty: there is none.
        std::vector<std::byte> parameters = {};
        u64 parameter_number = 0;  ///< of that set: changes before it
        shm::used_extents used = {};
        /// of its maker's sampled inputs, or shm::no_sampled_frame
        std::vector<u64> sampled_frames = {};
    };
    /// Copies `bytes` from `offset` of the newest frame's slot, by `q`, and waits for the copy. True: `to`
    /// holds a whole frame, newer than the last one; `what` tells of it. False: there is none just now, or it
    /// was discarded. With `only`: the frame of that number and no other.
    [[nodiscard]] bool take(device::queue& q, std::byte* to, u64 offset, u64 bytes, about& what,
                            u64 only = ring::any_ring_sequence);
    /// The frame of that number can still be taken: it is in the ring, or has yet to come.
    [[nodiscard]] bool may_arrive(u64 ring_sequence) const noexcept;
    /// Rung at every change of the ring.
    [[nodiscard]] shm::doorbell_word& bell() const noexcept;
    [[nodiscard]] const discarded& losses() const noexcept { return losses_; }
    [[nodiscard]] const mapped_ring& ring() const noexcept { return from_; }

private:
    void join();
    void check_connection(u64 now);
    [[nodiscard]] bool copy(device::queue& q, const ring::slot_ref& slot, std::byte* to, u64 offset,
                            u64 bytes);

    shm::control_block* control_;
    mapped_ring from_;
    std::unique_ptr<device::mapping> memory_, torn_;
    shm::word event_word_{0};
    std::unique_ptr<device::event> event_;
    std::unique_ptr<ring::latest_reader> reader_;
    u64 next_ = 0;  ///< only sequences from here on
    u64 next_check_ns_ = 0;
    discarded losses_;
};

}  // namespace carousel::run
