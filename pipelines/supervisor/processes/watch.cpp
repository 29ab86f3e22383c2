#include "supervisor/processes/watch.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/clock.hpp"
#include "os/spawn.hpp"
#include "ring/latest.hpp"
#include "ring/link.hpp"
#include "ring/participants.hpp"
#include "shm/process_id.hpp"
#include "supervisor/processes/mps_seats.hpp"
#include "supervisor/processes/port_seats.hpp"
#include "supervisor/processes/process_events.hpp"
#include "supervisor/processes/retire.hpp"
#include "supervisor/processes/standby.hpp"
#include "supervisor/processes/start.hpp"
#include "supervisor/processes/start_over.hpp"

namespace carousel::supervisor {
namespace {

constexpr u64 sample_every_ns = ns_per_s;
constexpr u64 orphans_every_ns = 500 * ns_per_ms;

/// a heartbeat is due every 50 ms; if the last heartbeat is older than this, the process may have been
/// stopped
constexpr u64 suspect_after_ns = 200 * ns_per_ms;
constexpr u64 shortest_heart_ns = 250 * ns_per_ms;
constexpr u64 least_patience_ns = 60 * ns_per_ms;  ///< three ticks

/// Returns a number that is equal for seats that share a GPU: the number of the first instance on that GPU,
/// counted over all stages. Returns none for a seat on the CPU.
u32 shared_device(const run_setup& s, u32 stage, u32 instance) noexcept {
    const device::device_id& own = s.stages[stage].device_of(instance);
    if (own.kind != device::device_kind::cuda) return shm::none;
    u32 number = 0;
    for (const stage_setup& st : s.stages) {
        for (u32 k = 0; k < st.spec.instances; ++k, ++number)
            if (st.device_of(k).kind == own.kind && st.device_of(k).uuid == own.uuid) return number;
    }
    return number;
}

/// The heartbeat continues while the process computes, so a long frame_timeout_ms does not require a longer
/// heart timeout.
u64 heart_timeout(const run_setup& s, u32 stage) noexcept {
    const u64 all = s.frame_timeout_ns() != 0 ? s.frame_timeout_ns() : default_heart_timeout_ns;
    const u64 own = s.stages[stage].spec.frame_timeout_ns();
    return std::max(shortest_heart_ns, own != 0 ? std::min(own, all) : all);
}

}  // namespace

bool work_waits(const process_table& t, const seat& s) noexcept {
    const shm::stage_block& b = t.c->stage[s.stage];
    if (b.source != shm::none && b.outputs > 0) {
        const u64 end = ring::load(t.c->end);
        bool room = true, through = true;
        for (u32 i = 0; i < std::min(b.outputs, shm::max_outputs); ++i) {
            const ring::link_ref out(*t.c, std::min(b.output_link[i], shm::max_links - 1));
            room = room && out.has_free_slot();
            through = through && out.tail() >= end;
        }
        return end == ring::end_stopping || (!through && room);
    }
    const u64 end = ring::load(t.c->end);
    for (u32 i = 0; i < std::min(b.inputs, shm::max_inputs); ++i) {
        if (b.input_link[i] >= shm::max_links || b.input_group[i] >= shm::max_blocking) continue;
        const ring::link_ref link(*t.c, b.input_link[i]);
        ring::ready_map ready;
        link.read_ready(ready);
        for (u32 k = 0; k < ready.window; ++k) {
            u64 raw = 0;
            if (ready.at[k] && ready.at[k].ring_sequence < end &&
                link.lease(ready.at[k], b.input_group[i], raw).state <= ring::lease_state::leased)
                return true;
        }
    }
    return t.through(s.stage);  // every frame has passed the stage, so the process should have exited by now
}

namespace {

u64 held_since_ns(const shm::control_block& c, const seat& s, shm::pause_reason why) noexcept {
    if (!s.now || s.now->seen_dead_ns != 0) return 0;
    const shm::incarnation& e = c.entry[s.now->incarnation.entry];
    const u64 since = ring::load(e.paused_since_ns);
    return ring::load(e.pause) == static_cast<u64>(why) ? since : 0;
}

}  // namespace

u64 full_disk_since_ns(const shm::control_block& c, const seat& s) noexcept {
    return held_since_ns(c, s, shm::pause_reason::disk_full);
}

u64 link_since_ns(const shm::control_block& c, const seat& s) noexcept {
    return held_since_ns(c, s, shm::pause_reason::link);
}

namespace {

u64 longest_tick_ns(const process_table& t) noexcept {
    u64 shortest = heart_timeout(*t.setup, 0);
    for (const stage_setup& st : t.setup->stages)
        if (st.spec.frame_timeout_ns() != 0) shortest = std::min(shortest, st.spec.frame_timeout_ns());
    return std::max(least_patience_ns, shortest / 2);
}

void restart_device_clocks(process_table& t, u32 device, u64 now) noexcept {
    for (auto& s : t.seats)
        if (shared_device(*t.setup, s->stage, s->instance) == device) s->device_base_ns = now;
}

bool waits_for_asset(const process_table& t, const seat& s) noexcept {
    for (u32 k = 0; k < t.setup->assets.size() && k < shm::max_assets; ++k) {
        const asset_setup& a = t.setup->assets[k];
        const bool ready = ring::asset_is_ready(*t.c, k);
        if (!ready && a.maker != s.stage &&
            std::find(a.users.begin(), a.users.end(), s.stage) != a.users.end())
            return true;
    }
    return false;
}

void watch_start(process_table& t, seat& s, u64 now) {
    if (waits_for_asset(t, s)) s.clock_base_ns = now;  // not its fault
    const u64 since = t.groups.uncounted().shifted(std::max(s.now->spawned_ns, s.clock_base_ns), now);
    if (now > since && now - since > t.setup->start_timeout_ns)
        deadline_missed(t, s, "it has not become ready in time");
}

/// Returns a text for the log if a quota, a freezer or a busy machine stopped the run while the frame was
/// late; otherwise "".
std::string uncounted_text(const process_table& t, u64 now) {
    const u64 before = now - std::min(now, 10 * ns_per_s);
    const u64 lost = t.groups.uncounted().between(before, now);
    if (lost < ns_per_s) return "";
    return fmt::format(" (the run itself was stopped for {:.1f} of the last 10 s, which are not counted)",
                       static_cast<f64>(lost) / 1e9);
}

/// Reaps the orphans that this process inherits if it is PID 1 or a child subreaper.
void reap_inherited(process_table& t, u64 now) {
    if (now < t.orphans_due_ns || !inherits_orphans()) return;
    t.orphans_due_ns = now + orphans_every_ns;
    (void)reap_orphans([&](pid_t pid) {
        const auto is_it = [&](const std::unique_ptr<process>& p) {
            return p && p->pid == pid && !p->port && !p->ended;
        };
        return std::any_of(t.seats.begin(), t.seats.end(), [&](const auto& s) {
            return is_it(s->now) || is_it(s->standby) || std::any_of(s->gone.begin(), s->gone.end(), is_it);
        });
    });
}

// Each process is judged separately, in the same tick.
void watch_deadlines(process_table& t, u64 now) {
    struct watched {
        seat* holder;
        u32 epoch;
    };
    std::vector<watched> all;
    std::vector<process_view> views;
    for (auto& s : t.seats) {
        if (!s->now || s->now->seen_dead_ns != 0) continue;
        if (s->machine.state() == seat_state::starting && !is_under_tool(*s->now)) {
            watch_start(t, *s, now);
        } else {
            all.push_back({s.get(), s->now->incarnation.epoch});
            views.push_back(view_of(t, *s, now));
        }
    }
    // these verdicts state which processes are late; deaths are judged elsewhere
    const std::vector<offence> verdicts = judge(views, now);
    for (std::size_t k = 0; k < all.size(); ++k) {
        seat& s = *all[k].holder;
        if (verdicts[k] == offence::none) continue;
        // This process may have ended in this tick because another process of its MPS domain was retired.
        if (!s.now || s.now->seen_dead_ns != 0 || s.now->incarnation.epoch != all[k].epoch) continue;
        if (verdicts[k] == offence::device && views[k].device != shm::none)
            restart_device_clocks(t, views[k].device, now);
        deadline_missed(t, s, describe(verdicts[k], views[k]) + uncounted_text(t, now));
    }
}

void sample(process_table& t, seat& s, u64 now) noexcept {
    if (const u64 depth = s.now ? ring::load(t.c->entry[s.now->incarnation.entry].depth) : 0; depth != 0)
        s.depth = depth;
    if (now - s.sampled_at_ns < sample_every_ns) return;
    const u64 cpu = s.now ? ring::load(t.c->entry[s.now->incarnation.entry].cpu_ns) : 0;
    s.cpu_percent =
        s.sampled_at_ns != 0 && cpu > s.sampled_cpu_ns
            ? 100.0 * static_cast<f64>(cpu - s.sampled_cpu_ns) / static_cast<f64>(now - s.sampled_at_ns)
            : 0;
    s.sampled_cpu_ns = cpu;
    s.sampled_at_ns = now;
}

}  // namespace

void supervise_seats(process_table& t, u64 now) {
    // A supervisor that was itself stopped or starved cannot judge whether processes are late.
    if (t.last_tick_ns != 0 && now - t.last_tick_ns > longest_tick_ns(t)) restart_clocks(t, now);
    t.last_tick_ns = now;
    t.groups.tick(now);
    if (const std::string text = t.groups.log_text(); !text.empty()) t.log_line(text);
    reap_inherited(t, now);
    watch_domain(t);
    in_order(t, [&] {
        for (auto& s : t.seats) {
            poll_ports(t, *s);
            for (auto& p : s->gone) poll_retirement(t, *s, *p, now);
            // its retirement could not begin earlier, because no entry was free
            if (s->now && is_condemned(*s->now)) poll_retirement(t, *s, *s->now, now);
        }
    });
    for (auto& s : t.seats) {
        std::erase_if(s->gone, [&](const auto& p) {
            if (!is_over(*p)) return false;
            if (p->log.fd() >= 0) t.loop->forget(p->log.fd());
            return true;
        });
        if (s->start_wanted && !s->now && now >= s->due_ns) start_seat(t, *s);
        keep_standby(t, *s, now);
        sample(t, *s, now);
    }
    watch_detaching(t, now);
    settle_absent_readers(t);
    const auto counted = [&](u64 since) { return t.groups.uncounted().shifted(since, now); };
    for (u32 k = 0; k < std::min(t.c->links, shm::max_links); ++k)
        ring::revoke_stale_leases(*t.c, k, now, counted);
    watch_deadlines(t, now);
}

void restart_clocks(process_table& t, u64 now) noexcept {
    if (t.holders_gone_ns != 0) t.holders_gone_ns = now;
    for (auto& s : t.seats) s->clock_base_ns = std::max(s->clock_base_ns, now);
}

// The words of the entry may be damaged, so a clock counts only while a job word of the process's epoch
// confirms it.
process_view view_of(const process_table& t, const seat& s, u64 now) noexcept {
    const shm::incarnation& e = t.c->entry[s.now->incarnation.entry];
    process_view v;
    v.state = s.machine.state();
    v.tool = is_under_tool(*s.now);
    // The start of every clock is shifted by the time that no deadline counts.
    const auto counted = [&](u64 since) { return t.groups.uncounted().shifted(since, now); };
    v.base_ns = counted(s.clock_base_ns);
    v.device_base_ns = counted(s.device_base_ns);
    const stage_spec& spec = t.setup->stages[s.stage].spec;
    v.first_frame = ring::load(e.commits) == 0 && spec.first_frame_timeout_ns() > spec.frame_timeout_ns();
    v.frame_timeout_ns = v.first_frame ? spec.first_frame_timeout_ns() : spec.frame_timeout_ns();
    v.heart_timeout_ns = heart_timeout(*t.setup, s.stage);
    v.device = shared_device(*t.setup, s.stage, s.instance);
    // read before the clocks below, because a clock restarts when the pause ends
    v.pause_ns = ring::paused_since(e);
    v.processing_ns = counted(ring::load(e.processing_since_ns));
    v.device_ns = counted(ring::load(e.device_since_ns));
    v.finishing_ns = counted(ring::load(e.finishing_since_ns));
    v.heartbeat_ns = counted(ring::load(e.heartbeat_ns));
    const shm::seat_block& b = t.made->seat[s.index];
    for (u32 j = b.first_job; j < std::min(b.first_job + b.jobs, shm::max_jobs); ++j) {
        const ring::job_word w = ring::job_word::of(ring::load(t.c->job[j]));
        if (w.epoch != s.now->incarnation.epoch) continue;
        v.open = v.open || w.state == ring::job_state::open;
        v.submitted =
            v.submitted || w.state == ring::job_state::submitted || w.state == ring::job_state::committed;
    }
    v.has_frame = v.open || v.submitted;
    // /proc is read only if the result could exempt a process from a deadline.
    v.stopped = v.state == seat_state::running && v.has_frame && !s.now->elsewhere &&
                age_ns(v.heartbeat_ns, 0, now) > suspect_after_ns && shm::is_stopped(s.now->pid);
    v.frames_wait = heart_is_late(v, now) && work_waits(t, s);
    return v;
}

}  // namespace carousel::supervisor
