#include "semaphore_model.hpp"

#include <fmt/format.h>

namespace carousel::ipc_model {
namespace {

constexpr u8 most_permits = 2, most_places = 4;

enum pc : u8 {
    rest,
    join_tail,
    join_check,
    join_cas,
    join_hint,
    moved_hint,
    full,
    own,
    head,
    head_moves,
    count,
    permits,
    waits,
    passes,
    turn,
    takes,
    leaves,
    times_out,
    holds,
    released
};

struct permit_word {
    u8 generation, epoch;  // epoch 0: FREE
};
struct line_word {
    u8 lap, epoch;  // epoch 0: EMPTY
};
struct client {
    u8 at, rounds;
    u8 ticket, t, waiting, first;  // first: 1 + the first ticket that waits in front; 0: none
    u8 k, free, found, generation;
    u8 passed;  // another one has passed it by, and it doesn't know
};
struct sem_state : common {
    std::array<permit_word, most_permits> permit{};
    std::array<line_word, most_places> place{};
    u8 head = 0, tail = 0, time_outs = 0, late = 0, late_taken = 0;
    std::array<client, max_incarnations> all{};
};

class model {
public:
    using state = sem_state;
    const semaphore_setup& what;
    explicit model(const semaphore_setup& s) : what(s) {}

    [[nodiscard]] state first() const {
        state s;
        static_cast<common&>(s) = begun(what);
        s.time_outs = what.time_outs, s.late = what.late;
        for (u8 p = 0; p < what.incarnations; ++p) s.all[p].rounds = what.rounds;
        return s;
    }
    void expand(const state& s, sink<state>& out) const { expand_incarnations(*this, s, out); }
    [[nodiscard]] bool busy(const state& s, u8 p) const { return s.all[p].at != rest || s.all[p].rounds > 0; }
    void dies(state& t, u8 p) const { t.all[p] = {}; }
    void born(state& t, u8 p) const { t.all[p] = {}, t.all[p].rounds = 1; }

    void step(const state& s, u8 p, sink<state>& out) const {
        if (s.all[p].at <= full)
            joins(s, p, out);
        else if (s.all[p].at < turn)
            checks(s, p, out);
        else
            takes_it(s, p, out);
    }

    void repair_step(const state& s, sink<state>& out) const {
        state t = s;
        repairer& m = t.holder;
        if (m.pc == 0) {
            permit_word& w = t.permit[m.k];
            if (what.repairs_permits && w.epoch == m.epoch) w = {static_cast<u8>(w.generation + 1), 0};
            if (++m.k == what.permits) m.pc = 1, m.k = 0;
            out.work(t, "mends_permit", the_holder);
            return;
        }
        line_word& w = t.place[m.k];
        if (what.repairs_tickets && w.epoch == m.epoch) w = {static_cast<u8>(w.lap + 1), 0};
        if (++m.k == what.line) end_repair(t);
        out.work(t, "mends_place", the_holder);
    }

    [[nodiscard]] const char* broken(const state& s) const {
        for (u8 a = 0; a < what.incarnations; ++a)
            for (u8 b = 0; b < a; ++b)
                if (has(s, a) && has(s, b) && s.all[a].found == s.all[b].found)
                    return "a permit is out twice";
        for (u8 a = 0; a < what.incarnations; ++a)
            for (u8 b = 0; b < a; ++b)
                if (in_line(s, a) && in_line(s, b) && s.all[a].ticket == s.all[b].ticket)
                    return "a ticket is of two";
        return nullptr;
    }
    // A stopped client may keep its permits; what others then need must not depend on them.
    [[nodiscard]] bool done(const state& s) const { return all_rest(*this, s) || a_stopped_one_has(s); }
    [[nodiscard]] const char* unsettled(const state& s) const {
        if (a_stopped_one_has(s)) return nullptr;
        for (u8 k = 0; k < what.permits; ++k)
            if (s.permit[k].epoch != 0) return "a permit is gone";
        for (u8 k = 0; k < what.line; ++k)
            if (s.place[k].epoch != 0 && !of_a_stopped_one(s, s.place[k].epoch))
                return "a ticket stays in the line";
        return nullptr;
    }
    [[nodiscard]] std::string text(const state& s) const {
        std::string out = "permits";
        for (u8 k = 0; k < what.permits; ++k)
            out += fmt::format(" {}/{}", s.permit[k].generation, s.permit[k].epoch);
        out += ", line";
        for (u8 k = 0; k < what.line; ++k) out += fmt::format(" {}/{}", s.place[k].lap, s.place[k].epoch);
        for (u8 p = 0; p < what.incarnations; ++p)
            out += fmt::format("; life {} at {} ticket {}", p, s.all[p].at, s.all[p].ticket);
        return out;
    }

private:
    [[nodiscard]] u8 lap(u8 ticket) const { return static_cast<u8>(ticket / what.line); }
    [[nodiscard]] u8 spot(u8 ticket) const { return static_cast<u8>(ticket % what.line); }
    [[nodiscard]] static bool has(const state& s, u8 p) {
        return s.participant[p].is != body::ended && (s.all[p].at == leaves || s.all[p].at == holds);
    }
    [[nodiscard]] bool in_line(const state& s, u8 p) const {
        const client& c = s.all[p];
        if (s.participant[p].is == body::ended || c.at < moved_hint || c.at == full || c.at >= leaves)
            return false;
        const line_word w = s.place[spot(c.ticket)];
        return w.lap == lap(c.ticket) && w.epoch == s.participant[p].epoch;
    }
    [[nodiscard]] bool a_stopped_one_has(const state& s) const {
        for (u8 p = 0; p < what.incarnations; ++p)
            if (s.participant[p].is == body::stopped && what.stops_forever && has(s, p)) return true;
        return false;
    }
    [[nodiscard]] bool of_a_stopped_one(const state& s, u8 epoch) const {
        for (u8 p = 0; p < what.incarnations; ++p)
            if (s.participant[p].epoch == epoch && s.participant[p].is == body::stopped) return true;
        return false;
    }
    // One that could make its next step: skipping it is unfair, and is limited to this number.
    [[nodiscard]] bool is_well(const state& s, u8 epoch) const {
        for (u8 p = 0; p < what.incarnations; ++p)
            if (s.participant[p].epoch == epoch && s.participant[p].is == body::runs) return true;
        return false;
    }

