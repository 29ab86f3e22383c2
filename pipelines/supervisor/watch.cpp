// seat_keeper: what is looked at in each tick. Which clock runs when, and who is late by it: clocks.hpp.
#include <fmt/format.h>

#include <algorithm>

#include "core/clock.hpp"
#include "ring/latest.hpp"
#include "ring/link.hpp"
#include "shm/process_id.hpp"
#include "supervisor/seats.hpp"

namespace carousel::supervisor {
namespace {

constexpr u64 sample_every_ns = ns_per_s;

constexpr u64 suspect_after_ns = 200 * ns_per_ms;  ///< a heart that beats every 50 ms and is later: was the process stopped?
constexpr u64 shortest_heart_ns = 250 * ns_per_ms;
constexpr u64 least_patience_ns = 60 * ns_per_ms;  ///< three ticks

/// Stages that share a GPU have one number: the first of them. Those on the CPU have none.
u32 shared_device(const run_setup& s, u32 stage) noexcept {
    const device::device_id& own = s.stages[stage].device;
    if (own.kind != device::device_kind::cuda) return shm::none;
    for (u32 k = 0; k < stage; ++k)
        if (s.stages[k].device.kind == own.kind && s.stages[k].device.uuid == own.uuid) return k;
    return stage;
}

/// A heart beats while its process computes, so a stage with a long frame_timeout_ms needs no longer one for its heart.
u64 heart_timeout(const run_setup& s, u32 stage) noexcept {
    const u64 all = s.frame_timeout_ns != 0 ? s.frame_timeout_ns : default_heart_timeout_ns;
    const u64 own = s.stages[stage].frame_timeout_ns;
    return std::max(shortest_heart_ns, own != 0 ? std::min(own, all) : all);
}

}  // namespace

u64 full_disk_since_ns(const shm::control_block& c, const seat& s) noexcept {
    if (!s.now || s.now->seen_dead_ns != 0) return 0;
    const shm::incarnation& e = c.entry[s.now->who.entry];
    const u64 since = ring::load(e.hold_since_ns);
    return ring::load(e.hold) == static_cast<u64>(shm::hold_reason::disk_full) ? since : 0;
}

void seat_keeper::tick(u64 now) {
    // A supervisor that was stopped or starved itself has no right to call others late.
    if (last_tick_ns_ != 0 && now - last_tick_ns_ > longest_tick_ns()) restart_clocks(now);
    last_tick_ns_ = now;
    watch_domain();
    for (auto& s : seats_) {
        if (s->now && s->now->seen_dead_ns != 0) advance(*s, *s->now, now);  // no entry was free before
        for (auto& l : s->gone) advance(*s, *l, now);
        std::erase_if(s->gone, [&](const auto& l) {
            if (!l->ended || !l->reclaimed || !l->judged || l->tool_pidfd) return false;
            if (l->log.fd() >= 0) loop_->forget(l->log.fd());
            return true;
        });
        if (s->start_wanted && !s->now && now >= s->due_ns && !ending_ && !paused_) {
            if (s->machine.state() == seat_state::backoff) s->machine.on(seat_event::due, now);
            start(*s);
        }
        keep_spare(*s, now);
        sample(*s, now);
    }
    for (u32 k = 0; k < std::min(c_->links, shm::max_links); ++k) ring::revoke_stale_leases(*c_, k, now);
    watch_deadlines(now);
}

u64 seat_keeper::longest_tick_ns() const noexcept {
    u64 shortest = heart_timeout(*setup_, 0);
    for (const stage_setup& st : setup_->stages)
        if (st.frame_timeout_ns != 0) shortest = std::min(shortest, st.frame_timeout_ns);
    return std::max(least_patience_ns, shortest / 2);
}

void seat_keeper::restart_clocks(u64 now) noexcept {
    for (auto& s : seats_) s->clock_base_ns = std::max(s->clock_base_ns, now);
}

void seat_keeper::restart_device_clocks(u32 device, u64 now) noexcept {
    for (auto& s : seats_)
        if (shared_device(*setup_, s->stage) == device) s->device_base_ns = now;
}

// What the process says of itself. Its words may be damaged: a clock counts only while a job word of its epoch says that it can.
process_view seat_keeper::view(const seat& s, u64 now) const noexcept {
    const shm::incarnation& e = c_->entry[s.now->who.entry];
    process_view v;
    v.state = s.machine.state();
    v.tool = s.now->tool;
    v.base_ns = s.clock_base_ns;
    v.device_base_ns = s.device_base_ns;
    v.frame_timeout_ns = setup_->stages[s.stage].frame_timeout_ns;
    v.heart_timeout_ns = heart_timeout(*setup_, s.stage);
    v.device = shared_device(*setup_, s.stage);
    v.hold_ns = ring::load(e.hold_since_ns);  // before the clock that begins anew when it ends
    v.processing_ns = ring::load(e.processing_since_ns);
    v.device_ns = ring::load(e.device_since_ns);
    v.finishing_ns = ring::load(e.finishing_since_ns);
    v.heartbeat_ns = ring::load(e.heartbeat_ns);
    const shm::seat_block& b = made_->seat[s.index];
    for (u32 j = b.first_job; j < std::min(b.first_job + b.jobs, shm::max_jobs); ++j) {
        const ring::job_word w = ring::job_word::of(ring::load(c_->job[j]));
        if (w.epoch != s.now->who.epoch) continue;
        v.open = v.open || w.state == ring::job_state::open;
        v.submitted = v.submitted || w.state == ring::job_state::submitted || w.state == ring::job_state::committed;
    }
    v.in_hand = v.open || v.submitted;
    v.stopped = age_ns(v.heartbeat_ns, 0, now) > suspect_after_ns && shm::is_stopped(s.now->pid);
    v.frames_wait = heart_is_late(v, now) && work_waits(s);
    return v;
}

// Each process is judged by itself, in the same tick.
void seat_keeper::watch_deadlines(u64 now) {
    struct watched {
        seat* who;
        u32 epoch;
    };
    std::vector<watched> all;
    std::vector<process_view> views;
    for (auto& s : seats_) {
        if (!s->now || s->now->seen_dead_ns != 0) continue;
        if (s->machine.state() == seat_state::starting && !s->now->tool) {
            watch_start(*s, now);
        } else {
            all.push_back({s.get(), s->now->who.epoch});
            views.push_back(view(*s, now));
        }
    }
    const std::vector<offence> verdicts = supervisor::judge(views, now);  // not the judgement of a death
    for (std::size_t k = 0; k < all.size(); ++k) {
        seat& s = *all[k].who;
        if (verdicts[k] == offence::none) continue;
        // Another's end in this tick may have been its end, too (they share an MPS domain).
        if (!s.now || s.now->seen_dead_ns != 0 || s.now->who.epoch != all[k].epoch) continue;
        if (verdicts[k] == offence::device && views[k].device != shm::none) restart_device_clocks(views[k].device, now);
        missed(s, describe(verdicts[k], views[k]));
    }
}

void seat_keeper::watch_start(seat& s, u64 now) {
    if (waits_for_asset(s)) s.clock_base_ns = now;  // not its fault
    const u64 since = std::max(s.now->spawned_ns, s.clock_base_ns);
    if (now > since && now - since > setup_->start_timeout_ns) missed(s, "it does not become ready");
}

void seat_keeper::missed(seat& s, const std::string& what) {
    life& l = *s.now;
    l.by_us = true;
    // A process that somebody has stopped is no offender: its frames are innocent.
    if (shm::is_stopped(l.pid)) {
        l.how.outside = true;
        l.how.known = true;
        l.how.signal = 19;
        say(fmt::format("{} (pid {}) was stopped from outside and {}: replacing it", s.label, l.pid, what));
    } else {
        l.how.deadline = true;
        say(fmt::format("{} (pid {}): {}: replacing it", s.label, l.pid, what));
    }
    bury(s);
}

bool seat_keeper::work_waits(const seat& s) const noexcept {
    const shm::stage_block& b = c_->stage[s.stage];
    if (b.source != shm::none && b.output_link < shm::max_links) {
        const u64 t = ring::load(c_->link[b.output_link].tail), end = ring::load(c_->end);
        return end == ring::end_stopping || (t < end && ring::link_ref(*c_, b.output_link).has_free_slot());
    }
    for (u32 i = 0; i < std::min(b.inputs, shm::max_inputs); ++i) {
        if (b.input_link[i] >= shm::max_links || b.input_group[i] >= shm::max_blocking) continue;
        const ring::link_ref link(*c_, b.input_link[i]);
        ring::ready_map ready;
        link.read_ready(ready);
        for (u32 k = 0; k < ready.window; ++k) {
            u64 raw = 0;
            if (ready.at[k] && link.lease(ready.at[k], b.input_group[i], raw).state <= ring::lease_state::leased) return true;
        }
    }
    return through(s.stage);  // it should have left by now
}

bool seat_keeper::waits_for_asset(const seat& s) const noexcept {
    for (u32 k = 0; k < setup_->assets.size() && k < shm::max_assets; ++k) {
        const asset_setup& a = setup_->assets[k];
        const bool ready = ring::field(ring::load(c_->asset[k].state), 0, 4) == static_cast<u64>(shm::asset_state::ready);
        if (!ready && a.maker != s.stage && std::find(a.users.begin(), a.users.end(), s.stage) != a.users.end()) return true;
    }
    return false;
}

bool seat_keeper::through(u32 stage) const noexcept {
    const u64 end = end_ ? *end_ : ring::load(c_->end);
    if (end == ring::end_unknown || end == ring::end_stopping) return false;
    const shm::stage_block& b = made_->stage[stage];
    if (b.source != shm::none) return b.output_link < shm::max_links && ring::load(c_->link[b.output_link].tail) >= end;
    for (u32 i = 0; i < std::min(b.inputs, shm::max_inputs); ++i)
        if (b.input_link[i] >= shm::max_links || ring::load(c_->link[b.input_link[i]].tail) < end) return false;
    return true;
}

void seat_keeper::sample(seat& s, u64 now) noexcept {
    if (now - s.sampled_at_ns < sample_every_ns) return;
    const u64 cpu = s.now ? ring::load(c_->entry[s.now->who.entry].cpu_ns) : 0;
    s.cpu_percent = s.sampled_at_ns != 0 && cpu > s.sampled_cpu_ns
                        ? 100.0 * static_cast<f64>(cpu - s.sampled_cpu_ns) / static_cast<f64>(now - s.sampled_at_ns)
                        : 0;
    s.sampled_cpu_ns = cpu;
    s.sampled_at_ns = now;
}

}  // namespace carousel::supervisor
