#pragma once
// Copies the newest frame of one ring for a process that is not a stage; the process gets the ring's memory
// from the supervisor (control/mapped_ring.hpp). A frame that is returned is always intact; a frame that is
// not intact is discarded. The lease covers only the copy: the caller may use the copy for any length of
// time. If the supervisor dies, the ring remains, and frames are still read. When another supervisor takes
// the run over, this object sends it a new request (retried ten times per second). That supervisor assigns
// another place instead of the old one, and from then on has a record of this process.
// Not thread-safe: one thread at a time. Crash: the supervisor frees the place in the link's groups when the
// connection of the mapped ring ends; a held lease is revoked at that time, or earlier if it is too old. A
// process that dies while there is no supervisor keeps its place until the run ends, but not its lease. Such
// a place still has an effect: the ring's newest frame stays in its slot as long as another slot is free.

#include <memory>
#include <vector>

#include "control/mapped_ring.hpp"
#include "device/backend.hpp"
#include "frame/metadata.hpp"
#include "ring/latest.hpp"

namespace carousel::session {

// Reads the newest frame of one ring, as a `latest` member of the link: takes a lease, reads the slot between
// two checks of its status word, releases the lease. Such a member never blocks a producer. The data that was
// read belongs to the frame only if release() returns `whole`. The lease may have been revoked in the
// meantime, because the reader was too slow; and a status word or a header that does not match means that
// another process has written to the slot. Not thread-safe: one thread at a time. Crash: a dead or stopped
// process leaves a lease. The lease is revoked by a process that finds it too old, or by the supervisor when
// the supervisor frees the place in the group (ring/latest.hpp).

enum class read_result : u8 {
    whole,
    tombstone,  ///< no payload
    torn,       ///< the status word did not match
    changed,    ///< the header does not match its seal: the data may belong to another frame
    revoked,    ///< the lease was revoked: the data may belong to another frame
};

class newest_reader {
public:
    /// `c` and `on` must outlive this object. The object is not a member of the link yet.
    newest_reader(shm::control_block& c, u32 link, device::context& on);

    /// Becomes a member as `entry`, replacing its previous membership. Returns false if all places are taken.
    [[nodiscard]] bool join(u32 entry);
    [[nodiscard]] bool joined() const noexcept { return member_ && member_->joined(); }
    /// Leases the newest frame, if it is newer than the frame that was leased before. If `only` is given,
    /// leases no frame except the one with this ring sequence. Only a member may call this. If it returns
    /// true, the caller must call release().
    [[nodiscard]] bool acquire(u64 only = ring::any_ring_sequence);
    [[nodiscard]] const ring::slot_ref& slot() const noexcept { return slot_; }
    /// The header of the leased frame.
    [[nodiscard]] const shm::frame_header& header() const noexcept { return link().header(slot_.index); }
    [[nodiscard]] bool is_tombstone() const noexcept { return is_tombstone_; }
    /// Calls `enqueue`, which must enqueue on `q` the work that reads the leased slot (its status word is at
    /// `status`), and waits for that work.
    template <typename Enqueue>
    void read(device::queue& q, const std::byte* status, Enqueue&& enqueue) {
        const device::status_word expected{slot_.ring_sequence, header().epoch,
                                           static_cast<u32>(device::status_state::ready)};
        const auto* at = reinterpret_cast<const device::status_word*>(status);
        auto* torn = reinterpret_cast<u32*>(torn_->data());
        *words() = 0;
        q.check_status(at, expected, torn);
        enqueue();
        q.check_status(at, expected, torn);
        event_->record(q, slot_.ring_sequence);
        event_->wait();
        torn_words_ = *words();
    }
    [[nodiscard]] read_result release();
    /// Number of mismatches of the status word that were counted during the last call of read().
    [[nodiscard]] u32 torn_words() const noexcept { return torn_words_; }
    /// Frames below this ring sequence are not leased any more.
    [[nodiscard]] u64 next() const noexcept { return next_; }
    [[nodiscard]] const ring::link_ref& link() const noexcept { return link_; }

private:
    [[nodiscard]] volatile u32* words() const noexcept {
        return reinterpret_cast<volatile u32*>(torn_->host_data());
    }

    shm::control_block* control_;
    ring::link_ref link_;
    std::unique_ptr<device::mapping> torn_;  ///< u32, counted by the device
    shm::word event_word_{0};
    std::unique_ptr<device::event> event_;
    std::unique_ptr<ring::latest_reader> member_;
    ring::slot_ref slot_;
    bool is_tombstone_ = false;
    u32 torn_words_ = 0;
    u64 next_ = 0;
};

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
    /// copy. Returns true if `to` holds an intact frame that is newer than the frame copied before; `what`
    /// describes that frame. Returns false if there is no such frame at the moment, or if the frame was
    /// discarded. `only`: accept only the frame with this ring sequence.
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
