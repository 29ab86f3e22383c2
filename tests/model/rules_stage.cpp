// A stage's step: one lane per job in flight. Also the GPU, whose writes land at any time until the fence.

#include <fmt/format.h>

#include "moves.hpp"

namespace carousel::model {
namespace {

struct lane_view {
    int lane, e, stage;
    const stage_setup& setup;
    const lane_registers& regs;
    actor acting;
};

u8 narrow(int v) { return static_cast<u8>(v); }

void gpu_rule(moves& m, const lane_view& v) {
    if ((v.regs.gpu != gpu_work::pending && v.regs.gpu != gpu_work::half) || m.fenced(v.e)) return;
    state& t = m.next();
    const int n = m.cfg.outputs(v.stage), k = v.regs.gpu == gpu_work::half ? 1 : 0;
    const bool last = k + 1 >= n;
    t.lane[v.lane].gpu = last ? gpu_work::done : gpu_work::half;
    const slot_register* const out = t.output[v.lane];
    if (k < n && out[k].slot != none) t.link[v.setup.output[k]].slot[out[k].slot].content = v.regs.frame;
    // One event per job, that of its first output's slot, recorded after all of its work.
    if (n > 0 && out[0].slot != none && (last || m.cfg.seeded.event_of_first))
        t.event_pending[v.e][out[0].slot] = 0;  // a query can't tell "done" from "never recorded"
    m.emit({action::gpu_writes, narrow(v.lane)}, actor::gpu);
}

// Takes an idle job word of its own epoch; any of them will do.
void open_rule(moves& m, const lane_view& v) {
    if (v.setup.source < 0) return input_rules(m, v.lane);
    if (m.cfg.two_step_lease) return number_rules(m, v.lane);
    const int first = m.cfg.incarnations[v.e].seat * m.cfg.jobs_a_seat;
    for (int j = first; j < first + m.cfg.jobs_a_seat; ++j) {
        const job_word& w = m.now().job[j];
        if (w.state != job_state::idle || (m.cfg.with.idle_names_epoch && w.epoch != v.e)) continue;
        state& t = m.next();
        t.job[j] = {w.version, narrow(v.e), job_state::open};
        t.lane[v.lane].at = step::opened;
        t.lane[v.lane].job = narrow(j);
        t.lane[v.lane].version = w.version;
        return m.emit({action::open, narrow(v.lane)}, v.acting);
    }
}

int free_slot(const moves& m, int link) {
    for (int x = 0; x < m.cfg.links[link].slots; ++x)
        if (m.now().link[link].slot[x].state == slot_state::free) return x;
    return -1;
}

// One output after the other. Each gets room eventually: the window of every one was checked at the lease.
void fill_rule(moves& m, const lane_view& v) {
    state& t = m.next();
    const int n = m.cfg.outputs(v.stage), k = v.regs.at == step::half_filled ? 1 : 0;
    t.lane[v.lane].at = k + 1 < n ? step::half_filled : step::filled;
    if (n == 0) return m.emit({action::fill, narrow(v.lane)}, v.acting);
    const int link = v.setup.output[k], x = free_slot(m, link);
    if (x < 0) return;
    slot_word& w = t.link[link].slot[x];
    w = {w.generation, slot_state::fill, v.regs.job, v.regs.version, w.ring_sequence, spoiled};
    t.output[v.lane][k] = {narrow(x), w.generation};
    m.emit({action::fill, narrow(v.lane), narrow(x)}, v.acting);
}

bool kills(const moves& m, const lane_view& v) {
    return m.cfg.poison >= 0 && v.regs.frame == m.cfg.poison && (v.regs.flags & lane_tombstone) == 0;
}

void die_of_frame(moves& m, const lane_view& v) {
    state& t = m.next();
    t.incarnation[v.e].alive = process_state::dead;
    t.incarnation[v.e].self_inflicted = 1;
    m.emit({action::die_of_frame, narrow(v.lane)}, v.acting);
}

// Header, kernels, status word, event record. A frame that kills does so here; a tombstone frame runs no
// kernel of the stage.
void launch_rule(moves& m, const lane_view& v) {
    if (kills(m, v)) return die_of_frame(m, v);
    state& t = m.next();
    t.lane[v.lane].at = step::launched;
    t.lane[v.lane].gpu = m.cfg.quick_gpu ? gpu_work::done : gpu_work::pending;
    for (int k = 0; k < m.cfg.outputs(v.stage); ++k) {
        const u8 x = t.output[v.lane][k].slot;
        slot_word& w = t.link[v.setup.output[k]].slot[x];
        w.ring_sequence = v.regs.frame;
        if (m.cfg.quick_gpu) w.content = v.regs.frame;
        if (k == 0) t.event_pending[v.e][x] = m.cfg.quick_gpu ? 0 : 1;
    }
    m.emit({action::launch, narrow(v.lane)}, v.acting);
}

void exit_revoked(moves& m, const lane_view& v, const char* what) {
    if (!m.declared(v.e))
        m.fail(failure::spurious,
               fmt::format("lane {} {} though nobody took its words from it", v.lane, what));
    m.next().incarnation[v.e].alive = process_state::dead;
    m.emit({action::find_revoked, narrow(v.lane)}, v.acting);
}

void submit_rule(moves& m, const lane_view& v) {
    const job_word& j = m.now().job[v.regs.job];
    if (m.cfg.with.help_from_submitted && j != job_word{v.regs.version, narrow(v.e), job_state::open})
        return exit_revoked(m, v, "fails to submit");
    state& t = m.next();
    t.lane[v.lane].at = step::submitted;
    if (m.cfg.with.help_from_submitted) t.job[v.regs.job].state = job_state::submitted;
    m.emit({action::submit, narrow(v.lane)}, v.acting);
}

// A sink's frames in flight are committed in order of ring sequence.
bool lower_frame_in_flight(const moves& m, const lane_view& v) {
    for (size_t l = 0; l < m.cfg.lanes.size(); ++l) {
        const lane_registers& o = m.now().lane[l];
        if (m.cfg.lanes[l] == v.e && o.frame != none && o.frame < v.regs.frame && o.at < step::committed)
            return true;
    }
    return false;
}

// Fill to submit as one step. A revoked incarnation fills nothing here; what a zombie leaves is the subject
// of other set-ups.
void work_rule(moves& m, const lane_view& v) {
    if (kills(m, v)) return die_of_frame(m, v);
    if (m.now().job[v.regs.job] != job_word{v.regs.version, narrow(v.e), job_state::open})
        return exit_revoked(m, v, "fails to submit");
    state& t = m.next();
    lane_registers& p = t.lane[v.lane];
    for (int k = 0; k < m.cfg.outputs(v.stage); ++k) {
        const int x = free_slot(m, v.setup.output[k]);
        if (x < 0) return;
        slot_word& w = t.link[v.setup.output[k]].slot[x];
        w = {w.generation, slot_state::fill, p.job, p.version, p.frame, p.frame};
        t.output[v.lane][k] = {narrow(x), w.generation};
    }
    p.gpu = gpu_work::done;
    p.at = step::submitted;
    t.job[p.job].state = job_state::submitted;
    m.emit({action::work, narrow(v.lane)}, v.acting);
}

void commit_rule(moves& m, const lane_view& v) {
    if (v.regs.gpu != gpu_work::done && !m.cfg.seeded.commit_before_done) return;
    if (m.cfg.outputs(v.stage) == 0 && m.cfg.with.sink_commits_in_order && lower_frame_in_flight(m, v))
        return;
    const job_word& j = m.now().job[v.regs.job];
    const job_state from = m.cfg.with.help_from_submitted ? job_state::submitted : job_state::open;
    if (j == job_word{v.regs.version, narrow(v.e), from}) {
        state& t = m.next();
        t.lane[v.lane].at = step::committed;
        m.commit(t, v.regs.job, v.regs.version, v.e);
        return m.emit({action::commit, narrow(v.lane)}, v.acting);
    }
    const bool helped = j == job_word{v.regs.version, narrow(v.e), job_state::committed} ||
                        (j.version > v.regs.version && !m.declared(v.e));
    if (!m.cfg.with.read_again || !helped) return exit_revoked(m, v, "exits");
    m.next().lane[v.lane].at = step::committed;
    m.emit({action::find_helped, narrow(v.lane)}, v.acting);
}

void show_rule(moves& m, const lane_view& v) {
    state& t = m.next();
    const int n = m.cfg.outputs(v.stage), k = v.regs.at == step::half_shown ? 1 : 0;
    const bool more = k + 1 < n && !m.cfg.seeded.idle_before_second;
    t.lane[v.lane].at = more ? step::half_shown : step::shown;
    if (k < n && m.filled(t, v.lane, k) != nullptr)
        m.make_ready(t, v.setup.output[k], t.output[v.lane][k].slot);
    if (k == 1 && m.cfg.seeded.idle_before_second) moves::rest(t, v.lane);
    m.emit({action::mark_ready, narrow(v.lane), k == 0 ? none : narrow(k)}, v.acting);
}

void return_rule(moves& m, const lane_view& v) {
    state& t = m.next();
    t.lane[v.lane].at = step::returned;
    if (v.setup.source >= 0) {
        lease_word& n = t.sequence_lease[v.setup.source][v.regs.frame % m.cfg.numbers];
        if (n.state == lease_state::leased && n.job == v.regs.job && n.version == v.regs.version)
            moves::number_done(n);
        return m.emit({action::finish_number, narrow(v.lane)}, v.acting);
    }
    const int input = v.regs.at == step::half_returned ? 1 : 0;
    if (input == 0 && m.cfg.inputs(v.stage) == 2) t.lane[v.lane].at = step::half_returned;
    const slot_register& in = m.now().input[v.lane][input];
    lease_word& c = t.link[v.setup.input[input]].group[in.slot][m.cfg.column(v.setup.input[input], v.stage)];
    if (c.generation == in.generation && c.state == lease_state::leased && c.job == v.regs.job &&
        c.version == v.regs.version)
        moves::group_done(c);
    m.emit({action::finish_input, narrow(v.lane), narrow(input)}, v.acting);
}

void idle_rule(moves& m, const lane_view& v) {
    state& t = m.next();
    job_word& j = t.job[v.regs.job];
    if (j == job_word{v.regs.version, narrow(v.e), job_state::committed})
        j = {narrow(v.regs.version + 1), j.epoch, job_state::idle};
    if (m.cfg.seeded.idle_before_second)
        t.lane[v.lane].at = step::half_shown;
    else
        moves::rest(t, v.lane);
    m.emit({action::go_idle, narrow(v.lane)}, v.acting);
}

// Step 6 as one step, for a live owner that has not been declared dead.
void finish_rule(moves& m, const lane_view& v) {
    state& t = m.next();
    const lane_registers p = t.lane[v.lane];
    for (int k = 0; k < m.cfg.outputs(v.stage); ++k)
        if (m.filled(t, v.lane, k) != nullptr) m.make_ready(t, v.setup.output[k], t.output[v.lane][k].slot);
    if (v.setup.source >= 0) moves::number_done(t.sequence_lease[v.setup.source][p.frame % m.cfg.numbers]);
    for (int i = 0; i < m.cfg.inputs(v.stage); ++i)
        moves::group_done(
            t.link[v.setup.input[i]].group[t.input[v.lane][i].slot][m.cfg.column(v.setup.input[i], v.stage)]);
    t.job[p.job] = {narrow(p.version + 1), narrow(v.e), job_state::idle};
    moves::rest(t, v.lane);
    m.emit({action::go_idle, narrow(v.lane)}, v.acting);
}

// The word that the lane's next CAS expects is damaged: the lane waits for its repair (ring/words.hpp,
// cas_after_repair) before it treats the word as owned by another process.
bool waits_for_repair(const moves& m, const lane_view& v) {
    if (m.cfg.damages == 0 || m.now().damaged == none || !m.cfg.with.owner_waits) return false;
    const lane_registers& p = v.regs;
    const bool job = p.job != none && m.now().job[p.job].state == job_state::damaged;
    bool slot = false;
    for (int o = 0; o < m.cfg.outputs(v.stage); ++o) {
        const slot_register& out = m.now().output[v.lane][o];
        if (out.slot != none && m.now().link[v.setup.output[o]].slot[out.slot].state == slot_state::damaged)
            slot = true;
    }
    bool lease =
        v.setup.source >= 0 && p.frame != none &&
        m.now().sequence_lease[v.setup.source][p.frame % m.cfg.numbers].state == lease_state::damaged;
    for (int i = 0; i < m.cfg.inputs(v.stage); ++i) {
        const slot_register& in = m.now().input[v.lane][i];
        const int link = v.setup.input[i];
        if (in.slot != none &&
            m.now().link[link].group[in.slot][m.cfg.column(link, v.stage)].state == lease_state::damaged)
            lease = true;
    }
    switch (p.at) {
        case step::leased:
            return m.cfg.quick_work && job;
        case step::launched:
        case step::submitted:
        case step::returned:
        case step::abandoning:
        case step::number_back:
            return job;
        case step::committed:
            return job || slot || lease;
        case step::shown:
        case step::half_returned:
        case step::giving_back:
            return lease;
        case step::half_shown:
            return slot;
        case step::ended:
        case step::half_slot_back:
            return job || slot;
        case step::slot_back:
            return lease;
        default:
            return false;
    }
}

}  // namespace

void stage_rules(moves& m) {
    for (size_t k = 0; k < m.cfg.lanes.size(); ++k) {
        const int e = m.cfg.lanes[k];
        const int stage = m.cfg.stage_of(e);
        const int lane = static_cast<int>(k);
        const lane_view v{lane,
                          e,
                          stage,
                          m.cfg.stages[stage],
                          m.now().lane[k],
                          m.declared(e) ? actor::zombie : actor::live};
        if (v.setup.instant) continue;
        gpu_rule(m, v);
        if (!m.running(e) || waits_for_repair(m, v)) continue;
        switch (v.regs.at) {
            case step::idle:
                open_rule(m, v);
                break;
            case step::opened:
                v.setup.source >= 0 ? number_rules(m, lane) : input_rules(m, lane);
                break;
            case step::half_leased:
            case step::giving_back:
            case step::abandoning:
                input_rules(m, lane);
                break;
            case step::ended:
            case step::half_slot_back:
            case step::slot_back:
            case step::number_back:
                stream_end_rules(m, lane);
                break;
            case step::leased:
                if (m.cfg.quick_work && stream_has_ended(m, lane))
                    stream_end_rules(m, lane);
                else
                    m.cfg.quick_work ? work_rule(m, v) : fill_rule(m, v);
                break;
            case step::half_filled:
                fill_rule(m, v);
                break;
            case step::filled:
                stream_has_ended(m, lane) ? stream_end_rules(m, lane) : launch_rule(m, v);
                break;
            case step::launched:
                submit_rule(m, v);
                break;
            case step::submitted:
                commit_rule(m, v);
                break;
            case step::committed:
                m.cfg.quick_finish && !m.declared(e) ? finish_rule(m, v) : show_rule(m, v);
                break;
            case step::half_shown:
                show_rule(m, v);
                break;
            case step::shown:
            case step::half_returned:
                return_rule(m, v);
                break;
            case step::returned:
                idle_rule(m, v);
                break;
        }
    }
}

// Scaffolding: one whole frame in one step, in any order that the window allows, by a stage that never dies.
void instant_rules(moves& m) {
    for (size_t k = 0; k < m.cfg.stages.size(); ++k) {
        const int stage = static_cast<int>(k);
        const stage_setup& s = m.cfg.stages[k];
        if (!s.instant) continue;
        int slot[max_outputs] = {};
        bool room = true;
        for (int o = 0; o < m.cfg.outputs(stage); ++o)
            room = (slot[o] = free_slot(m, s.output[o])) >= 0 && room;
        if (!room) continue;
        for (int n = m.highest_tail(stage); n < m.cfg.frames && n < m.window_end(stage); ++n) {
            const lease_word& q = m.now().sequence_lease[s.source][n % m.cfg.numbers];
            if (q.state != lease_state::wait || q.generation != n / m.cfg.numbers) continue;
            state& t = m.next();
            moves::number_done(t.sequence_lease[s.source][n % m.cfg.numbers]);
            for (int o = 0; o < m.cfg.outputs(stage); ++o) {
                slot_word& w = t.link[s.output[o]].slot[slot[o]];
                w = {w.generation, slot_state::fill, none, none, narrow(n), narrow(n)};
                m.make_ready(t, s.output[o], slot[o]);
            }
            m.emit({action::instant_frame, narrow(s.output[0]), narrow(n)}, actor::live);
            if (m.cfg.lowest_first) break;
        }
    }
}

}  // namespace carousel::model
