#include "mender_model.hpp"

#include <fmt/format.h>

#include "mender_state.hpp"

namespace carousel::ipc_model {
namespace {

using namespace mending;

class model {
public:
    using state = mender_state;
    const mender_setup& what;
    explicit model(const mender_setup& s) : what(s) {}

    [[nodiscard]] state first() const {
        state s;
        static_cast<common&>(s) = begun(what);
        s.mender_deaths = what.mender_deaths, s.mender_stops = what.mender_stops;
        s.strangers = what.strangers, s.impatience = what.impatience;
        for (u8 p = 0; p < what.lives; ++p) s.all[p].rounds = what.rounds;
        return s;
    }
    void expand(const state& s, sink<state>& out) const {
        expand_bodies(*this, s, out);
        for (u8 n = 0; n < most_processes; ++n) runs(s, n, out);
        holds(s, out);
        if (s.left.holder_deaths > 0 && (s.h.pc != rests || s.h.mine != 0 || s.h.waiting != 0)) {
            state t = s;
            --t.left.holder_deaths;
            if (s.h.mine != 0) t.run[s.h.mine - 1].orphan = 1;
            t.h = {};
            for (u8 p = 0; p < what.lives; ++p)
                if (!what.finds_fenced && s.who[p].in == entry::fenced) t.h.old |= static_cast<u8>(1U << p);
            out.fault(t, "DIES", the_holder);
        }
    }
    [[nodiscard]] bool busy(const state& s, u8 p) const { return s.all[p].at != 0 || s.all[p].rounds > 0; }
    void dies(state& t, u8 p) const {
        if (t.all[p].at != 0) ++t.died_claiming;
        t.all[p] = {};
    }
    void born(state& t, u8 p) const { t.all[p] = {0, 1}; }

    // A client: any free cell, and back.
    void step(const state& s, u8 p, sink<state>& out) const {
        state t = s;
        if (s.all[p].at == 0) {
            for (u8 k = 0; s.all[p].rounds > 0 && k < what.cells; ++k) {
                if (s.cell[k].is != cell_is::free) continue;
                t = s;
                t.cell[k] = {s.cell[k].lap, s.who[p].epoch, cell_is::claimed};
                t.all[p].at = static_cast<u8>(k + 1), --t.all[p].rounds;
                out.work(t, "claims", p);
            }
            return;
        }
        cell_word& w = t.cell[s.all[p].at - 1];
        const bool mine = w.is == cell_is::claimed && w.epoch == s.who[p].epoch;
        w = {static_cast<u8>(w.lap + 1), 0, cell_is::free};
        t.all[p].at = 0;
        out.work(t, "frees", p, mine ? nullptr : "a cell is not its holder's any more");
    }

    [[nodiscard]] const char* broken(const state&) const { return nullptr; }
    [[nodiscard]] bool done(const state& s) const {
        for (const process& x : s.run) {
            // Stopped before anybody knew of it: it has heard nothing, and ends when it wakes.
            const bool harmless = x.stopped != 0 && x.orphan != 0 && x.told[0] == 0;
            if (x.is == process_is::mends || (x.is == process_is::listens && !harmless)) return false;
        }
        for (u8 p = 0; p < what.lives; ++p)
            if (s.who[p].in == entry::fenced) return false;
        return all_rest(*this, s) && s.h.pc == rests && s.h.mine == 0 && s.h.waiting == 0;
    }
    [[nodiscard]] const char* unsettled(const state& s) const {
        for (u8 k = 0; k < what.cells; ++k)
            if (s.cell[k].is != cell_is::free) return "capacity is lost";
        return s.lost.count != s.died_claiming ? "the count of the lost is wrong" : nullptr;
    }
    [[nodiscard]] std::string text(const state& s) const {
        std::string out =
            fmt::format("counted {} of {}, named {}/{}, holder at {} waiting {} told {}; cells", s.lost.count,
                        s.died_claiming, s.named, s.named_start, s.h.pc, s.h.waiting, s.h.told);
        for (u8 k = 0; k < what.cells; ++k)
            out += fmt::format(" {}/{}/{}", s.cell[k].lap, s.cell[k].epoch, static_cast<int>(s.cell[k].is));
        for (const process& x : s.run)
            out += fmt::format("; process {}/{} at {}", static_cast<int>(x.is), x.serial, x.pc);
        return out;
    }

private:
    [[nodiscard]] static u8 bit(u8 p) { return static_cast<u8>(1U << p); }
    static u8 number_of(u8 n) { return static_cast<u8>(10 + n); }

