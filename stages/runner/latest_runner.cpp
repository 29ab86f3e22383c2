#include "stages/runner/stage_runner.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/log.hpp"
#include "session/accounts.hpp"
#include "session/newest_frame.hpp"
#include "session/status_words.hpp"
#include "shm/doorbell.hpp"
#include "stages/runner/exit_note.hpp"
#include "stages/runner/fault_injection.hpp"
#include "stages/runner/running_clock.hpp"
#include "stages/sdk/process_call.hpp"
#include "telemetry/trace_ring.hpp"

namespace carousel::stages {
namespace {

ring::job job_of(const shm::control_block& c, const ring::slot_ref& slot, const shm::frame_header& h) {
    ring::job j;
    j.meta() = h.meta;
    std::memcpy(j.parameters, h.parameters, std::min(c.parameters.bytes, shm::max_parameter_bytes));
    j.ring_sequence = slot.ring_sequence;
    j.inputs = 1;
    j.input[0] = slot;
    j.claimed_ns = now_ns();
    return j;
}

}  // namespace

void run_latest(runtime& r, stage& s) {
    shm::control_block& c = r.control();
    shm::stage_block& block = r.stage_block();
    session::newest_reader reader(c, block.input_link[0], r.context());
    if (!reader.join(r.incarnation().entry))
        throw config_error(
            "all latest groups of this link are taken: a link has room for 8 viewers and displays with group "
            "= \"latest\"");
    session::torn_lines lines;
    const shm::link_block& ring = c.link[std::min(block.input_link[0], shm::max_links - 1)];
    const session::torn_input from{ring.name, c.stage[std::min(ring.stage, shm::max_stages - 1)].name};
    frame_in_work f(r, 0);
    // This clock is never started: no deadline is needed for a reader that blocks no other process.
    finish_clock clock(r.entry().finishing_since_ns);
    external_pause outside(r.entry(), clock);
    disk_full_pause disk(c, outside);
    telemetry::trace_writer trace(c, r.incarnation().seat, r.incarnation().epoch);
    for (;;) {
        const u32 seen = shm::ticket(block.doorbell);
        if (!reader.acquire()) {
            const u64 end = ring::load(c.end);
            if (end != ring::end_unknown && end != ring::end_stopping && reader.link().tail() >= end) return;
            const u64 began = now_ns();
            shm::wait(block.doorbell, seen, shm::max_sleep_ns);
            const shm::block_open open;
            block.counters.wait_input_ns.fetch_add(now_ns() - began, std::memory_order_relaxed);
            continue;
        }
        telemetry::begin_busy(r.entry(), now_ns());
        if (reader.slot().ring_sequence >= r.hooks().hold_lease_at.value_or(~u64{0})) ::raise(SIGSTOP);
        f.job = job_of(c, reader.slot(), reader.header());
        f.take_carried();
        f.traced = trace.on(f.job.claimed_ns);
        f.read_tombstone();
        f.clear_local();
        if (!f.job.is_tombstone())
            reader.read(r.queue(), r.input(0).slot(f.job.input[0].index), [&] {
                if (is_fault_requested(r)) inject_fault(r, f.job);
                detail::call_process(s, f);
            });
        const session::read_result result = reader.release();
        const u64 complete = f.traced ? now_ns() : 0;
        if (result == session::read_result::revoked || result == session::read_result::changed) {
            telemetry::count_busy(r.entry(), block.counters, now_ns(), true);
            continue;  // the data that was read is discarded, whether or not it was torn
        }
        if (result == session::read_result::torn) {
            lines.report(f.job.ring_sequence, reader.torn_words(), std::span(&from, 1));
            const shm::block_open open;
            block.counters.torn.fetch_add(reader.torn_words(), std::memory_order_relaxed);
        }
        if (!f.is_hidden_from_stage()) disk.write_patiently(f.job.ring_sequence, [&] { s.finish(f); });
        const u64 now = now_ns();
        const shm::block_open open;
        telemetry::count_busy(r.entry(), block.counters, now, true);
        r.entry().commits.fetch_add(1, std::memory_order_relaxed);
        session::count_frame(block.counters, f.job, now, true);
        if (!f.traced) continue;
        trace.claimed(f.job.ring_sequence, 0, f.job.claimed_ns, f.job.born_ns, f.job.live_capture_ns());
        trace.submitted(f.job.ring_sequence, 0, f.job.is_tombstone(), f.job.claimed_ns, f.job.claimed_ns);
        trace.committed(f.job.ring_sequence, 0, complete, now, now_ns());
    }
}

}  // namespace carousel::stages
