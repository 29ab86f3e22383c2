#include "supervisor/processes/watch.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/clock.hpp"
#include "core/json.hpp"
#include "ring/recovery.hpp"
#include "ring/words.hpp"
#include "shm/process_id.hpp"
#include "supervisor/processes/retire.hpp"

namespace carousel::supervisor {
namespace {

/// time that may pass until a missed deadline is detected and the kill has taken effect
constexpr u64 slack_ns = 2 * ns_per_s;

/// True if `since` is plausible as the time at which the process began its present work: after its start, and
/// not longer ago than the deadline allows.
bool believable(u64 since, u64 spawned_ns, u64 timeout_ns, u64 now) noexcept {
    return since != 0 && since <= now && since >= spawned_ns &&
           (timeout_ns == 0 || now - since <= timeout_ns + slack_ns);
}

// True if a job of the process's epoch is in progress, and at least one of the process's clocks shows a
// believable() start of that work.
bool is_at_work(const process_table& t, const seat& s, u64 now) noexcept {
    const process_view v = view_of(t, s, now);
    const u64 spawned = std::min(s.now->spawned_ns, now);
    if (!v.has_frame) return false;
    for (const u64 since : {v.processing_ns, v.device_ns, v.finishing_ns})
        if (believable(since, spawned, v.frame_timeout_ns, now)) return true;
    return believable(full_disk_since_ns(*t.c, s), spawned, 0, now);
}

bool waits_for_link(const process_table& t, const seat& s, u64 now) noexcept {
    return believable(link_since_ns(*t.c, s), std::min(s.now->spawned_ns, now), 0, now);
}

/// Returns the oldest frame that the process has begun and not completed; nothing if there is none.
std::optional<u64> oldest_in_progress(const process_table& t, const seat& s) {
    std::optional<u64> oldest;
    const shm::seat_block& b = t.made->seat[s.index];
    for (u32 j = b.first_job; j < std::min(b.first_job + b.jobs, shm::max_jobs); ++j) {
        const ring::job_word w = ring::job_word::of(ring::load(t.c->job[j]));
        if (w.epoch != s.now->incarnation.epoch ||
            (w.state != ring::job_state::open && w.state != ring::job_state::submitted))
            continue;
        const u64 frame = ring::load(t.c->job_info[j].ring_sequence);
        oldest = std::min(oldest.value_or(frame), frame);
    }
    return oldest;
}

std::string frame_text(const std::optional<u64>& frame) {
    return frame ? fmt::format("frame {}", *frame) : "its frames";
}

// Returns the reason why a receiver waits. The text names the frame that has not arrived. If the other host
// may be unable to send that frame because of a sink on this host, the text also names that sink.
std::string missing_input(const process_table& t, const seat& s) {
    std::optional<u64> next;
    for (u32 k = 0; k < t.made->sources; ++k)
        if (t.made->source[k].stage == s.stage) next = ring::first_unbegun_by(*t.c, k);
    std::string text = fmt::format("{} waits for another host, from which {} has not arrived", s.label,
                                   next ? fmt::format("frame {}", *next) : "the next frame");
    const telemetry::undelivered_frame undelivered =
        find_undelivered_here(*t.setup, t.made->first_ring_sequence);
    if (undelivered.frame < next.value_or(0))
        text += fmt::format(
            "; {} has not written frame {} yet on this host, and a sender with release = \"durable\" keeps "
            "its frames until then",
            undelivered.sink, undelivered.frame);
    return text;
}

// Returns the reason why a sender waits: it keeps a frame until the other host has the frame in its ring, or
// in the files of all its sinks.
std::string missing_reader(const process_table& t, const seat& s) {
    const stage_setup& st = t.setup->stages[s.stage];
    const nlohmann::json& with = st.settings_of(s.instance);
    const std::string host =
        fmt::format("the host at {} port {}", with.value("address", "?"), with.value("port", 47100));
    const std::string frame = frame_text(oldest_in_progress(t, s));
    if (st.has_output())
        return fmt::format("{} waits for another host: {} has not returned from {}", s.label, frame, host);
    for (const char* key : {"url", "out"})  // of an encoder, which waits for its receiver
        if (!st.spec.remote && with.contains(key))
            return fmt::format("{} waits: the receiver of {} takes nothing", s.label, with.value(key, "?"));
    return fmt::format(
        "{} waits for another host: {} is not {} of {}", s.label, frame,
        with.value("release", "committed") == "durable" ? "in the files of all sinks" : "in the ring", host);
}

/// Returns the reason why a process waits for another host. Reasons on this host have priority, because the
/// other host may be waiting for this host.
std::string link_reason_of(const process_table& t, const seat& s, u64 now) {
    if (!s.now || s.now->ended || s.machine.state() != seat_state::running || !waits_for_link(t, s, now))
        return "";
    try {
        // A source waits because it has no frame, and a sink waits because it has frames to deliver.
        return t.setup->stages[s.stage].receives() ? missing_input(t, s) : missing_reader(t, s);
    } catch (const std::exception& e) {
        return fmt::format("{} waits for another host (the frame is unknown: {})", s.label, e.what());
    }
}

std::string reason_of(const process_table& t, const seat& s, u64 now) {
    const u64 in_state = now > s.machine.since_ns() ? now - s.machine.since_ns() : 0;
    switch (s.machine.state()) {
        case seat_state::starting:
            if (in_state > t.setup->start_timeout_ns + slack_ns) return "";
            return fmt::format("{} is starting", s.label);
        case seat_state::backoff:
            return in_state > longest_delay_ns + slack_ns
                       ? ""
                       : fmt::format("{} waits before its next start", s.label);
        case seat_state::stopped:
            return fmt::format("{} is paused (`carousel cont {}` continues it)", s.label, s.label);
        case seat_state::down:
            return fmt::format("{} is down (`carousel up {}` starts it)", s.label, s.label);
        case seat_state::stopping:
            return in_state > t.setup->stop_timeout_ns ? "" : fmt::format("{} is being taken down", s.label);
        case seat_state::vacant:
            return fmt::format("port {} has no program: the pipeline continues when a program opens it",
                               s.label);
        case seat_state::running:
            break;
        case seat_state::failed:
        case seat_state::done:
            return "";
    }
    if (!s.now || s.now->ended) return "";
    const process& p = *s.now;
    const bool stopped = !p.elsewhere && shm::is_stopped(p.pid);
    if (p.debuggers > 0 && stopped) return fmt::format("{} (pid {}) is debugged", s.label, p.pid);
    if ((p.tool || p.by_hand) && stopped)
        return fmt::format("{} (pid {}) is stopped by the tool that runs it", s.label, p.pid);
    if (stopped && !heart_is_late(view_of(t, s, now), now))
        return fmt::format("{} (pid {}) is stopped by a signal", s.label, p.pid);
    if (waits_for_link(t, s, now)) return "";  // see link_reason_of()
    if (is_at_work(t, s, now))
        return full_disk_since_ns(*t.c, s) != 0 ? fmt::format("{} waits for free space on its disk", s.label)
                                                : fmt::format("{} is processing a frame", s.label);
    if (p.port && !heart_is_late(view_of(t, s, now), now) && work_waits(t, s))
        return fmt::format("port {} has a program (pid {}) that requests no frame", s.label, p.pid);
    return "";
}

}  // namespace

void fill_known_run(const process_table& t, ring::known_run& known) {
    const auto add = [&](const process& p, bool current, bool standby) {
        // The entry of a fenced process may have been reused by now, but words may still contain the
        // process's epoch.
        known.processes.push_back({p.incarnation.seat, is_fenced(p) ? shm::none : p.incarnation.entry,
                                   p.incarnation.epoch, static_cast<u32>(p.pid), current, standby,
                                   p.how.was_ready, p.start_time});
    };
    for (const auto& s : t.seats) {
        u32 epoch = shm::none;
        if (s->successor) {
            known.processes.push_back({s->index, s->successor.entry, s->successor.epoch, 0, true, false});
            epoch = s->successor.epoch;
        } else if (s->now) {
            epoch = s->now->incarnation.epoch;
        }
        known.epochs.push_back(epoch);
        known.paused.push_back(s->machine.paused());
        if (s->now) add(*s->now, !s->successor && !is_doomed(*s->now), false);
        if (s->standby) add(*s->standby, false, true);
        for (const auto& p : s->gone) add(*p, false, false);
    }
}

std::string stall_reason(const process_table& t, u64 now) {
    if (t.renewing) return "the MPS domain is being renewed";
    for (const auto& s : t.seats) {
        const stage_setup& st = t.setup->stages[s->stage];
        if (st.spec.latest() || (st.spec.skips() && !s->now)) continue;  // no stage waits for this stage
        if (std::string why = reason_of(t, *s, now); !why.empty()) return why;
        // A process that was killed and has not ended still has buffers in quarantine; problems.hpp names
        // that process.
        const bool unfenced = std::any_of(s->gone.begin(), s->gone.end(), [](const auto& p) {
            return !p->ended && p->pid > 0 && p->kill_sent;
        });
        if (unfenced && count_quarantined(t, *s) > 0)
            return fmt::format("{} waits for the end of a process that it has replaced", s->label);
    }
    for (const auto& s : t.seats)
        if (std::string why = link_reason_of(t, *s, now); !why.empty()) return why;
    return "";
}

}  // namespace carousel::supervisor
