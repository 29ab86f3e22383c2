#include "supervisor/engine/trace_control.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/clock.hpp"
#include "core/errors.hpp"

namespace carousel::supervisor {
namespace {
constexpr u64 longest_lease_ms = 10'000;
}

run::trace_answer trace_control::carry_out(const run::trace_request& r, const std::string& state) {
    shm::control_block& c = block_->block();
    if (!trace_)
        trace_ = std::make_unique<shm::trace_segment>(
            shm::trace_segment::create(run_id_, block_->published().seats));
    const u64 until = now_ns() + std::min<u64>(r.lease_ms, longest_lease_ms) * ns_per_ms;
    // Two commands may trace at the same time: the later end time applies.
    if (until > c.trace_until_ns.load(std::memory_order_relaxed))
        c.trace_until_ns.store(until, std::memory_order_relaxed);
    run::trace_answer a = seats_->notes.since(r.since);
    a.run_id = run_id_;
    a.created_ns = block_->published().created_ns;
    a.state = state;
    return a;
}

run::trace_file_answer trace_control::carry_out(const run::trace_file_request& r) {
    if (!r.host.empty())
        throw config_error(
            fmt::format("trace: {} runs only on this host: there is no host {}", setup_->name, r.host));
    if (r.id == 0) return files_.begin(setup_->directory, setup_->name, now_ns());
    return files_.poll(r.id, r.stop, r.at, now_ns());
}

}  // namespace carousel::supervisor
