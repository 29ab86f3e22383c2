// engine: memory of kind ipc belongs to a process. When that one dies, running stages go on, but no successor could map it: all
// stages end, memory and words are made anew, and the run goes on at the sinks' lowest undelivered frame. Ledgers and counters
// stay.
#include <fmt/format.h>
#include <unistd.h>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "ring/link.hpp"
#include "supervisor/engine.hpp"
#include "telemetry/ledger.hpp"

namespace carousel::supervisor {

void engine::watch_owner() {
    if (memory_.owner_pidfd() < 0) return;
    loop_.watch(memory_.owner_pidfd(), EPOLLIN, [this](u32) {
        begin_again(
            fmt::format("the owner of the rings' memory (carousel-alloc, pid {}) has died, newcomers can't map it any more",
                        memory_.owner_pid()));
    });
}

void engine::begin_again(const std::string& why) {
    if (memory_.owner_pidfd() >= 0) loop_.forget(memory_.owner_pidfd());
    if (phase_ == phase::leaving || phase_ == phase::ending || phase_ == phase::rebuilding) return;
    seats_->say(fmt::format("{}: the run begins again at frame {}", why, delivered(*setup_, segment_->block())));
    phase_ = phase::rebuilding;
    ++begun_again_;
    seats_->pause();
}

void engine::finish_begin_again() {
    shm::control_block& old = segment_->block();
    for (u32 k = 0; k < old.links; ++k) ring::link_ref(old, k).sweep();
    const u64 first = delivered(*setup_, old);
    const u64 end = ring::load(old.end), next_source = ring::load(old.next_source_ns);
    const bool end_is_fixed = asked_to_end_ && end != ring::end_stopping && end != ring::end_unknown;
    // A sink that was ahead of the slowest gets those frames once more: its records of them are taken back.
    for (const stage_setup& st : setup_->stages)
        if (!st.has_output()) [[maybe_unused]]
            const int ignored = ::truncate(telemetry::ledger_path(setup_->directory, st.name).c_str(),
                                           static_cast<off_t>(first * sizeof(telemetry::ledger_record)));
    try {
        memory_.make_again(helpers_);
        shm::segment::remove(run_id_);
        make_block(first, end == ring::end_stopping ? ring::end_unknown : end);
    } catch (const error& e) {
        seats_->say(fmt::format("beginning again failed: {}", e.what()));
        seats_->fail("carousel-alloc", e.what(), e.code());
        phase_ = phase::ending;
        phase_since_ns_ = now_ns();
        seats_->no_more_starts();
        return;
    }
    segment_->block().next_source_ns.store(next_source, std::memory_order_relaxed);
    watch_owner();
    phase_ = phase::running;
    seats_->attach_to(segment_->block(), memory_);
    seats_->resume();
    if (end_is_fixed) {
        phase_ = phase::draining;
        phase_since_ns_ = moved_ns_ = now_ns();
    } else if (asked_to_end_) {
        begin_drain("going on with the end of the run");
    }
}

}  // namespace carousel::supervisor