    // ---- processes: menders and a stranger
    void runs(const state& s, u8 n, sink<state>& out) const {
        const process& x = s.run[n];
        state t = s;
        process& me = t.run[n];
        if (x.is == process_is::none) {
            const bool lowest = n == 0 || s.run[n - 1].is != process_is::none;
            // A child that nobody has waited for keeps its pid.
            if (s.strangers == 0 || !lowest || s.serials == 0 || s.h.mine == n + 1) return;
            --t.strangers;
            me = {}, me.is = process_is::stranger, me.serial = ++t.serials;
            out.fault(t, "STRANGER", number_of(n));
            return;
        }
        if (x.killed != 0) {
            me = ended(x);
            out.work(t, "ends", number_of(n),
                     x.is == process_is::stranger ? "a stranger is killed" : nullptr);
            t = s;
        }
        if (x.is == process_is::stranger) return;
        if (s.mender_deaths > 0 && x.killed == 0) {
            --t.mender_deaths, me = ended(x);
            out.fault(t, "DIES", number_of(n));
            t = s;
        }
        if (x.stopped != 0) {
            me.stopped = 0;
            out.take(t, "wakes", number_of(n), false, nullptr);
            return;
        }
        if (s.mender_stops > 0) {
            --t.mender_stops, me.stopped = 1;
            out.fault(t, "STOPS", number_of(n));
            t = s;
        }
        if (x.is == process_is::mends) {
            mends(t, n, out);
        } else if (x.told[0] != 0) {
            me.is = process_is::mends, me.pc = what.marked_first ? marks : looks;
            if (!what.says_it_behind) me.said = 1;
            out.work(t, "begins", number_of(n));
        } else if (x.orphan != 0 && what.ends_with_socket) {
            me = {};
            out.work(t, "ends", number_of(n));
        }
    }
    // What it has said stays in its socket.
    static process ended(const process& x) {
        process gone{};
        gone.said = x.orphan != 0 ? u8{0} : x.said;
        return gone;
    }

    void mends(state t, u8 n, sink<state>& out) const {
        process& me = t.run[n];
        cell_word& w = t.cell[me.k];
        const auto next = [&] {
            me.pc = me.in_marks == 0 && what.marked_first ? marks : looks;
            if (++me.k < what.cells) return;
            me.k = 0;
            if (me.pc == marks)
                me.pc = clears, me.in_marks = 1;
            else if (++me.n == most_told || me.told[me.n] == 0)
                me.pc = says;
        };
        const char* name = "looks_at_cell";
        switch (me.pc) {
            case marks:
                if (w.is == cell_is::marked)
                    me.pc = reads_tally;
                else
                    next();
                break;
            case clears:
                name = "clears_mark";
                t.lost.place = t.lost.lap = 0, me.pc = looks;
                break;
            case looks:
                if (!what.marked_first && w.is == cell_is::marked)
                    me.pc = reads_tally;
                else if (w.is == cell_is::claimed && w.epoch == me.told[me.n])
                    me.pc = marking;
                else
                    next();
                break;
            case marking:
                name = "marks";
                me.pc = reads_tally;
                if (w.is == cell_is::claimed && w.epoch == me.told[me.n])
                    w = {w.lap, 0, cell_is::marked};
                else
                    next();
                break;
            case reads_tally:
                name = "reads_tally";
                me.seen = t.lost, me.pc = counts;
                break;
            case counts: {
                name = "counts";
                const bool known = me.seen.place == me.k + 1 && me.seen.lap == w.lap && what.counted_once;
                if (!known && t.lost == me.seen)
                    t.lost = {static_cast<u8>(me.seen.count + 1), static_cast<u8>(me.k + 1), w.lap};
                me.seen = {}, me.pc = frees;
                break;
            }
            case frees:
                name = "frees_cell";
                if (w.is == cell_is::marked) w = {static_cast<u8>(w.lap + 1), 0, cell_is::free};
                next();
                break;
            default:
                name = "says_so";
                me.said = 1;
                me = ended(me);
                break;
        }
        out.work(t, name, number_of(n));
    }

    // ---- the holder
    void holds(const state& s, sink<state>& out) const {
        state t = s;
        holding& h = t.h;
        const char* name = "";
        switch (s.h.pc) {
            case rests:
                adds(s, out);
                if (h.mine == 0 && h.waiting == 0) return;
                h.pc = h.mine == 0 || !what.one_at_a_time ? looks_about : looks_at_end;
                if (h.mine != 0 && h.waiting == 0) h.pc = looks_at_end;
                name = "begins";
                break;
            case looks_at_end: {
                const process_is is = s.run[h.mine - 1].is;
                h.ended = is == process_is::none || is == process_is::stranger ? 1 : 0, h.pc = hears;
                name = "looks_at_end";
                break;
            }
            case hears:
                name = "hears";
                h.pc = judges;
                if (h.said == 0 && (s.run[h.mine - 1].said != 0 || (!what.end_is_no_word && h.ended != 0)))
                    h.freeing = h.told, h.told = 0, h.said = 1, t.run[h.mine - 1].said = 0;
                break;
            case judges:
                judge(t, out);
                return;
            case looks_about:
                look_about(t, out);
                return;
            default:
                starts_one(t, out);
                return;
        }
        out.work(t, name, the_holder);
    }

