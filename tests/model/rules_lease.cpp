// The way in which a stage obtains a frame: a source by the words of its numbers, a reader by the group words
// of its inputs.

#include <fmt/format.h>
#include <algorithm>

#include "moves.hpp"

namespace carousel::model {
namespace {

u8 narrow(int v) { return static_cast<u8>(v); }

int idle_job(const moves& m, int e) {
    const int first = m.cfg.incarnations[e].seat * m.cfg.jobs_a_seat;
    for (int j = first; j < first + m.cfg.jobs_a_seat; ++j) {
        const job_word& w = m.now().job[j];
        if (w.state == job_state::idle && (!m.cfg.with.idle_names_epoch || w.epoch == e)) return j;
    }
    return -1;
}

// A suspect frame is the only one of its incarnation.
bool kept_alone(const moves& m, int lane, const lease_word& w) {
    for (size_t l = 0; l < m.cfg.lanes.size(); ++l) {
        if (static_cast<int>(l) == lane || m.cfg.lanes[l] != m.cfg.lanes[lane] ||
            m.now().lane[l].frame == none)
            continue;
        if ((w.attempts & alone_bit) != 0 || (m.now().lane[l].flags & lane_alone) != 0) return true;
    }
    return false;
}

void take_attempts(moves& m, lane_registers& p, const lease_word& w) {
    if (m.cfg.poison < 0) return;
    if ((w.attempts & alone_bit) != 0) p.flags |= lane_alone;
    if ((w.attempts & 7) < m.cfg.attempts_cap) return;
    p.flags |= lane_tombstone;
    if (p.frame != m.cfg.poison)
        m.fail(failure::innocent, fmt::format("frame {} is given up for another one's deaths", p.frame));
}

lease_word leased_by(const lease_word& w, const lane_registers& p) {
    return {w.generation, lease_state::leased, p.job, p.version, w.attempts};
}

// One process has one thread that leases: no second lane of it picks while one is between pick and lease, or
// waits for END.
bool sibling_picks(const moves& m, int lane) {
    for (size_t l = 0; l < m.cfg.lanes.size(); ++l)
        if (static_cast<int>(l) != lane && m.cfg.lanes[l] == m.cfg.lanes[lane] &&
            (m.now().lane[l].at == step::opened || m.now().lane[l].at >= step::ended))
            return true;
    return false;
}

// T, END and the number's word are read here; the CAS is a later step. A number is the one n in [T, T+N) that
// maps to its word, and the word must be in WAIT at exactly that lap.
void pick(moves& m, int lane, actor acting) {
    const int e = m.cfg.lanes[lane];
    const stage_setup& s = m.cfg.stages[m.cfg.stage_of(e)];
    if (sibling_picks(m, lane)) return;
    if (m.now().end == spoiled && m.now().incarnation[e].acknowledged == 0) {
        m.next().incarnation[e].acknowledged = 1;
        m.emit({action::acknowledge, narrow(lane)}, acting);
    }
    const int job = idle_job(m, e);
    if (job < 0 || m.now().end == spoiled) return;
    const int limit = std::min<int>({m.window_end(m.cfg.stage_of(e)), m.cfg.frames, m.now().end});
    for (int n = m.highest_tail(m.cfg.stage_of(e)); n < limit; ++n) {
        const lease_word& w = m.now().sequence_lease[s.source][n % m.cfg.numbers];
        if (w.state != lease_state::wait ||
            w.generation % m.cfg.lap_modulus != n / m.cfg.numbers % m.cfg.lap_modulus)
            continue;
        if (kept_alone(m, lane, w)) return;
        state& t = m.next();
        t.job[job] = {m.now().job[job].version, narrow(e), job_state::open};
        t.lane[lane].at = step::opened;
        t.lane[lane].job = narrow(job);
        t.lane[lane].version = m.now().job[job].version;
        t.lane[lane].frame = narrow(n);
        take_attempts(m, t.lane[lane], w);
        m.emit({action::pick, narrow(lane), narrow(n)}, acting);
        if (m.cfg.lowest_first) return;
    }
}

void lease_picked(moves& m, int lane, actor acting) {
    const stage_setup& s = m.cfg.stages[m.cfg.stage_of(m.cfg.lanes[lane])];
    const int n = m.now().lane[lane].frame;
    const lease_word& w = m.now().sequence_lease[s.source][n % m.cfg.numbers];
    state& t = m.next();
    if (w.state == lease_state::wait &&
        w.generation % m.cfg.lap_modulus == n / m.cfg.numbers % m.cfg.lap_modulus) {
        t.sequence_lease[s.source][n % m.cfg.numbers] = leased_by(w, t.lane[lane]);
        t.lane[lane].at = step::leased;
        return m.emit({action::lease, narrow(lane), narrow(n)}, acting);
    }
    t.lane[lane].at = step::abandoning;
    m.emit({action::lost_lease, narrow(lane), narrow(n)}, acting);
}

// The window and the word in one step: T only grows and the CAS expects the exact word, so no other step can
// intervene.
void lease_at_once(moves& m, int lane, actor acting) {
    const int stage = m.cfg.stage_of(m.cfg.lanes[lane]);
    const stage_setup& s = m.cfg.stages[stage];
    const int limit = m.cfg.with.window_and_tail ? m.window_end(stage) : 255;
    int lowest = 255;
    for (int k = 0; k < m.cfg.numbers; ++k)
        lowest = std::min(lowest, m.now().sequence_lease[s.source][k].generation * m.cfg.numbers + k);
    for (int n = lowest; n < lowest + 2 * m.cfg.numbers && n < m.cfg.frames && n < limit; ++n) {
        const int k = n % m.cfg.numbers;
        const lease_word& w = m.now().sequence_lease[s.source][k];
        if (w.state != lease_state::wait || w.generation != n / m.cfg.numbers || kept_alone(m, lane, w))
            continue;
        state& t = m.next();
        lane_registers& p = t.lane[lane];
        t.sequence_lease[s.source][k] = leased_by(w, p);
        p.at = step::leased;
        p.frame = narrow(n);
        take_attempts(m, p, w);
        if (m.cfg.seeded.source_counter) moves::number_done(t.sequence_lease[s.source][k]);
        m.emit({action::lease, narrow(lane), narrow(n)}, acting);
        if (m.cfg.lowest_first) return;
    }
}

struct choice {
    int frame = -1;
    slot_register input[max_inputs] = {{none, none}, {none, none}};
};

int ready_slot(const moves& m, int link, int frame) {
    for (int x = 0; x < m.cfg.links[link].slots; ++x) {
        const slot_word& w = m.now().link[link].slot[x];
        if (w.state == slot_state::ready && w.ring_sequence == frame) return x;
    }
    return -1;
}

bool is_mine(const moves& m, int e, const lease_word& w) {
    if (w.job == none || w.job / m.cfg.jobs_a_seat != m.cfg.incarnations[e].seat) return false;
    return m.now().job[w.job].epoch == e && m.now().job[w.job].version == w.version;
}

// In order: the lowest frame that waits; one that is not READY yet is waited for. The first input determines
// which.
choice choose(const moves& m, int lane) {
    const int e = m.cfg.lanes[lane];
    const int stage = m.cfg.stage_of(e);
    const stage_setup& s = m.cfg.stages[stage];
    const int t0 = m.now().link[s.input[0]].tail;
    const bool ordered_sink = m.cfg.outputs(stage) == 0 && m.cfg.with.sink_waits_for_predecessor;
    for (int n = t0; n < t0 + m.cfg.links[s.input[0]].window && n < m.now().end; ++n) {
        choice c;
        for (int i = 0; i < m.cfg.inputs(stage); ++i) {
            const int x = ready_slot(m, s.input[i], n);
            if (x < 0 && (i > 0 || m.cfg.with.in_order_lease)) return {};
            if (x < 0) break;
            if (n % s.every != 0 && m.cfg.with.skip_untaken) break;
            const link_state& l = m.now().link[s.input[i]];
            const lease_word w =
                moves::seen_at(l.group[x][m.cfg.column(s.input[i], stage)], l.slot[x].generation);
            if (i == 0 && w.state == lease_state::leased && ordered_sink && !is_mine(m, e, w)) return {};
            if (i == 0 && w.state == lease_state::damaged && ordered_sink) return {};  // it may be leased
            if (w.state != lease_state::wait) {
                if (i > 0) return {};
                break;
            }
            if (kept_alone(m, lane, w)) return {};
            c.input[i] = {narrow(x), l.slot[x].generation};
            c.frame = i + 1 == m.cfg.inputs(stage) ? n : -1;
        }
        if (c.frame < 0) continue;
        if (m.cfg.with.window_and_tail && n >= m.window_end(stage)) return {};
        return c;
    }
    return {};
}

void open_for_input(moves& m, int lane, actor acting) {
    const int e = m.cfg.lanes[lane];
    if (sibling_picks(m, lane)) return;
    const int job = idle_job(m, e);
    if (job < 0) return;
    const choice c = choose(m, lane);
    if (c.frame < 0) return;
    state& t = m.next();
    t.job[job] = {m.now().job[job].version, narrow(e), job_state::open};
    lane_registers& p = t.lane[lane];
    p.at = step::opened;
    p.job = narrow(job);
    p.version = m.now().job[job].version;
    p.frame = narrow(c.frame);
    for (int i = 0; i < max_inputs; ++i) t.input[lane][i] = c.input[i];
    m.emit({action::choose, narrow(lane), narrow(c.frame)}, acting);
}

void lease_input(moves& m, int lane, int i, actor acting) {
    const int stage = m.cfg.stage_of(m.cfg.lanes[lane]);
    const int link = m.cfg.stages[stage].input[i];
    const slot_register in = m.now().input[lane][i];
    state& t = m.next();
    lane_registers& p = t.lane[lane];
    lease_word& c = t.link[link].group[in.slot][m.cfg.column(link, stage)];
    // The CAS covers this word only: neither the slot's word nor the other input is read again.
    const bool stale = static_cast<u8>(c.generation + 1) == in.generation && c.state != lease_state::damaged;
    if ((c.generation == in.generation && c.state == lease_state::wait) || stale) {
        const lease_word w = moves::seen_at(c, in.generation);
        take_attempts(m, p, w);
        c = leased_by(w, p);
        p.at = i + 1 == m.cfg.inputs(stage) ? step::leased : step::half_leased;
        const slot_word& w2 = m.truth().link[link].slot[in.slot];
        if (!m.declared(m.cfg.lanes[lane]) && (w2.content != p.frame || w2.state != slot_state::ready))
            m.fail(failure::torn,
                   fmt::format("stage {} leases frame {} and finds {}", stage, p.frame, w2.content));
        return m.emit({i == 0 ? action::lease : action::second_lease, narrow(lane), p.frame}, acting);
    }
    p.at = i == 0 || m.cfg.seeded.join_keeps_first ? step::abandoning : step::giving_back;
    m.emit({action::lost_lease, narrow(lane), p.frame}, acting);
}

void give_back(moves& m, int lane, actor acting) {
    const int stage = m.cfg.stage_of(m.cfg.lanes[lane]);
    const int link = m.cfg.stages[stage].input[0];
    const slot_register in = m.now().input[lane][0];
    state& t = m.next();
    lane_registers& p = t.lane[lane];
    lease_word& c = t.link[link].group[in.slot][m.cfg.column(link, stage)];
    if (c.generation == in.generation && c.state == lease_state::leased && c.job == p.job &&
        c.version == p.version)
        c = {c.generation, lease_state::wait, none, none, c.attempts};
    p.at = step::abandoning;
    m.emit({action::give_back, narrow(lane), p.frame}, acting);
}

void abandon(moves& m, int lane, actor acting) {
    const int e = m.cfg.lanes[lane];
    state& t = m.next();
    lane_registers& p = t.lane[lane];
    job_word& j = t.job[p.job];
    if (j == job_word{p.version, narrow(e), job_state::open}) {
        j = {narrow(p.version + 1), narrow(e), job_state::idle};
        moves::rest(t, lane);
        return m.emit({action::abandon, narrow(lane)}, acting);
    }
    if (!m.declared(e)) m.fail(failure::spurious, fmt::format("lane {} can't give its job word back", lane));
    t.incarnation[e].alive = process_state::dead;
    m.emit({action::find_revoked, narrow(lane)}, acting);
}

}  // namespace

void number_rules(moves& m, int lane) {
    const actor acting = m.declared(m.cfg.lanes[lane]) ? actor::zombie : actor::live;
    if (m.now().lane[lane].at == step::idle) return pick(m, lane, acting);
    if (m.now().lane[lane].at == step::abandoning) return abandon(m, lane, acting);
    m.cfg.two_step_lease ? lease_picked(m, lane, acting) : lease_at_once(m, lane, acting);
}

void input_rules(moves& m, int lane) {
    const actor acting = m.declared(m.cfg.lanes[lane]) ? actor::zombie : actor::live;
    switch (m.now().lane[lane].at) {
        case step::idle:
            return open_for_input(m, lane, acting);
        case step::opened:
            return lease_input(m, lane, 0, acting);
        case step::half_leased:
            return lease_input(m, lane, 1, acting);
        case step::giving_back:
            return give_back(m, lane, acting);
        case step::abandoning:
            return abandon(m, lane, acting);
        default:
            return;
    }
}

}  // namespace carousel::model