    void joins(const state& s, u8 p, sink<state>& out) const {
        state t = s;
        client& me = t.all[p];
        line_word& w = t.place[spot(me.ticket)];
        const u8 mine = lap(me.ticket);
        switch (s.all[p].at) {
            case rest:
                if (me.rounds == 0) return;
                [[fallthrough]];
            case join_tail:
                me.ticket = s.tail, me.at = join_check;
                break;
            case join_check:
                if (what.lap_compared && w.lap < mine)
                    me.at = full;
                else
                    me.at = w.epoch == 0 && (w.lap == mine || !what.lap_compared) ? join_cas : join_hint;
                break;
            case join_cas:
                me.at = join_check;
                if (w.epoch == 0 && (w.lap == mine || !what.lap_compared))
                    w = {mine, s.participant[p].epoch}, me.at = moved_hint;
                break;
            case join_hint:
                if (s.tail == me.ticket) ++t.tail;
                me.ticket = std::max<u8>(t.tail, static_cast<u8>(me.ticket + 1)), me.at = join_check;
                break;
            case moved_hint:
                if (s.tail == me.ticket) ++t.tail;
                me.at = own;
                break;
            default:  // full: it checks the entries in the line, and may skip the first
                if (s.time_outs > 0) {
                    --t.time_outs, --me.rounds, me.at = rest, me.ticket = 0;
                    out.work(t, "time_over", p);
                    t = s;
                }
                me.ticket = 0, me.at = join_tail;
                break;
        }
        static constexpr const char* names[] = {"begins",     "reads_tail", "looks_at_place", "joins",
                                                "moves_tail", "moves_tail", "finds_it_full"};
        out.work(t, names[s.all[p].at], p);
    }

    void begin_permits(client& me) const { me.at = permits, me.k = me.free = me.found = 0; }
    void begin_count(client& me) const { me.at = head, me.t = me.waiting = me.first = 0; }
    // After the two counts, in either order.
    void decide(client& me) const {
        const bool mine = me.free > me.waiting || (!what.in_order && me.free > 0);
        if (mine) me.k = me.t = me.waiting = me.free = me.first = 0;
        me.at = mine ? what.leaves_after_take ? turn : leaves : waits;
    }
    void ends_count(client& me) const {
        if (what.line_first)
            begin_permits(me);
        else
            decide(me);
    }

    void checks(const state& s, u8 p, sink<state>& out) const {
        state t = s;
        client& me = t.all[p];
        const char* name = "looks_at_line";
        switch (s.all[p].at) {
            case own: {
                const line_word w = s.place[spot(me.ticket)];
                const bool there = w.lap == lap(me.ticket) && w.epoch == s.participant[p].epoch;
                me.t = me.waiting = me.first = me.k = me.free = me.found = 0;
                if (!there)
                    me.ticket = me.passed = 0, me.at = join_tail;
                else if (what.line_first)
                    begin_count(me);
                else
                    begin_permits(me);
                name = "looks_for_itself";
                break;
            }
            case head:
                me.t = s.head, me.at = head_moves;
                if (me.t >= me.ticket) ends_count(me);
                name = "reads_head";
                break;
            case head_moves:
                if (s.place[spot(me.t)].lap > lap(me.t)) {
                    if (s.head == me.t) ++t.head;
                    if (++me.t >= me.ticket) ends_count(me);
                } else {
                    me.at = count;
                }
                name = "moves_head";
                break;
            case count:
                if (s.place[spot(me.t)].lap <= lap(me.t)) {
                    if (me.first == 0) me.first = static_cast<u8>(me.t + 1);
                    ++me.waiting;
                }
                if (++me.t >= me.ticket) ends_count(me);
                break;
            case permits:
                if (s.permit[me.k].epoch == 0) ++me.free, me.found = me.k;
                ++me.k;
                if (what.line_first ? me.free > me.waiting || me.k == what.permits : me.k == what.permits) {
                    if (what.line_first)
                        decide(me);
                    else
                        begin_count(me);
                }
                name = "looks_at_permit";
                break;
            case waits:
                keeps_waiting(s, p, out);
                return;
            default:  // passes
                pass_by(t, p);
                name = "passes_by";
                break;
        }
        out.work(t, name, p);
    }

