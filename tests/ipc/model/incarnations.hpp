#pragma once
// The common parts of all the models: incarnations that end, stop and wake, the registry's entries, the
// fence, the retirement by the holder, and its deaths during it. An incarnation has a body (it runs, is
// stopped, has ended) and an entry (ATTACHED, DEAD, FENCED, FREE), and the two do not always agree: a broken
// connection makes an entry DEAD whose body still runs (`cut`). The entry is FENCED when the body has ended,
// and only then repaired; it is FREE when everything is repaired. A holder that dies is followed by one that
// restarts with any of the fenced entries.

#include <array>

#include "search.hpp"

namespace carousel::ipc_model {

inline constexpr u8 max_incarnations = 3, the_holder = 0xFF;

enum class body : u8 { runs, stopped, ended };
enum class entry : u8 { attached, dead, fenced, free };
struct incarnation {
    body is = body::runs;
    entry in = entry::attached;
    u8 epoch = 0;
};

/// The remaining number of times that each may happen.
struct faults {
    u8 deaths = 0, stops = 0, cuts = 0, holder_deaths = 0, births = 0;
};

/// The clauses of the retirement; each `false` is a seeded bug.
struct retirement_clauses {
    bool waits_for_fence = true;   ///< no repair while the body may run
    bool frees_entry_last = true;  ///< FREE only after the repair
    bool new_epoch = true;         ///< an epoch belongs to one incarnation only, until after its repair
};

/// The holder's position in a repair. `pc`, `k` and the rest are the model's.
struct repairer {
    u8 dead = 0;  ///< 1 + the incarnation; 0: it rests
    u8 epoch = 0, pc = 0, k = 0, n = 0;
};

struct setting {
    u8 incarnations = 2;
    faults may{};
    retirement_clauses retirement{};
    bool stops_forever = false;  ///< no process may rely on a stopped incarnation to wake
};

/// The part of a state that all models have.
struct common {
    std::array<incarnation, max_incarnations> participant{};
    faults left{};
    repairer holder{};
};

inline common begun(const setting& c) {
    common s;
    for (u8 p = 0; p < max_incarnations; ++p) {
        s.participant[p].epoch = static_cast<u8>(p + 1);
        if (p >= c.incarnations) s.participant[p].is = body::ended, s.participant[p].in = entry::free;
    }
    s.left = c.may;
    return s;
}

template <class State>
void end_repair(State& t) {
    incarnation& dead = t.participant[t.holder.dead - 1];
    if (dead.epoch == t.holder.epoch && dead.in == entry::fenced) dead.in = entry::free;
    t.holder = {};
}

/// A model also has (see search.hpp): `what`, its setting; step(state, incarnation, sink), the next step of a
/// running incarnation; repair_step(state, sink); dies(state&, incarnation), what ends with the body;
/// born(state&, incarnation); busy(state, incarnation): it has something to do or to lose.
template <class Model, class State>
void expand_bodies(const Model& m, const State& s, sink<State>& out) {
    const setting& c = m.what;
    for (u8 p = 0; p < c.incarnations; ++p) {
        const incarnation& me = s.participant[p];
        if (me.is == body::runs) m.step(s, p, out);
        if (me.is != body::ended && s.left.deaths > 0 && m.busy(s, p)) {
            State t = s;
            --t.left.deaths;
            m.dies(t, p);
            t.participant[p].is = body::ended;
            out.fault(t, "DIES", p);
        }
        if (me.is == body::runs && s.left.stops > 0 && m.busy(s, p)) {
            State t = s;
            --t.left.stops;
            t.participant[p].is = body::stopped;
            out.fault(t, "STOPS", p);
        }
        if (me.is == body::stopped) {
            State t = s;
            t.participant[p].is = body::runs;
            out.take(t, "wakes", p, !c.stops_forever, nullptr);
        }
        if (me.in == entry::attached && me.is != body::ended && s.left.cuts > 0) {
            State t = s;
            --t.left.cuts;
            t.participant[p].in = entry::dead;
            out.fault(t, "CUT", p);
        }
        const bool over = me.is == body::ended || (!c.retirement.waits_for_fence && me.in == entry::dead);
        if (over && (me.in == entry::attached || me.in == entry::dead)) {
            State t = s;
            t.participant[p].in = entry::fenced;
            out.work(t, "fenced", p);
        }
        const bool may_come = c.retirement.new_epoch ? me.in == entry::free : me.in == entry::fenced;
        if (me.is == body::ended && may_come && s.left.births > 0) {
            State t = s;
            --t.left.births;
            t.participant[p].is = body::runs;
            if (c.retirement.new_epoch)
                t.participant[p].in = entry::attached,
                t.participant[p].epoch = static_cast<u8>(me.epoch + max_incarnations);
            m.born(t, p);
            out.fault(t, "BORN", p);
        }
    }
}

/// The same, with the holder that repairs the words of one after the other.
template <class Model, class State>
void expand_incarnations(const Model& m, const State& s, sink<State>& out) {
    expand_bodies(m, s, out);
    for (u8 p = 0; s.holder.dead == 0 && p < m.what.incarnations; ++p) {
        if (s.participant[p].in != entry::fenced) continue;
        State t = s;
        t.holder.dead = static_cast<u8>(p + 1), t.holder.epoch = s.participant[p].epoch;
        if (!m.what.retirement.frees_entry_last) t.participant[p].in = entry::free;
        out.work(t, "mends", the_holder);
    }
    if (s.holder.dead == 0) return;
    m.repair_step(s, out);
    if (s.left.holder_deaths > 0) {
        State t = s;
        --t.left.holder_deaths;
        t.holder = {};
        out.fault(t, "DIES", the_holder);
    }
}

/// No incarnation has anything to do, and no death is unrepaired.
template <class Model, class State>
bool all_rest(const Model& m, const State& s) {
    for (u8 p = 0; p < m.what.incarnations; ++p) {
        const incarnation& me = s.participant[p];
        if (me.is == body::ended ? me.in != entry::free : me.is == body::runs && m.busy(s, p)) return false;
        if (me.is == body::stopped && !m.what.stops_forever) return false;
    }
    return s.holder.dead == 0;
}

}  // namespace carousel::ipc_model
