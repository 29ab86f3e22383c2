#include "control/observer.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "shm/block_guard.hpp"

namespace carousel::run {
namespace {

constexpr u64 silence_ns = 3 * ns_per_s;

/// An observer compares its clock with heartbeats and leases in the block, so both must use the same clock.
record with_same_clock(record r) {
    if (const i64 shift = clock_shift_ns(own_clock(), r.clock); shift != 0)
        throw config_error(
            fmt::format("this process can't observe the run {}: {}", r.name, clock_shift_text(shift)));
    return r;
}

std::shared_ptr<const mapped_block> map(const record& r, shm::segment observed, observer::access a) {
    auto m = std::make_shared<mapped_block>();
    m->run = r;
    m->observed = std::make_shared<shm::segment>(std::move(observed));
    if (a == observer::access::take_leases) {
        m->attached = std::make_shared<shm::segment>(shm::segment::attach(r.run_id));
        shm::guard_pages(m->attached->block(), {});  // a ring's reader opens its own words (newest_frame)
    }
    return m;
}

}  // namespace

observer::observer(record r, access a)
    : run_(with_same_clock(std::move(r))),
      access_(a),
      mapped_(map(run_, shm::segment::observe(run_.run_id), access_)) {}

observation observer::poll() {
    observation s;
    const i32 old_pid = run_.supervisor.pid;
    s.liveness = update_liveness(run_, block());
    report_supervisor_change(s.liveness, old_pid, s.updates);
    if (s.liveness.state == liveness::over || !follow()) return s;
    s.recreated = true;
    s.updates.push_back({telemetry::event_kind::warning, recreated_text(run_)});
    return s;
}

// A run that restarts keeps its name and its id, but has another control block.
bool observer::follow() {
    std::optional<shm::segment> present = recreated_block(run_, block());
    if (!present) return false;
    try {
        mapped_ = map(run_, std::move(*present), access_);
    } catch (const error&) {  // between two blocks: the old block is usable as long as it is mapped
        return false;
    }
    return true;
}

void observer::report_supervisor_change(const liveness_report& now, i32 old_pid,
                                        std::vector<run_update>& updates) {
    using telemetry::event_kind;
    if (now.state == liveness::alone && !alone_)
        updates.push_back({event_kind::bad, fmt::format("{} (pid {})", alone_text(now.stages), old_pid)});
    if (now.state == liveness::led && run_.supervisor.pid != old_pid)
        updates.push_back({event_kind::good, fmt::format("a supervisor has taken over {} (pid {})", run_.name,
                                                         run_.supervisor.pid)});
    alone_.reset();
    if (now.state == liveness::alone) alone_ = now.stages;
}

std::string observer::notice(u64 now, u64 heartbeat_ns) const {
    if (alone_) return alone_text(*alone_);
    if (heartbeat_ns == 0 || now <= heartbeat_ns + silence_ns) return "";
    return fmt::format("the supervisor has sent no heartbeat for {:.0f} s",
                       static_cast<f64>(now - heartbeat_ns) / 1e9);
}

void observer::stop_leasing() {
    access_ = access::poll;
    auto m = std::make_shared<mapped_block>(*mapped_);
    m->attached.reset();
    mapped_ = std::move(m);
}

}  // namespace carousel::run
