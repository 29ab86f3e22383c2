#pragma once
// A control block that is driven in this process: no supervisor, no stage programs, no device. Its seats can
// be killed and filled again by the same steps that the supervisor takes.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ring/recovery.hpp"
#include "ring/topology.hpp"
#include "ring/worker.hpp"

namespace carousel::test {

class rig {
public:
    /// Allocates its own block, or uses `c` (already zeroed, of a segment).
    explicit rig(ring::plan p, shm::control_block* c = nullptr);

    /// A process sits down on the seat; its number serves as its pid.
    void sit(u32 seat);
    void sit_all();
    /// Death detected, revoked, requeued; the slots in progress are quarantined. The seat stays empty until
    /// retire() and sit().
    void die(u32 seat);
    void retire(u32 seat);
    /// One job of the seat from claim to recycle. False: nothing to do.
    bool pass(u32 seat);
    /// Begins a job and leaves it in work.
    bool begin(u32 seat);
    /// Ends the oldest job that begin() left.
    bool finish(u32 seat);
    /// Every seat once, in order.
    void turn();

    /// Called with each job that pass() or finish() submits, before it does.
    std::function<void(u32 seat, const ring::job&)> work;

    [[nodiscard]] shm::control_block& block() noexcept { return *c_; }
    [[nodiscard]] bool sits(u32 seat) const noexcept { return seats_[seat].w != nullptr; }
    [[nodiscard]] u32 entry_of(u32 seat) const noexcept { return seats_[seat].incarnation.entry; }

private:
    struct sitting {
        ring::incarnation_id incarnation, successor;
        std::unique_ptr<ring::worker> w;
        std::vector<ring::job> open;
    };
    std::unique_ptr<shm::control_block> own_;
    shm::control_block* c_;
    std::vector<sitting> seats_;
};

/// source -> middle ... -> sink: `stages` of them.
[[nodiscard]] ring::plan chain_of(u32 stages, u64 slot_bytes = 4096);
/// A source with two outputs, `quick` reads the first of them and `slow` the other.
[[nodiscard]] ring::plan forked_plan();
/// The demo's four stages with a picture of this size as the output of the third.
[[nodiscard]] ring::plan demo_plan(u32 width, u32 height);

}  // namespace carousel::test
