// What must hold in a simulated run, and at its end.
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "ledger/ledger.hpp"
#include "ring/link.hpp"
#include "simulated_history.hpp"

namespace carousel::test {

// ---- the liveness oracle

bool simulated_history::is_withheld() const {
    if (machine_.disk_full || machine_.no_process_left || machine_.now() < supervisor_->stopped_until_ns)
        return true;
    return std::any_of(engine_->seats().seats.begin(), engine_->seats().seats.end(), [this](const auto& s) {
        return s->machine.paused() || s->machine.state() == seat_state::down ||
               (s->machine.state() == seat_state::vacant && !setup_.stages[s->stage].spec.skips());
    });
}

std::string simulated_history::why() const {
    std::string text;
    if (engine_ == nullptr) return "its supervisor is not at work";
    for (const auto& s : engine_->seats().seats)
        text += s->label + " is " + name_of(s->machine.state()) +
                (s->now ? " (pid " + std::to_string(s->now->pid) + "), " : ", ");
    return text + std::to_string(run_.commits) + " commits";
}

void simulated_history::watch() {
    if (is_over()) return;
    note_log();
    if (run_.commits != seen_commits_ || engine_ == nullptr || is_withheld()) {
        seen_commits_ = run_.commits;
        moved_ns_ = machine_.now();
        reported_ = false;
    } else if (machine_.now() > moved_ns_ + longest_quiet_ns && !reported_) {
        reported_ = true;
        run_.violated("no frame advances, and nothing is withheld: " + why());
    }
    notice_rebuild();
    notice_failures();
    notice_downs();
    machine_.after(50 * ns_per_ms, [this] { watch(); });
}

// The supervisor also takes a port from a program that does not respond.
void simulated_history::notice_absences() {
    for (const auto& s : engine_->seats().seats) {
        const stage_spec& spec = setup_.stages[s->stage].spec;
        const seat_state state = s->machine.state();
        if (state == seat_state::failed || (spec.skips() && !s->now && state != seat_state::done))
            run_.is_absent(spec.name);
    }
}

void simulated_history::notice_failures() {
    if (engine_ == nullptr) return;
    notice_absences();
    for (const auto& s : engine_->seats().seats) {
        const std::string& name = setup_.stages[s->stage].spec.name;
        if (s->machine.state() != seat_state::failed) continue;
        if (machine_.below(3) == 0) continue;
        run_.broken.erase(name);
        ++result_.returns;
        send_order(run::seat_order::up, s->label);
    }
}

void simulated_history::notice_downs() {
    if (engine_ == nullptr) return;
    for (const auto& s : engine_->seats().seats) {
        const auto at = ordered_down_.find(s->label);
        if (at == ordered_down_.end()) continue;
        const seat_state state = s->machine.state();
        if (at->second && (state == seat_state::starting || state == seat_state::running)) {
            run_.violated("up without a command: " + s->label + " is " + name_of(state));
            ordered_down_.erase(at);
        } else {
            at->second = at->second || state == seat_state::down;
        }
    }
}

void simulated_history::judge_lost_memory() {
    if (faults_when_all_lived_ != result_.faults) return;
    // A process that has ended by itself had processed the last frame.
    const bool lived = std::all_of(left_by_supervisor_.begin(), left_by_supervisor_.end(), [this](i32 pid) {
        const simulated_process* const p = machine_.find(pid);
        return !p->exiting || p->signal != 0 || p->exit_code != 0;
    });
    if (lived) run_.violated("memory is lost, although each process has returned it");
}

void simulated_history::notice_rebuild() {
    if (engine_ == nullptr || engine_->control().created_ns == seen_block_) return;
    if (seen_block_ != 0) {
        const u64 first = engine_->control().first_ring_sequence;
        machine_.note("rebuilt from frame " + std::to_string(first) + " on");
        ++result_.rebuilds;
        for (auto& [sink, frames] : run_.delivered) {
            if (setup_.stages[sink].spec.is_port()) continue;  // its program gets no frame again
            const auto ledger = telemetry::ledger_reader::open(
                telemetry::ledger_path(setup_.directory, setup_.stages[sink].spec.name));
            const u64 from = ledger ? ledger->first_undelivered(first) : first;
            frames.erase(frames.lower_bound(from), frames.end());
        }
        // Frames that a reader had before it was absent may be made again and pass it by.
        for (auto& [stage, all] : run_.attendances)
            for (observed_run::attendance& a : all)
                if (!a.present)
                    a.last = std::min(a.last, first);
                else  // before the first frame that it was promised, a rebuild may take frames from it
                    a.from = telemetry::frame_claims::load(telemetry::ledger_path(setup_.directory, stage))
                                 .first_from(a.from);
    }
    seen_block_ = engine_->control().created_ns;
}

// ---- the safety oracles

void simulated_history::check_words(const shm::control_block& c, const run_outcome& o) {
    if (!o.complete) return;
    for (u32 k = 0; k < c.links; ++k)
        for (u32 slot = 0; slot < c.link[k].slots; ++slot) {
            const ring::slot_word w = ring::slot_word::of(ring::load(c.link[k].slot[slot]));
            if (w.state == ring::slot_state::fill || w.state == ring::slot_state::quarantined)
                run_.violated("leaked: slot " + std::to_string(slot) + " of ring " + std::to_string(k) +
                              " is in state " + std::to_string(static_cast<u32>(w.state)));
        }
}

void simulated_history::judge() {
    if (outcome_) judge_outcome(*outcome_);
    for (const auto& [pid, p] : machine_.processes())
        if (!p->reaped && !p->elsewhere && !(lost_ && p->exiting))
            run_.violated("leaked: pid " + std::to_string(pid) + " is not reaped");
    if (shm::segment::exists(run_.run_id)) run_.violated("leaked: the control block");
    judge_descriptors();
}

void simulated_history::judge_outcome(const run_outcome& o) {
    machine_.note("ends with exit code " + std::to_string(o.exit_code) + ": " + o.ending + ", before frame " +
                  std::to_string(o.end));
    if (!o.complete || o.exit_code != 0) run_.violated("the run fails: " + o.ending);
    if (o.repairs.stalls + o.repairs.damaged + o.repairs.words != 0)
        run_.violated("damage is reported, although no word was damaged");
    const u64 end = std::min<u64>(setup_.end, run_.ends_at);
    if (o.complete && o.end != end) run_.violated("the run ends before frame " + std::to_string(o.end));
    for (u32 k = 0; o.complete && k < setup_.stages.size(); ++k) {
        const stage_setup& st = setup_.stages[k];
        if (st.has_output()) continue;
        const bool may_miss = st.spec.optional || st.spec.skips();
        for (u64 frame = 0; frame < end && !may_miss; frame += st.spec.every)
            if (run_.delivered[k].count(frame) == 0)
                run_.violated("lost: " + st.spec.name + " has no frame " + std::to_string(frame));
        if (may_miss) judge_attendances(k, end);
        for (const auto& [frame, count] : run_.delivered[k])
            if (frame >= end)
                run_.violated("beyond: " + st.spec.name + " has frame " + std::to_string(frame));
        judge_ledger(st.spec.name, end);
    }
}

void simulated_history::judge_attendances(u32 k, u64 end) {
    const stage_setup& st = setup_.stages[k];
    for (const observed_run::attendance& a : run_.attendances[st.spec.name])
        for (u64 frame = (a.from + st.spec.every - 1) / st.spec.every * st.spec.every;
             frame < (a.present ? end
                      : a.any   ? a.last
                                : 0);
             frame += st.spec.every)
            if (run_.delivered[k].count(frame) == 0)
                run_.violated("missed: " + st.spec.name + " has no frame " + std::to_string(frame) +
                              ", and reads from frame " + std::to_string(a.from) + " on");
}

void simulated_history::judge_ledger(const std::string& sink, u64 end) {
    const auto ledger = telemetry::ledger_reader::open(telemetry::ledger_path(run_.folder, sink));
    const auto& all = run_.attendances[sink];
    const bool had_none = std::none_of(all.begin(), all.end(), [](const auto& a) { return a.any; });
    if (!ledger && run_.absent.count(sink) > 0 && had_none) return;
    if (!ledger) return run_.violated("lost: " + sink + " has no ledger");
    const telemetry::ledger_summary sum = ledger->summarize(end);
    if (sum.lost + sum.repeated + sum.unmarked != 0)
        run_.violated("the ledger of " + sink + " has " + std::to_string(sum.lost) + " lost, " +
                      std::to_string(sum.repeated) + " repeated frames");
}

void simulated_history::judge_descriptors() {
    std::set<int> simulated;
    for (const auto& [pid, p] : machine_.processes()) simulated.insert({p->pidfd, p->death});
    u64 leaked = 0;
    for (const int fd : clients_) ::close(fd);
    for (const auto& [pid, p] : machine_.processes())
        if (p->elsewhere) p->runs->ends();
    std::string what;
    for (const int fd : open_descriptors()) {
        if (before_.count(fd) > 0 || simulated.count(fd) > 0) continue;
        ++leaked;
        char name[64] = {};
        (void)!::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), name, sizeof name - 1);
        what += (what.empty() ? "" : ", ") + std::string(name, std::strcspn(name, "0123456789"));
    }
    if (leaked > 0) run_.violated("leaked: " + std::to_string(leaked) + " descriptors (" + what + ")");
}

}  // namespace carousel::test