    void keeps_waiting(const state& s, u8 p, sink<state>& out) const {
        state t = s;
        t.all[p].at = own;
        client& me = t.all[p];
        me.t = me.waiting = me.first = me.k = me.free = me.found = 0;
        out.work(t, "looks_again", p);
        if (s.time_outs > 0) {
            --t.time_outs;
            me.at = times_out;
            out.work(t, "time_over", p);
        }
        const client& seen = s.all[p];
        if (!what.passes_late || seen.first == 0 || seen.free == 0) return;
        const line_word w = s.place[spot(static_cast<u8>(seen.first - 1))];
        const bool well = w.epoch != 0 && is_well(s, w.epoch);
        if (well && s.late == 0) return;
        t = s;
        if (well) --t.late;
        me.at = passes, me.t = me.waiting = me.k = me.free = me.found = 0;
        out.take(t, "loses_patience", p, !well, nullptr);
    }

    void pass_by(state& t, u8 p) const {
        client& me = t.all[p];
        const u8 other = static_cast<u8>(me.first - 1);
        line_word& w = t.place[spot(other)];
        if (w.lap == lap(other) && w.epoch != 0) {
            for (u8 q = 0; q < what.incarnations; ++q)
                if (in_line(t, q) && t.all[q].ticket == other) t.all[q].passed = 1;
            w = {static_cast<u8>(w.lap + 1), 0};
        }
        me.first = 0, me.at = own;
    }

    void takes_it(const state& s, u8 p, sink<state>& out) const {
        state t = s;
        client& me = t.all[p];
        const char* name = "";
        const char* rule = nullptr;
        permit_word& w = t.permit[me.found];
        switch (s.all[p].at) {
            case turn: {
                if (!what.line_first) me.found = first_free(s);
                const permit_word seen = s.permit[me.found];
                me.generation = seen.generation, me.at = takes;
                if (seen.epoch != 0) me.generation = me.found = 0, me.at = own;
                name = "reads_permit";
                break;
            }
            case takes:
                name = "takes_permit";
                if (what.checked && (w.epoch != 0 || w.generation != me.generation)) {
                    me.generation = me.found = 0, me.at = own;
                    break;
                }
                t.late_taken |= me.passed;
                if (overtakes(s, p)) rule = "a waiter is overtaken";
                w = {me.generation, s.participant[p].epoch};
                me.at = what.leaves_after_take ? leaves : holds;
                break;
            case leaves:
            case times_out: {
                line_word& l = t.place[spot(me.ticket)];
                if (l.lap == lap(me.ticket) && l.epoch == s.participant[p].epoch)
                    l = {static_cast<u8>(l.lap + (what.next_lap ? 1 : 0)), 0};
                const bool without = s.all[p].at == times_out;
                me.at = without ? rest : what.leaves_after_take ? holds : turn;
                if (without) --me.rounds, me.passed = 0;
                if (what.leaves_after_take) me.ticket = 0;
                name = "leaves_line";
                break;
            }
            default:  // holds
                if (w.epoch != s.participant[p].epoch || w.generation != me.generation)
                    rule = "a holder could not release";
                else
                    w = {static_cast<u8>(w.generation + 1), 0};
                me = {rest, static_cast<u8>(me.rounds - 1), 0, 0, 0, 0, 0, 0, 0, 0, 0};
                name = "releases";
                break;
        }
        out.work(t, name, p, rule);
    }

    [[nodiscard]] u8 first_free(const state& s) const {
        u8 k = 0;
        while (k + 1 < what.permits && s.permit[k].epoch != 0) ++k;
        return k;
    }

    // Each of the earlier waiters has a permit left. One that was skipped between its count and its CAS takes
    // a permit late, as if it had never been skipped. A later one may then have counted that permit as free,
    // and be one place ahead of its turn: the price of skipping; nothing else is required from there on.
    [[nodiscard]] bool overtakes(const state& s, u8 p) const {
        u8 before = 0, free = 0;
        for (u8 q = 0; q < what.incarnations; ++q)
            before += q != p && in_line(s, q) && s.all[q].ticket < s.all[p].ticket ? 1 : 0;
        for (u8 k = 0; k < what.permits; ++k) free += s.permit[k].epoch == 0 ? 1 : 0;
        return s.late_taken == 0 && free <= before;
    }
};

}  // namespace

result explore(const semaphore_setup& s, u64 max_states) {
    const model m(s);
    return search<model>(m, max_states).run();
}

}  // namespace carousel::ipc_model
