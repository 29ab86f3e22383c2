// seat_keeper: what is looked at in each tick. Deadlines run only for seats that run, are not held and have no tool in front.
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

/// Age of a job's clock, 0 when it doesn't run. An OPEN job's runs inside process() only.
u64 clock_age(const shm::control_block& c, u32 job, u32 epoch, u64 base, u64 now) noexcept {
    const u64 raw = ring::load(c.job[job]);
    const ring::job_word w = ring::job_word::of(raw);
    if (w.epoch != epoch) return 0;
    u64 since = 0;
    if (w.state == ring::job_state::open) {
        since = ring::load(c.job_info[job].process_since_ns);
    } else if (w.state == ring::job_state::submitted) {
        since = ring::load(c.job_info[job].submitted_since_ns);
    }
    if (since == 0 || ring::load(c.job[job]) != raw) return 0;  // the stamp may be another job's: look again at the next tick
    since = std::max(since, base);
    return now > since ? now - since : 0;
}

}  // namespace

void seat_keeper::tick(u64 now) {
    // A supervisor that was stopped or starved itself has no right to call others late.
    if (last_tick_ns_ != 0 && now - last_tick_ns_ > setup_->frame_timeout_ns / 2) restart_clocks(now);
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

void seat_keeper::restart_clocks(u64 now) noexcept {
    for (auto& s : seats_) s->clock_base_ns = std::max(s->clock_base_ns, now);
}

// Under time slices one hung kernel slows every other: the oldest offender alone is killed, then the others' clocks begin anew.
void seat_keeper::watch_deadlines(u64 now) {
    seat* oldest = nullptr;
    u64 oldest_age = setup_->frame_timeout_ns;
    for (auto& s : seats_) {
        if (!s->now || s->now->tool || s->now->seen_dead_ns != 0) continue;
        if (s->machine.state() == seat_state::starting) watch_start(*s, now);
        if (s->machine.state() != seat_state::running || !s->now) continue;
        const shm::seat_block& b = c_->seat[s->index];
        for (u32 j = b.first_job; j < std::min(b.first_job + b.jobs, shm::max_jobs); ++j) {
            const u64 age = clock_age(*c_, j, s->now->who.epoch, s->clock_base_ns, now);
            if (age <= oldest_age) continue;
            oldest_age = age;
            oldest = s.get();
        }
    }
    if (oldest != nullptr) {
        missed(*oldest, "a frame takes longer than frame_timeout_ms");
        restart_clocks(now);
        return;
    }
    for (auto& s : seats_)
        if (s->now && !s->now->tool && s->now->seen_dead_ns == 0 && s->machine.state() == seat_state::running)
            watch_hearts(*s, now);
}

// A stopped process without a frame in hand is found by its heart alone, and only where work waits for it.
void seat_keeper::watch_hearts(seat& s, u64 now) {
    const u64 beat = std::max(ring::load(c_->entry[s.now->who.entry].heartbeat_ns), s.clock_base_ns);
    if (now <= beat || now - beat <= setup_->frame_timeout_ns || !work_waits(s)) return;
    missed(s, "it gives no sign of life while frames wait for it");
    restart_clocks(now);
}

void seat_keeper::watch_start(seat& s, u64 now) {
    if (waits_for_asset(s)) s.clock_base_ns = now;  // not its fault
    const u64 since = std::max(s.now->spawned_ns, s.clock_base_ns);
    if (now > since && now - since > setup_->start_timeout_ns) missed(s, "it does not become ready");
}

void seat_keeper::missed(seat& s, const char* what) {
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
    const u64 end = ring::load(c_->end);
    if (end == ring::end_unknown || end == ring::end_stopping) return false;
    const shm::stage_block& b = c_->stage[stage];
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
