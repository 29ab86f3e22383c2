// Plain members of blocking groups, which take frame after frame, and members of latest groups, which take
// the newest.

#include <fmt/format.h>

#include "moves.hpp"

namespace carousel::model {
namespace {

u8 narrow(int v) { return static_cast<u8>(v); }

// The supervisor closes the group of an optional stage that has failed: its WAIT words are skipped, and its
// reader passes them.
void absent_rules(moves& m, int link, int k) {
    const link_state& l = m.now().link[link];
    const u8 want = l.consumed[k];
    for (int x = 0; x < m.cfg.links[link].slots; ++x) {
        const slot_word& w = l.slot[x];
        if (w.state != slot_state::ready) continue;
        if (moves::seen_at(l.group[x][k], w.generation).state == lease_state::wait) {
            m.next().link[link].group[x][k] = {w.generation, lease_state::skipped, none, none, 0};
            m.emit({action::skip_absent, narrow(k), w.ring_sequence}, actor::supervisor);
        }
        if (w.ring_sequence == want && l.group[x][k].generation == w.generation &&
            l.group[x][k].state == lease_state::skipped) {
            ++m.next().link[link].consumed[k];
            m.emit({action::passes, narrow(k), want}, actor::consumer);
        }
    }
    if (want < l.tail) {
        ++m.next().link[link].consumed[k];
        m.emit({action::passes, narrow(k), want}, actor::consumer);
    }
}

void plain_rules(moves& m, int link, int k) {
    const link_state& l = m.now().link[link];
    const u8 want = l.consumed[k];
    for (int x = 0; x < m.cfg.links[link].slots; ++x) {
        const slot_word& w = l.slot[x];
        const lease_word c = moves::seen_at(l.group[x][k], w.generation);
        if (w.state == slot_state::ready && w.ring_sequence == want && c.state == lease_state::wait) {
            if (w.content != want)
                m.fail(failure::torn,
                       fmt::format("consumer {} leases frame {} and finds {}", k, want, w.content));
            state& t = m.next();
            const bool quick = (m.cfg.links[link].quick >> k & 1U) != 0;
            t.link[link].group[x][k] = {w.generation, quick ? lease_state::done : lease_state::leased, none,
                                        none, 0};
            if (quick) ++t.link[link].consumed[k];
            m.emit({action::reads, narrow(k), want}, actor::consumer);
        }
        if (c.state == lease_state::leased && w.ring_sequence == want) {
            if (w.content != want || m.truth().link[link].slot[x].state != slot_state::ready)
                m.fail(failure::torn,
                       fmt::format("consumer {} reads frame {} while slot {} is overwritten", k, want, x));
            state& t = m.next();
            moves::group_done(t.link[link].group[x][k]);
            ++t.link[link].consumed[k];
            m.emit({action::finishes, narrow(k), want}, actor::consumer);
            if (!m.cfg.consumers_die) continue;
            m.next().link[link].group[x][k] = {w.generation, lease_state::wait, none, none, 0};
            m.emit({action::reader_dies, narrow(k), want}, actor::fault);
        }
    }
}

void membership(moves& m, int link, int k) {
    const viewer_registers& v = m.now().link[link].viewer[k];
    viewer_registers& next = m.next().link[link].viewer[k];
    next = {0, none, 0, 0, none, narrow(v.member == 0 ? 1 : 0)};  // ABSENT -> LATEST, or back
    m.emit({v.member == 0 ? action::joins : action::leaves, narrow(k)}, actor::viewer);
}

void viewer_polls(moves& m, int link, int k) {
    const link_state& l = m.now().link[link];
    const int column = m.cfg.blocking(link) + k;
    const viewer_registers& v = l.viewer[k];
    int best = -1;
    for (int x = 0; x < m.cfg.links[link].slots; ++x) {
        const slot_word& w = l.slot[x];
        if (w.state != slot_state::ready || l.group[x][column].generation == w.generation ||
            l.group[x][column].state == lease_state::damaged)
            continue;
        if (v.last != none && w.ring_sequence <= v.last) continue;
        if (best < 0 || w.ring_sequence > l.slot[best].ring_sequence) best = x;
    }
    if (best < 0) return;
    viewer_registers& n = m.next().link[link].viewer[k];
    n = {1, narrow(best), l.slot[best].generation, l.slot[best].ring_sequence, v.last, v.member};
    m.emit({action::viewer_sees, narrow(k), l.slot[best].ring_sequence}, actor::viewer);
}

void viewer_rules(moves& m, int link, int k) {
    const link_state& l = m.now().link[link];
    const viewer_registers& v = l.viewer[k];
    if (m.cfg.membership_changes && v.at == 0) membership(m, link, k);
    if (v.member == 0) return;
    if (v.at == 0) return viewer_polls(m, link, k);
    const lease_word& c = l.group[v.slot][m.cfg.blocking(link) + k];
    const slot_word& w = l.slot[v.slot];
    state& t = m.next();
    link_state& tl = t.link[link];
    lease_word& tc = tl.group[v.slot][m.cfg.blocking(link) + k];
    if (v.at == 1 && c.generation < v.generation && c.state != lease_state::damaged) {
        tc = {v.generation, lease_state::leased, none, none, 0};
        tl.viewer[k].at = 2;
        if (w.content != v.frame)
            m.fail(failure::torn,
                   fmt::format("viewer {} leases frame {} and finds {}", k, v.frame, w.content));
        return m.emit({action::viewer_leases, narrow(k), v.frame}, actor::viewer);
    }
    tl.viewer[k] = {0, none, 0, 0, v.last, v.member};
    if (v.at == 1) return m.emit({action::viewer_misses, narrow(k), v.frame}, actor::viewer);
    if (c.generation != v.generation || c.state != lease_state::leased)
        return m.emit({action::viewer_discards, narrow(k), v.frame}, actor::viewer);
    if (w.generation != v.generation || m.truth().link[link].slot[v.slot].state != slot_state::ready ||
        w.content != v.frame)
        m.fail(failure::torn,
               fmt::format("viewer {} reads frame {} while slot {} is overwritten", k, v.frame, v.slot));
    tc.state = lease_state::done;
    tl.viewer[k].last = v.frame;
    m.emit({action::viewer_shows, narrow(k), v.frame}, actor::viewer);
}

// After a timeout any process may revoke a latest lease; in the model the timeout may be of any length.
void revoke_rule(moves& m, int link, int k) {
    const int column = m.cfg.blocking(link) + k;
    for (int x = 0; x < m.cfg.links[link].slots && m.cfg.revocable; ++x) {
        const lease_word& c = m.now().link[link].group[x][column];
        if (c.state != lease_state::leased || c.generation != m.now().link[link].slot[x].generation) continue;
        m.next().link[link].group[x][column].state = lease_state::skipped;
        m.emit({action::revoke_lease, narrow(k), narrow(x)}, actor::supervisor);
    }
}

}  // namespace

void consumer_rules(moves& m) {
    for (size_t l = 0; l < m.cfg.links.size(); ++l) {
        const int link = static_cast<int>(l);
        for (int k = 0; k < m.cfg.links[l].consumers; ++k) {
            if (m.cfg.last_group_absent && k == m.cfg.links[l].consumers - 1) absent_rules(m, link, k);
            plain_rules(m, link, k);
        }
    }
}

void latest_rules(moves& m) {
    for (size_t l = 0; l < m.cfg.links.size(); ++l) {
        for (int k = 0; k < m.cfg.links[l].latest; ++k) {
            viewer_rules(m, static_cast<int>(l), k);
            revoke_rule(m, static_cast<int>(l), k);
        }
    }
}

}  // namespace carousel::model