    // Behind a fence, or behind a death of the holder.
    void adds(const state& s, sink<state>& out) const {
        for (u8 p = 0; p < what.lives; ++p) {
            const bool known = (s.h.added & bit(p)) != 0;
            const bool old = (s.h.old & bit(p)) != 0;
            if (s.who[p].in != entry::fenced || known || old) continue;
            state t = s;
            t.h.waiting |= bit(p), t.h.added |= bit(p), t.h.epoch[p] = s.who[p].epoch;
            if (!what.retirement.frees_entry_last) t.who[p].in = entry::free;
            out.work(t, "adds", the_holder);
        }
    }

    void judge(state t, sink<state>& out) const {
        holding& h = t.h;
        h.pc = frees_entries;
        if (h.ended == 0) {
            out.work(t, "goes_on", the_holder);
            process& x = t.run[h.mine - 1];
            if (!what.has_patience || x.killed != 0 || (x.stopped == 0 && t.impatience == 0)) return;
            const bool hangs = x.stopped != 0;
            if (!hangs) --t.impatience;
            x.killed = 1;
            out.take(t, "loses_patience", the_holder, hangs, nullptr);
            return;
        }
        if (what.told_again) h.waiting |= h.told;
        h.mine = h.told = h.said = h.ended = 0;
        h.pc = looks_about;
        out.work(t, "reaps", the_holder);
    }

    void look_about(state t, sink<state>& out) const {
        holding& h = t.h;
        const char* name = "looks_about";
        h.pc = starts;
        if (h.waiting == 0) {
            h.pc = frees_entries;
        } else if (t.named != 0 && what.looks_for_another && (what.one_at_a_time || h.mine == 0)) {
            process& x = t.run[t.named - 1];
            const bool it = x.is != process_is::none && (!what.start_compared || x.serial == t.named_start);
            if (it && what.ends_another) x.killed = 1, name = "ends_another";
            if (it && what.waits_for_its_end) h.pc = frees_entries;
        }
        out.work(t, name, the_holder);
    }

    void starts_one(state t, sink<state>& out) const {
        holding& h = t.h;
        const char* name = "";
        switch (h.pc) {
            case starts: {
                u8 n = 0;
                while (n < most_processes && (t.run[n].is != process_is::none || h.mine == n + 1)) ++n;
                if (n == most_processes) return;
                t.run[n] = {}, t.run[n].is = process_is::listens, t.run[n].serial = ++t.serials;
                h.mine = static_cast<u8>(n + 1), h.said = 0;
                h.pc = what.named_before_told ? writes_start : tells;
                name = "starts";
                break;
            }
            case writes_start:
                t.named_start = t.run[h.mine - 1].serial, h.pc = writes_pid, name = "writes_start";
                if (t.named_start == 0) t.named_start = t.serials;  // it has ended already
                break;
            case writes_pid:
                t.named = h.mine, name = "writes_pid";
                h.pc = what.named_before_told ? tells : frees_entries;
                break;
            case tells: {
                name = "tells";
                u8 k = 0;
                for (u8 p = 0; p < what.lives && k < most_told; ++p)
                    if ((h.waiting & bit(p)) != 0) {
                        if (t.run[h.mine - 1].is == process_is::listens)
                            t.run[h.mine - 1].told[k] = h.epoch[p];
                        ++k, h.told |= bit(p), h.waiting &= static_cast<u8>(~bit(p));
                    }
                h.pc = what.named_before_told ? frees_entries : writes_start;
                break;
            }
            default: {  // frees_entries
                name = "frees_entry";
                u8 p = 0;
                while (p < what.lives && (h.freeing & bit(p)) == 0) ++p;
                if (p == what.lives) {
                    h.pc = rests;
                    break;
                }
                h.freeing &= static_cast<u8>(~bit(p));
                h.old &= static_cast<u8>(~bit(p)), h.added &= static_cast<u8>(~bit(p));
                const char* rule = nullptr;
                for (const cell_word& w : t.cell)
                    if (w.is == cell_is::claimed && w.epoch == h.epoch[p])
                        rule = "an entry is free, and its cells are not mended";
                if (t.who[p].in == entry::fenced) t.who[p].in = entry::free;
                h.epoch[p] = 0;
                out.work(t, name, the_holder, rule);
                return;
            }
        }
        out.work(t, name, the_holder);
    }
};

}  // namespace

result explore(const mender_setup& s, u64 max_states) {
    const model m(s);
    return search<model>(m, max_states).run();
}

}  // namespace carousel::ipc_model
