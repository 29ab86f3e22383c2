// Faults, kills, the fence, and the supervisor's scan. Each of its CASes is a separate step that needs no
// memory, so a supervisor may die between any two and another one continues; where a scan over several words
// matters (`scan_registers`), its position is kept in registers that its death erases.

#include <algorithm>

#include "moves.hpp"

namespace carousel::model {
namespace {

u8 narrow(int v) { return static_cast<u8>(v); }

// Declared dead: killed, hung or only stopped; the successor starts at once.
void declare_rule(moves& m, int e) {
    const incarnation_state& i = m.now().incarnation[e];
    const bool found_dead = i.alive == process_state::dead;
    if (i.declared != 0 || i.alive == process_state::unborn) return;
    if (!found_dead) {
        int kills = 0;
        for (size_t k = 0; k < m.cfg.incarnations.size(); ++k)
            kills +=
                m.now().incarnation[k].declared != 0 && m.now().incarnation[k].self_inflicted == 0 ? 1 : 0;
        if (kills >= m.cfg.outside_kills) return;
    }
    state& t = m.next();
    t.incarnation[e].declared = 1;
    t.incarnation[m.cfg.incarnations[e].next].alive = process_state::running;
    if (!m.cfg.with.idle_names_epoch) m.note_revoked(t, e);
    m.emit({action::declare, narrow(e)}, found_dead ? actor::supervisor : actor::fault);
}

// The kill has completed: none of its code runs and none of its writes arrive any more.
void fence_rule(moves& m, int e) {
    const incarnation_state& i = m.now().incarnation[e];
    if (i.declared == 0 || i.fenced != 0 || m.cfg.kills_never_complete) return;
    if (m.cfg.seeded.revoke_first && (m.now().revoked >> e & 1U) == 0) return;
    state& t = m.next();
    t.incarnation[e].alive = process_state::dead;
    t.incarnation[e].fenced = 1;
    // Under MPS terminate_client ends the work of a client and makes its unfinished events read as complete:
    // harmless after the abort (revoke_first), torn frames before it.
    if (m.cfg.seeded.fault_fires_event)
        for (u8& x : t.event_pending[e]) x = 0;
    m.emit({action::fence, narrow(e)}, actor::kill);
}

struct dead_job {
    int job, e, stage;
    job_word word;
    u8 successor;
};

bool tags(const lease_word& w, const dead_job& d) {
    return w.state == lease_state::leased && w.job == d.job && w.version == d.word.version;
}
bool tags(const slot_word& w, const dead_job& d) {
    return (w.state == slot_state::fill || w.state == slot_state::quarantined) && w.job == d.job &&
           w.version == d.word.version;
}

/// Calls fn(word of a state) for every lease word that the job could have tagged, by address within that
/// state.
template <typename F>
void each_lease(const moves& m, const dead_job& d, F&& fn) {
    const stage_setup& s = m.cfg.stages[d.stage];
    for (int n = 0; s.source >= 0 && n < m.cfg.numbers; ++n)
        fn(&m.now().sequence_lease[s.source][n],
           [=](state& t) -> lease_word& { return t.sequence_lease[s.source][n]; });
    for (int i = 0; i < m.cfg.inputs(d.stage); ++i) {
        const int link = s.input[i], g = m.cfg.column(link, d.stage);
        for (int x = 0; x < m.cfg.links[link].slots; ++x)
            fn(&m.now().link[link].group[x][g],
               [=](state& t) -> lease_word& { return t.link[link].group[x][g]; });
    }
}

}  // namespace

bool tags_unknown(const moves& m, int e) {
    if (m.cfg.damages == 0 || m.now().damaged == none || !m.cfg.with.recycle_waits) return false;
    const stage_setup& s = m.cfg.stages[m.cfg.stage_of(e)];
    bool any = false;
    each_lease(m, {0, e, m.cfg.stage_of(e), {}, 0},
               [&](const lease_word* w, auto&&) { any = any || w->state == lease_state::damaged; });
    for (int o = 0; o < m.cfg.outputs(m.cfg.stage_of(e)); ++o)
        for (int x = 0; x < m.cfg.links[s.output[o]].slots; ++x)
            any = any || m.now().link[s.output[o]].slot[x].state == slot_state::damaged;
    return any;
}

namespace {

int jobs_in_flight(const moves& m, int e) {
    int n = 0;
    for (int j = 0; j < m.cfg.jobs(); ++j) {
        const job_word& w = m.now().job[j];
        n += w.epoch == e && (w.state == job_state::open || w.state == job_state::submitted ||
                              w.state == job_state::aborted || w.state == job_state::damaged)
                 ? 1
                 : 0;
    }
    return n;
}

u8 attempts_after(const moves& m, const dead_job& d, u8 before) {
    if (m.cfg.poison < 0 || m.now().incarnation[d.e].self_inflicted == 0) return before;
    if (m.cfg.with.blame_only_alone && jobs_in_flight(m, d.e) > 1) return before | alone_bit;
    return static_cast<u8>((before & alone_bit) | std::min((before & 7) + 1, 7));
}

bool tagged_leases(moves& m, const dead_job& d) {
    bool any = false;
    each_lease(m, d, [&](const lease_word* w, auto&& at) {
        if (!tags(*w, d)) return;
        any = true;
        if (d.word.state == job_state::aborted ||
            (d.word.state == job_state::open && m.cfg.seeded.requeue_before_abort)) {
            state& t = m.next();
            lease_word& c = at(t);
            c = {c.generation, lease_state::wait, none, none, attempts_after(m, d, c.attempts)};
            if (m.cfg.seeded.drop_frame)
                m.cfg.stages[d.stage].source >= 0 ? moves::number_done(c) : moves::group_done(c);
            m.emit({action::requeue, narrow(d.job)}, actor::supervisor);
        }
        if (d.word.state == job_state::committed) {
            state& t = m.next();
            lease_word& c = at(t);
            m.cfg.stages[d.stage].source >= 0 ? moves::number_done(c) : moves::group_done(c);
            m.emit({action::finish_lease, narrow(d.job)}, actor::supervisor);
        }
    });
    return any;
}

bool tagged_slots(moves& m, const dead_job& d, int output) {
    const int out = m.cfg.stages[d.stage].output[output];
    if (output > 0 && ((m.cfg.seeded.quarantine_first && d.word.state == job_state::aborted) ||
                       (m.cfg.seeded.finish_first && d.word.state == job_state::committed)))
        return false;
    bool any = false;
    const bool fence_seen = m.fenced(d.e) || m.cfg.seeded.free_before_fence ||
                            (m.cfg.seeded.adopter_forgets && m.now().forgot != 0);
    for (int x = 0; x < m.cfg.links[out].slots; ++x) {
        const slot_word& w = m.now().link[out].slot[x];
        if (!tags(w, d)) continue;
        any = true;
        if (d.word.state == job_state::aborted && w.state == slot_state::fill) {
            m.next().link[out].slot[x].state = slot_state::quarantined;
            m.emit({action::quarantine, narrow(x)}, actor::supervisor);
        }
        if (d.word.state == job_state::aborted && w.state == slot_state::quarantined && fence_seen) {
            slot_word& f = m.next().link[out].slot[x];
            f = {narrow(f.generation + 1), slot_state::free, none, none, f.ring_sequence, f.content};
            m.emit({action::free_quarantined, narrow(x)}, actor::supervisor);
        }
        if (d.word.state == job_state::committed && w.state == slot_state::fill &&
            !m.cfg.seeded.no_process_finishes) {
            m.make_ready(m.next(), out, x);
            m.emit({action::finish_ready, narrow(x)}, actor::supervisor);
        }
    }
    return any;
}

// While a word of the incarnation is not ABORTED yet, or has a lease, its other words must stay countable.
bool siblings_unfinished(const moves& m, const dead_job& d) {
    if (m.cfg.poison < 0 || !m.cfg.with.recycle_last || d.word.state != job_state::aborted) return false;
    bool any = false;
    for (int j = 0; j < m.cfg.jobs(); ++j) {
        const dead_job o{j, d.e, d.stage, m.now().job[j], d.successor};
        if (o.word.epoch != d.e) continue;
        any = any || o.word.state == job_state::open || o.word.state == job_state::submitted;
        if (o.word.state != job_state::aborted) continue;
        each_lease(m, o, [&](const lease_word* w, auto&&) { any = any || tags(*w, o); });
    }
    return any;
}

void dead_job_rules(moves& m, const dead_job& d) {
    if (d.word.state == job_state::idle) {
        if (!m.cfg.with.idle_names_epoch) return;
        state& t = m.next();
        t.job[d.job].epoch = d.successor;
        m.note_revoked(t, d.e);
        return m.emit({action::hand_over, narrow(d.job)}, actor::supervisor);
    }
    if (d.word.state == job_state::open || d.word.state == job_state::submitted) {
        state& t = m.next();
        t.job[d.job].state = job_state::aborted;
        m.note_revoked(t, d.e);
        m.emit({action::abort, narrow(d.job)}, actor::supervisor);
    }
    const bool leases = tagged_leases(m, d);
    bool slots = false;
    for (int k = 0; k < m.cfg.outputs(d.stage); ++k) slots = tagged_slots(m, d, k) || slots;
    const bool finished = d.word.state == job_state::committed && m.cfg.early_finish;
    if (d.word.state != job_state::aborted && d.word.state != job_state::committed) return;
    if (!m.fenced(d.e) && !m.cfg.seeded.recycle_before_fence && !finished) return;
    if (m.cfg.scan_registers) {
        if (m.now().scan.position != 0) return;
        m.next().scan = {1, narrow(d.job), d.word.version};
        return m.emit({action::begin_scan, narrow(d.job)}, actor::supervisor);
    }
    if (leases || slots || siblings_unfinished(m, d) || tags_unknown(m, d.e)) return;
    m.next().job[d.job] = {narrow(d.word.version + 1), d.successor, job_state::idle};
    m.emit({action::recycle, narrow(d.job)}, actor::supervisor);
}

int scanned_slots(const moves& m) {
    int n = 0;
    for (int k = 0; k < m.cfg.outputs(0); ++k) n += m.cfg.links[m.cfg.stages[0].output[k]].slots;
    return n;
}

const slot_word& scanned_slot(const moves& m, int x) {
    const int* const out = m.cfg.stages[0].output;
    const int first = m.cfg.links[out[0]].slots;
    return x < first ? m.now().link[out[0]].slot[x] : m.now().link[out[1]].slot[x - first];
}

// One word per step; a tag ends the scan, and so does the supervisor's death. Only for a single source stage.
void scan_rules(moves& m) {
    const scan_registers& r = m.now().scan;
    if (!m.cfg.scan_registers || r.position == 0) return;
    const int k = r.position - 1, words = m.cfg.numbers + scanned_slots(m);
    const dead_job d{r.job, m.now().job[r.job].epoch, 0, {r.version, 0, job_state::aborted}, 0};
    state& t = m.next();
    if (k < words) {
        const bool hit = k < m.cfg.numbers ? tags(m.now().sequence_lease[0][k], d)
                                           : tags(scanned_slot(m, k - m.cfg.numbers), d);
        if (hit)
            t.scan = {0, 0, 0};
        else
            ++t.scan.position;
        m.emit({action::scan, narrow(k)}, actor::supervisor);
    } else {
        t.scan = {0, 0, 0};
        job_word& j = t.job[r.job];
        if (j.version == r.version && (j.state == job_state::aborted || j.state == job_state::committed))
            j = {narrow(r.version + 1), narrow(m.successor(j.epoch)), job_state::idle};
        m.emit({action::recycle, r.job}, actor::supervisor);
    }
    m.next().scan = {0, 0, 0};
    m.emit({action::supervisor_dies}, actor::fault);
}

}  // namespace

void supervisor_rules(moves& m) {
    for (size_t e = 0; e < m.cfg.incarnations.size(); ++e) {
        if (m.cfg.incarnations[e].next < 0) continue;
        declare_rule(m, static_cast<int>(e));
        fence_rule(m, static_cast<int>(e));
    }
    for (int j = 0; j < m.cfg.jobs(); ++j) {
        const job_word& w = m.now().job[j];
        if (m.declared(w.epoch))
            dead_job_rules(m, {j, w.epoch, m.cfg.job_stage(j), w, narrow(m.successor(w.epoch))});
    }
    scan_rules(m);
    if (m.cfg.seeded.adopter_forgets && m.now().forgot == 0) {
        m.next().forgot = 1;
        m.emit({action::supervisor_dies}, actor::fault);
    }
}

}  // namespace carousel::model
