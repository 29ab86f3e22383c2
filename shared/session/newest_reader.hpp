#pragma once
// Reads the newest frame of one ring, as a `latest` member of the link: takes a lease, reads the slot between
// two checks of its status word, releases the lease. It never blocks a producer. The data that was read
// belongs to the frame only if release() returns `whole`: the lease may be revoked meanwhile (a reader that
// is too slow), and a status word or a header that does not match means that another process has written to
// the slot.
//
// Not thread-safe: one thread at a time. Crash: a lease that a dead or stopped process leaves is revoked by a
// process that finds it too old, or by the supervisor together with its place in the group (ring/latest.hpp).

#include <memory>

#include "device/backend.hpp"
#include "ring/latest.hpp"

namespace carousel::session {

enum class read_result : u8 {
    whole,
    tombstone,  ///< no payload
    torn,       ///< the status word did not match
    changed,    ///< the header does not match its seal: the data may belong to another frame
    revoked,    ///< the same, because the lease was revoked
};

class newest_reader {
public:
    /// `c` and `on` must outlive this object. The object is not a member of the link yet.
    newest_reader(shm::control_block& c, u32 link, device::context& on);

    /// Becomes a member as `entry`, replacing its previous membership. Returns false if all places are taken.
    [[nodiscard]] bool join(u32 entry);
    [[nodiscard]] bool joined() const noexcept { return member_ && member_->joined(); }
    /// Leases the newest frame that is newer than the last one; with `only`, only the frame with this ring
    /// sequence. Only as a member. True: call release().
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
    /// Number of times that the status word of the last frame did not match.
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

}  // namespace carousel::session
