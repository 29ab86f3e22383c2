// The frames of a simulated stage.
#include <algorithm>
#include <cstring>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"
#include "session/accounts.hpp"
#include "shm/runtime_folder.hpp"
#include "simulated_stage.hpp"

namespace carousel::test {
namespace {

constexpr u64 poll_ns = 4 * ns_per_ms, retry_ns = 100 * ns_per_ms;

}  // namespace

u64 simulated_stage::work_step() {
    u64 next = poll_ns;
    if (run_->on->below(6) == 0)
        for (u32 k = 0; k < worker_->stage().inputs; ++k) run_->helped += helper_->help(worker_->input(k));
    if (!jobs_.empty() && now_ns() >= jobs_.front().due_ns) {
        const u64 wait = advance(jobs_.front());
        if (process_->exiting) return 0;
        std::erase_if(jobs_, [](const work& x) { return x.at == phase::marked; });
        return wait;
    }
    if (leaves_ && jobs_.empty()) {
        leave_port();
        return run_->on->below(300 * ns_per_ms);
    }
    if (port_ && jobs_.empty() && worker_->revoked()) {
        die(exit_code::revoked);
        return 0;
    }
    const bool room = jobs_.empty() || (jobs_.size() < worker_->stage().in_flight &&
                                        jobs_.back().at != phase::processing && !jobs_.front().ends_stream);
    if (room && begin_one()) return 100'000;
    if (process_->exiting) return 0;
    if (!jobs_.empty() && jobs_.front().due_ns != ~u64{0})
        next = std::min(next, jobs_.front().due_ns - std::min(now_ns(), jobs_.front().due_ns - 1));
    return next;
}

bool simulated_stage::begin_one() {
    for (u32 k = 0; k < worker_->outputs(); ++k)
        if (!worker_->output(k).has_free_slot()) {
            for (u32 o = 0; o < worker_->outputs(); ++o) worker_->output(o).sweep();
            break;
        }
    u64 next = 0;
    const ring::outcome can = worker_->peek(static_cast<u32>(jobs_.size()), next);
    for (u32 k = 0; can == ring::outcome::ok && k < worker_->outputs(); ++k)
        if (!worker_->output(k).has_free_slot()) return false;  // begin() would sleep
    if (receives_ && can == ring::outcome::ok) {
        const bool there = has_arrived(next);
        wait_for_link(!there && jobs_.empty());
        if (!there) return false;
    }
    work x;
    const ring::outcome got = worker_->begin(x.j, static_cast<u32>(jobs_.size()));
    if (got == ring::outcome::revoked) {
        die(exit_code::revoked);
        return false;
    }
    if (got == ring::outcome::closed && jobs_.empty()) {
        closed_ = true;
        die(exit_code::ok);
        return false;
    }
    if (got != ring::outcome::ok) return false;
    check_inputs(x);
    for (u32 k = 0; k < worker_->outputs(); ++k) {
        run_->content[{worker_->output(k).index(), x.j.output[k].index}] = ~u64{0};
        write_status(k, x.j.output[k].index, x.j.ring_sequence, device::status_state::writing);
    }
    entry().processing_since_ns.store(now_ns());
    if (x.j.sequence_index != shm::none)
        run_->first_not_begun = std::max(run_->first_not_begun, x.j.ring_sequence + 1);
    x.due_ns = hangs_ ? ~u64{0} : now_ns() + between(run_->process_ns);
    x.ends_stream = x.j.sequence_index != shm::none &&
                    x.j.ring_sequence >= (receives_ ? run_->link->end().value_or(~u64{0}) : run_->ends_at);
    if (receives_ && x.j.ring_sequence != next)
        run_->violated("frame " + std::to_string(x.j.ring_sequence) + " was begun, although frame " +
                       std::to_string(next) + " is the next one");
    if (receives_ && !x.ends_stream) run_->link->process(x.j.ring_sequence);
    jobs_.push_back(std::move(x));
    return true;
}

bool simulated_stage::has_arrived(u64 ring_sequence) {
    const u64 done = worker_->done_below();
    if (!opened_) {
        if (ring_sequence != done || !run_->link->open(*process_, done)) return false;
        opened_ = true;
        const nlohmann::json figures{{"run", run_->run_id}, {"durable", run_->link->is_durable()}};
        shm::write_whole_file(run_->folder + "/figures-" + stage_, figures.dump());
        delivered_ = std::make_unique<stages::delivered>(block(), run_->folder, block().first_ring_sequence);
    }
    if (run_->link->is_durable() && now_ns() >= delivered_read_ns_) {
        delivered_read_ns_ = now_ns() + 5 * ns_per_ms;
        run_->link->delivered(delivered_->below());
    }
    return run_->link->ready(ring_sequence, done);
}

void simulated_stage::wait_for_link(bool waits) {
    if (std::exchange(waits_, waits) == waits) return;
    entry().pause.store(static_cast<u64>(waits ? shm::pause_reason::link : shm::pause_reason::nothing));
    entry().paused_since_ns.store(waits ? now_ns() : 0);
}

/// The payload, then the status word, from which a rebuild knows that the payload is whole.
void simulated_stage::write_frame(const late_write& x) {
    run_->content[{x.link, x.slot}] = x.ring_sequence;
    write_status(x.output, x.slot, x.ring_sequence, device::status_state::ready);
}

void simulated_stage::write_status(u32 output, u32 slot, u64 ring_sequence, device::status_state state) {
    const ring_memory& to = memory_.at(output);
    const device::status_word word{ring_sequence, incarnation_.epoch, static_cast<u32>(state)};
    std::memcpy(to.mapped->slot(slot, to.slot_bytes), &word, sizeof word);
}

void simulated_stage::check_inputs(const work& x) {
    for (u32 k = 0; k < x.j.inputs; ++k) {
        const u64 found = run_->content[{worker_->input(k).index(), x.j.input[k].index}];
        if (found == x.j.ring_sequence || x.j.is_tombstone()) continue;
        if (worker_->revoked()) continue;  // what a revoked process reads is discarded
        run_->violated("torn: " + stage_ + " (pid " + std::to_string(process_->pid) + ") reads " +
                       std::to_string(found) + " as frame " + std::to_string(x.j.ring_sequence));
    }
}

u64 simulated_stage::advance(work& x) {
    constexpr u64 soon = 50'000;
    shm::incarnation& e = entry();
    if (x.ends_stream) return end_stream(x);
    switch (x.at) {
        case phase::processing:
            if (worker_->outputs() > 0) run_->pending.insert({incarnation_.entry, x.j.output[0].index});
            e.processing_since_ns.store(0);
            if (!worker_->submit(x.j)) {
                die(exit_code::revoked);
                return 0;
            }
            e.device_since_ns.store(now_ns());
            x.at = phase::on_device;
            x.due_ns = now_ns() + between(run_->process_ns);
            return soon;
        case phase::on_device:
            if (x.written < worker_->outputs()) {
                write_frame({x.written, worker_->output(x.written).index(), x.j.output[x.written].index,
                             x.j.ring_sequence});
                if (++x.written < worker_->outputs()) return soon;
                run_->pending.erase({incarnation_.entry, x.j.output[0].index});
            }
            e.device_since_ns.store(0);
            e.finishing_since_ns.store(now_ns());
            x.at = phase::written;
            return soon;
        case phase::written:
            check_inputs(x);
            if (receives_) run_->link->finish(x.j.ring_sequence);
            if (ledger_ && !store_on_disk(x, false)) return retry_ns;
            x.at = phase::recorded;
            return soon;
        case phase::recorded:
            if (!worker_->commit(x.j)) {
                die(exit_code::revoked);
                return 0;
            }
            if (worker_->outputs() == 0) {
                if (x.j.is_tombstone()) ++run_->tombstones;
                if (++run_->delivered[worker_->stage_index()][x.j.ring_sequence] > 1)
                    run_->violated("repeated: " + stage_ + " commits frame " +
                                   std::to_string(x.j.ring_sequence) + " again");
                if (auto& all = run_->attendances[stage_]; !all.empty()) {
                    all.back().any = true;
                    all.back().last = std::max(all.back().last, x.j.ring_sequence);
                }
                run_->on->note(stage_ + " has frame " + std::to_string(x.j.ring_sequence) +
                               (x.j.is_tombstone() ? " (tombstone)" : ""));
            }
            ++run_->commits;
            ++committed_;
            x.at = phase::committed;
            return run_->on->below(4) == 0 ? run_->on->below(3 * ns_per_ms) : soon;  // a slow disk
        case phase::committed:
            if (ledger_ && !store_on_disk(x, true)) return retry_ns;
            session::count_commit(*worker_, e, x.j, now_ns());
            e.finishing_since_ns.store(0);
            if (!worker_->complete(x.j)) {
                die(exit_code::revoked);
                return 0;
            }
            if (receives_) run_->link->committed(x.j.ring_sequence);
            x.at = phase::marked;
            return soon;
        case phase::marked:
            break;
    }
    return soon;
}

u64 simulated_stage::end_stream(work& x) {
    entry().processing_since_ns.store(0);
    const ring::outcome got = worker_->end_stream(x.j);
    if (got == ring::outcome::empty) return poll_ns;
    if (got == ring::outcome::revoked || !worker_->give_back(x.j)) {
        die(exit_code::revoked);
        return 0;
    }
    x.at = phase::marked;
    return poll_ns;
}

bool simulated_stage::store_on_disk(const work& x, bool mark) {
    const u32 committer = telemetry::ledger_committer(incarnation_.seat, incarnation_.epoch);
    shm::incarnation& e = entry();
    try {
        if (mark)
            ledger_->mark_committed(x.j.ring_sequence, x.j.ring_sequence * 7, x.j.is_tombstone(), committer);
        else
            ledger_->record(x.j.ring_sequence, x.j.ring_sequence * 7, x.j.is_tombstone(), committer);
    } catch (const output_error&) {
        if (ring::load(e.paused_since_ns) == 0) {
            e.pause.store(static_cast<u64>(shm::pause_reason::disk_full));
            e.paused_since_ns.store(now_ns());
            ++run_->disk_waits;
        }
        return false;
    }
    if (ring::load(e.paused_since_ns) != 0) {
        e.finishing_since_ns.store(now_ns());
        e.paused_since_ns.store(0);
        e.pause.store(static_cast<u64>(shm::pause_reason::nothing));
    }
    return true;
}

}  // namespace carousel::test
