#pragma once
// Copies the newest frame of one ring to a process that is not a stage (newest_reader.hpp), with the ring's
// memory from the supervisor (control/mapped_ring.hpp). A frame that is returned is always intact; others are
// discarded. The lease covers only the copy: the caller may use the copy for any time.
//
// If the supervisor dies, the ring remains, and frames are still read. A supervisor that takes the run over
// receives a new request (retried ten times per second) and assigns another place instead of the old one;
// from then on it has a record of this process.
//
// Not thread-safe: one thread at a time. Crash: the supervisor frees the place in the link's groups when the
// connection of the mapped ring ends; a held lease is revoked at that time, or earlier if it is too old. A
// process that dies while there is no supervisor keeps its place until the run ends, but not its lease. Even
// for such a place, the ring's newest frame stays in its slot as long as another slot is free.

#include <memory>
#include <vector>

#include "control/mapped_ring.hpp"
#include "device/backend.hpp"
#include "frame/metadata.hpp"
#include "session/newest_reader.hpp"

namespace carousel::session {

/// Frames that were read and discarded.
struct discarded {
    u64 revoked = 0, torn = 0, tombstones = 0;
};

class newest_frame {
public:
    /// Joins the ring and maps it. `c` is a writable mapping of the run's block; `c` and `on` must outlive
    /// this object. Throws config_error if all places are taken; device_error if the memory cannot be mapped
    /// on this device.
    newest_frame(shm::control_block& c, run::mapped_ring from, device::context& on);

    struct about : ring::frame_facts {
        u64 took_ns = 0;  ///< lease to release
    };
    /// Copies `bytes` bytes from byte `offset` of the newest frame's slot on queue `q`, and waits for the
    /// copy. Returns true if `to` holds an intact frame that is newer than the last one; `what` describes it.
    /// Returns false if there is none at the moment, or if the frame was discarded. `only`: accept only the
    /// frame with this ring sequence.
    [[nodiscard]] bool take(device::queue& q, std::byte* to, u64 offset, u64 bytes, about& what,
                            u64 only = ring::any_ring_sequence);
    /// True if the frame with this ring sequence can still be read: it is in the ring, or not yet committed.
    [[nodiscard]] bool may_arrive(u64 ring_sequence) const noexcept;
    /// Doorbell that rings at every change of the ring.
    [[nodiscard]] shm::doorbell_word& bell() const noexcept;
    [[nodiscard]] const discarded& losses() const noexcept { return losses_; }
    [[nodiscard]] const run::mapped_ring& ring() const noexcept { return from_; }

private:
    void join();
    void check_connection(u64 now);

    shm::control_block* control_;
    run::mapped_ring from_;
    std::unique_ptr<device::mapping> memory_;
    newest_reader reader_;
    u64 next_check_ns_ = 0;
    discarded losses_;
};

}  // namespace carousel::session
