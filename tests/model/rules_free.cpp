// The tail and the free, by any process: (a) T -> T+1, (b) every latest column closed, (c) READY ->
// FREE(generation + 1).

#include "moves.hpp"

namespace carousel::model {
namespace {

constexpr freer_registers resting{0, none, 0, 0, 0, lease_state::wait};
enum : u8 { rest = 0, closing = 1, freeing = 2, moving_tail = 3, scanning = 4 };

u8 narrow(int v) { return static_cast<u8>(v); }

void tail_rule(moves& m, int link) {
    if (!m.cfg.with.window_and_tail || m.cfg.seeded.free_then_tail) return;
    const link_state& l = m.now().link[link];
    for (int x = 0; x < m.cfg.links[link].slots; ++x) {
        if (l.slot[x].state != slot_state::ready || l.slot[x].ring_sequence != l.tail ||
            !m.done_in_blocking(link, x))
            continue;
        ++m.next().link[link].tail;
        m.emit({action::move_tail, narrow(link)}, actor::freer);
    }
}

// A frame that a reading stage does not take: any process that sweeps closes its word.
void untaken_rule(moves& m, int link) {
    const link_state& l = m.now().link[link];
    for (size_t k = 0; k < m.cfg.stages.size() && m.cfg.with.close_untaken; ++k) {
        const stage_setup& s = m.cfg.stages[k];
        if (s.every == 1 || (s.input[0] != link && s.input[1] != link)) continue;
        const int column = m.cfg.column(link, static_cast<int>(k));
        for (int x = 0; x < m.cfg.links[link].slots; ++x) {
            const slot_word& w = l.slot[x];
            if (w.state != slot_state::ready || w.ring_sequence % s.every == 0 ||
                moves::seen_at(l.group[x][column], w.generation).state != lease_state::wait)
                continue;
            m.next().link[link].group[x][column] = {w.generation, lease_state::skipped, none, none, 0};
            m.emit({action::skip_untaken, narrow(column), w.ring_sequence}, actor::freer);
        }
    }
}

bool may_go(const moves& m, int link, int slot) {
    const link_state& l = m.now().link[link];
    if (l.slot[slot].state != slot_state::ready) return false;
    if (m.cfg.with.window_and_tail && !m.cfg.seeded.free_then_tail)
        return l.slot[slot].ring_sequence < l.tail && m.done_in_blocking(link, slot);
    return m.done_in_blocking(link, slot) &&
           (!m.cfg.seeded.free_then_tail || l.slot[slot].ring_sequence == l.tail);
}

bool closed(const lease_word& w, u8 generation) {
    return w.generation == generation && (w.state == lease_state::done || w.state == lease_state::skipped);
}
bool pinned(const lease_word& w, u8 generation) {
    return (w.generation == generation && w.state == lease_state::leased) || w.state == lease_state::damaged;
}

// The freer's next step, before `column`: reads its word. False: the column is leased, and pins the slot.
bool read_column(const moves& m, int link, int slot, u8 generation, int column, freer_registers& r) {
    for (; column < m.cfg.links[link].latest; ++column) {
        const lease_word& w = m.now().link[link].group[slot][m.cfg.blocking(link) + column];
        if (pinned(w, generation)) {
            if (w.state != lease_state::damaged || m.cfg.with.damaged_pins) return false;
            continue;
        }
        const bool skip = !m.cfg.with.close_latest ||
                          (!m.cfg.with.close_empty_columns && m.now().link[link].viewer[column].member == 0);
        if (skip || closed(w, generation)) continue;
        r = {closing, narrow(slot), generation, narrow(column), w.generation, w.state};
        return true;
    }
    r = {freeing, narrow(slot), generation, 0, 0, lease_state::wait};
    return true;
}

// The newest frame of a link, while a latest member has WAIT for it and another slot is FREE.
bool is_kept(const moves& m, int link, int slot) {
    const link_state& l = m.now().link[link];
    bool room = m.cfg.seeded.keeps_last_slot, awaited = false;
    for (int x = 0; x < m.cfg.links[link].slots; ++x) {
        room |= l.slot[x].state == slot_state::free;
        if (l.slot[x].state == slot_state::ready && l.slot[x].ring_sequence > l.slot[slot].ring_sequence)
            return false;
    }
    for (int k = 0; k < m.cfg.links[link].latest; ++k) {
        const lease_word& w = l.group[slot][m.cfg.blocking(link) + k];
        awaited |= l.viewer[k].member != 0 && !pinned(w, l.slot[slot].generation) &&
                   !closed(w, l.slot[slot].generation);
    }
    // An older frame that is READY once the newest has been freed is not the newest.
    const bool last = m.cfg.seeded.keeps_any || l.slot[slot].ring_sequence + 1 == l.tail;
    return m.cfg.keeps_newest && last && room && awaited;
}

void begin(moves& m, int link) {
    const link_state& l = m.now().link[link];
    for (int x = 0; x < m.cfg.links[link].slots; ++x) {
        if (!may_go(m, link, x) || is_kept(m, link, x)) continue;
        const u8 g = l.slot[x].generation;
        if (m.cfg.seeded.latest_must_read && m.cfg.links[link].latest > 0 &&
            !closed(l.group[x][m.cfg.blocking(link)], g))
            continue;
        freer_registers r;
        if (!read_column(m, link, x, g, 0, r)) continue;
        state& t = m.next();
        t.link[link].freer = r;
        if (m.cfg.links[link].quick_free && r.at == freeing) {
            slot_word& w = t.link[link].slot[x];
            w = {narrow(g + 1), slot_state::free, none, none, w.ring_sequence, w.content};
            t.link[link].freer = resting;
            return m.emit({action::frees, narrow(x)}, actor::freer);
        }
        return m.emit({action::free_begins, narrow(x)}, actor::freer);
    }
}

void go_on(moves& m, int link) {
    const freer_registers& r = m.now().link[link].freer;
    state& t = m.next();
    link_state& l = t.link[link];
    l.freer = resting;
    if (r.at == closing) {
        lease_word& c = l.group[r.slot][m.cfg.blocking(link) + r.column];
        if (c.generation == r.word_generation && c.state == r.word_state) {
            c = {r.generation, lease_state::skipped, none, none, 0};
            const bool last = r.column + 1 == m.cfg.links[link].latest;
            l.freer = {last ? u8{freeing} : u8{scanning},   r.slot, r.generation,
                       last ? u8{0} : narrow(r.column + 1), 0,      lease_state::wait};
        }
        return m.emit({action::free_closes, r.slot, r.column}, actor::freer);
    }
    if (r.at == scanning) {
        freer_registers next;
        if (read_column(m, link, r.slot, r.generation, r.column, next)) l.freer = next;
        return m.emit({action::free_checks, r.slot, r.column}, actor::freer);
    }
    if (r.at == moving_tail) {
        ++l.tail;
        return m.emit({action::move_tail, narrow(link)}, actor::freer);
    }
    if (m.cfg.seeded.free_then_tail) l.freer.at = moving_tail;
    slot_word& w = l.slot[r.slot];
    if (w.generation == r.generation && w.state == slot_state::ready)
        w = {narrow(r.generation + 1), slot_state::free, none, none, w.ring_sequence, w.content};
    m.emit({action::frees, r.slot}, actor::freer);
}

}  // namespace

void free_rules(moves& m) {
    for (size_t k = 0; k < m.cfg.links.size(); ++k) {
        const int link = static_cast<int>(k);
        tail_rule(m, link);
        untaken_rule(m, link);
        if (m.now().link[k].freer.at == rest) {
            begin(m, link);
            continue;
        }
        go_on(m, link);
        if (!m.cfg.freer_dies) continue;
        m.next().link[k].freer = resting;
        m.emit({action::freer_dies, narrow(link)}, actor::fault);
    }
}

}  // namespace carousel::model
