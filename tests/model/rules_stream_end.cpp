// A source whose stream ends: it claims the first number that does not exist and keeps the claim until END
// confirms it, then returns slot, number and job word, one step each. The supervisor lowers END to the lowest
// standing claim, or, for a stream whose end was reported to it, to that value at any time. No memory is
// needed between its read and its CAS: only the source itself withdraws a standing claim.

#include "moves.hpp"

namespace carousel::model {
namespace {

u8 narrow(int v) { return static_cast<u8>(v); }

bool stands(const moves& m, int source, const claim_word& c) {
    if (c.frame == none) return false;
    if (m.cfg.seeded.any_claim) return true;
    const job_word& j = m.now().job[c.job];
    const lease_word& w = m.now().sequence_lease[source][c.frame % m.cfg.numbers];
    return j.state == job_state::open && j.version == c.version && w.state == lease_state::leased &&
           w.job == c.job && w.version == c.version && w.generation == c.frame / m.cfg.numbers;
}

bool is_working(const lane_registers& p) { return p.gpu == gpu_work::pending || p.gpu == gpu_work::half; }

bool holds_its_job(const moves& m, int lane) {
    const lane_registers& p = m.now().lane[lane];
    return m.now().job[p.job] == job_word{p.version, narrow(m.cfg.lanes[lane]), job_state::open};
}

void leave_revoked(moves& m, int lane, actor acting) {
    if (!m.declared(m.cfg.lanes[lane]))
        m.fail(failure::spurious, "a source that ends its stream believes that it was revoked");
    m.next().incarnation[m.cfg.lanes[lane]].alive = process_state::dead;
    m.emit({action::find_revoked, narrow(lane)}, acting);
}

// Made once with the job word that was read before, and again for as long as END is above the frame.
void claim(moves& m, int lane, int source, actor acting) {
    const lane_registers& p = m.now().lane[lane];
    const claim_word mine{p.frame, p.job, p.version}, there = m.now().claim[source];
    const bool lower = there.frame != none && there.frame < p.frame && stands(m, source, there);
    if (p.at == step::ended && (lower || there == mine)) return;
    state& t = m.next();
    t.lane[lane].at = step::ended;
    // enqueued before it found the end
    if (p.at != step::ended && t.output[lane][0].slot != none) t.lane[lane].gpu = gpu_work::pending;
    if (!lower) t.claim[source] = mine;
    m.emit({action::claim_end, narrow(lane), p.frame}, acting);
}

// One output after the other.
void give_slot_back(moves& m, int lane, actor acting) {
    const lane_registers& p = m.now().lane[lane];
    const int stage = m.cfg.stage_of(m.cfg.lanes[lane]), k = p.at == step::half_slot_back ? 1 : 0;
    if (is_working(p) && !m.cfg.seeded.early_give_back) return;
    state& t = m.next();
    const bool more = k + 1 < m.cfg.outputs(stage) && !m.cfg.seeded.give_back_first;
    t.lane[lane].at = more ? step::half_slot_back : step::slot_back;
    if (slot_word* const w = m.filled(t, lane, k))
        *w = {narrow(w->generation + 1), slot_state::free, none, none, w->ring_sequence, w->content};
    m.emit({action::slot_back, narrow(lane)}, acting);
}

void give_number_back(moves& m, int lane, int source, actor acting) {
    const lane_registers& p = m.now().lane[lane];
    state& t = m.next();
    lease_word& w = t.sequence_lease[source][p.frame % m.cfg.numbers];
    if (w.state == lease_state::leased && w.job == p.job && w.version == p.version)
        w = {w.generation, lease_state::wait, none, none, w.attempts};
    t.lane[lane].at = step::number_back;
    m.emit({action::number_back, narrow(lane)}, acting);
}

void go_idle(moves& m, int lane, actor acting) {
    if (!holds_its_job(m, lane)) return leave_revoked(m, lane, acting);
    state& t = m.next();
    lane_registers& p = t.lane[lane];
    t.job[p.job] = {narrow(p.version + 1), narrow(m.cfg.lanes[lane]), job_state::idle};
    if (is_working(p))  // with a seeded bug only: it still writes this frame into these slots
        p = {step::idle, p.gpu, none, none, p.frame, 0};
    else
        moves::rest(t, lane);
    m.emit({action::go_idle, narrow(lane)}, acting);
}

}  // namespace

bool stream_has_ended(const moves& m, int lane) {
    const stage_setup& s = m.cfg.stages[m.cfg.stage_of(m.cfg.lanes[lane])];
    const lane_registers& p = m.now().lane[lane];
    return s.ends_at >= 0 && p.frame != none && p.frame >= s.ends_at && (p.flags & lane_tombstone) == 0;
}

void stream_end_rules(moves& m, int lane) {
    const int e = m.cfg.lanes[lane];
    const stage_setup& s = m.cfg.stages[m.cfg.stage_of(e)];
    const actor acting = m.declared(e) ? actor::zombie : actor::live;
    const lane_registers& p = m.now().lane[lane];
    const bool crashes = m.cfg.poison >= 0 && p.frame == m.cfg.poison;
    // before its claim, or after it
    if (crashes && p.at != step::half_slot_back && p.at != step::slot_back && p.at != step::number_back) {
        state& t = m.next();
        t.incarnation[e].alive = process_state::dead;
        t.incarnation[e].self_inflicted = 1;
        m.emit({action::die_of_frame, narrow(lane)}, acting);
    }
    if (p.at == step::half_slot_back) return give_slot_back(m, lane, acting);
    if (p.at == step::slot_back) return give_number_back(m, lane, s.source, acting);
    if (p.at == step::number_back) return go_idle(m, lane, acting);
    if (p.at != step::ended) return claim(m, lane, s.source, acting);
    if (!holds_its_job(m, lane)) return leave_revoked(m, lane, acting);
    m.now().end <= p.frame ? give_slot_back(m, lane, acting) : claim(m, lane, s.source, acting);
}

void claim_rules(moves& m) {
    for (const stage_setup& s : m.cfg.stages) {
        if (s.ends_at < 0 || !(s.end_is_published || stands(m, s.source, m.now().claim[s.source]))) continue;
        const u8 frame = s.end_is_published ? narrow(s.ends_at) : m.now().claim[s.source].frame;
        if (frame >= m.now().end || (m.now().end == spoiled && m.cfg.seeded.keeps_stopping)) continue;
        m.next().end = frame;
        m.emit({action::lower_end, frame}, actor::supervisor);
    }
}

}  // namespace carousel::model
