#include "repairer_model.hpp"

#include <fmt/format.h>

#include "repairer_state.hpp"

namespace carousel::ipc_model {
namespace {

using namespace repair;

class model {
public:
    using state = repairer_state;
    const repairer_setup& what;
    explicit model(const repairer_setup& s) : what(s) {}

    [[nodiscard]] state first() const {
        state s;
        static_cast<common&>(s) = begun(what);
        s.repairer_deaths = what.repairer_deaths, s.repairer_stops = what.repairer_stops;
        s.other_processes = what.other_processes, s.impatience = what.impatience;
        for (u8 p = 0; p < what.incarnations; ++p) s.all[p].rounds = what.rounds;
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
            for (u8 p = 0; p < what.incarnations; ++p)
                if (!what.finds_fenced && s.participant[p].in == entry::fenced)
                    t.h.old |= static_cast<u8>(1U << p);
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
                t.cell[k] = {s.cell[k].lap, s.participant[p].epoch, cell_is::claimed};
                t.all[p].at = static_cast<u8>(k + 1), --t.all[p].rounds;
                out.work(t, "claims", p);
            }
            return;
        }
        cell_word& w = t.cell[s.all[p].at - 1];
        const bool mine = w.is == cell_is::claimed && w.epoch == s.participant[p].epoch;
        w = {static_cast<u8>(w.lap + 1), 0, cell_is::free};
        t.all[p].at = 0;
        out.work(t, "frees", p, mine ? nullptr : "a cell is not its holder's any more");
    }

    [[nodiscard]] const char* broken(const state&) const { return nullptr; }
    [[nodiscard]] bool done(const state& s) const {
        for (const process& x : s.run) {
            // Stopped before any process knew of it: it has received nothing, and ends when it wakes.
            const bool harmless = x.stopped != 0 && x.orphan != 0 && x.ordered[0] == 0;
            if (x.is == process_is::repairs || (x.is == process_is::listens && !harmless)) return false;
        }
        for (u8 p = 0; p < what.incarnations; ++p)
            if (s.participant[p].in == entry::fenced) return false;
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
                        s.died_claiming, s.named, s.named_start, s.h.pc, s.h.waiting, s.h.ordered);
        for (u8 k = 0; k < what.cells; ++k)
            out += fmt::format(" {}/{}/{}", s.cell[k].lap, s.cell[k].epoch, static_cast<int>(s.cell[k].is));
        for (const process& x : s.run)
            out += fmt::format("; process {}/{} at {}", static_cast<int>(x.is), x.serial, x.pc);
        return out;
    }

private:
    [[nodiscard]] static u8 bit(u8 p) { return static_cast<u8>(1U << p); }
    static u8 number_of(u8 n) { return static_cast<u8>(10 + n); }

    // ---- processes: repairers and an unrelated process
    void runs(const state& s, u8 n, sink<state>& out) const {
        const process& x = s.run[n];
        state t = s;
        process& me = t.run[n];
        if (x.is == process_is::none) {
            const bool lowest = n == 0 || s.run[n - 1].is != process_is::none;
            // A child that was not waited for keeps its pid.
            if (s.other_processes == 0 || !lowest || s.serials == 0 || s.h.mine == n + 1) return;
            --t.other_processes;
            me = {}, me.is = process_is::other_process, me.serial = ++t.serials;
            out.fault(t, "STRANGER", number_of(n));
            return;
        }
        if (x.killed != 0) {
            me = ended(x);
            out.work(t, "ends", number_of(n),
                     x.is == process_is::other_process ? "a stranger is killed" : nullptr);
            t = s;
        }
        if (x.is == process_is::other_process) return;
        if (s.repairer_deaths > 0 && x.killed == 0) {
            --t.repairer_deaths, me = ended(x);
            out.fault(t, "DIES", number_of(n));
            t = s;
        }
        if (x.stopped != 0) {
            me.stopped = 0;
            out.take(t, "wakes", number_of(n), false, nullptr);
            return;
        }
        if (s.repairer_stops > 0) {
            --t.repairer_stops, me.stopped = 1;
            out.fault(t, "STOPS", number_of(n));
            t = s;
        }
        if (x.is == process_is::repairs) {
            repairs(t, n, out);
        } else if (x.ordered[0] != 0) {
            me.is = process_is::repairs, me.pc = what.marked_first ? marks : checks;
            if (!what.reports_after_last_change) me.reported = 1;
            out.work(t, "begins", number_of(n));
        } else if (x.orphan != 0 && what.ends_with_socket) {
            me = {};
            out.work(t, "ends", number_of(n));
        }
    }
    // Messages that it has sent stay in its socket.
    static process ended(const process& x) {
        process gone{};
        gone.reported = x.orphan != 0 ? u8{0} : x.reported;
        return gone;
    }

    void repairs(state t, u8 n, sink<state>& out) const {
        process& me = t.run[n];
        cell_word& w = t.cell[me.k];
        const auto next = [&] {
            me.pc = me.in_marks == 0 && what.marked_first ? marks : checks;
            if (++me.k < what.cells) return;
            me.k = 0;
            if (me.pc == marks)
                me.pc = clears, me.in_marks = 1;
            else if (++me.n == max_ordered || me.ordered[me.n] == 0)
                me.pc = reports;
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
                t.lost.place = t.lost.lap = 0, me.pc = checks;
                break;
            case checks:
                if (!what.marked_first && w.is == cell_is::marked)
                    me.pc = reads_tally;
                else if (w.is == cell_is::claimed && w.epoch == me.ordered[me.n])
                    me.pc = marking;
                else
                    next();
                break;
            case marking:
                name = "marks";
                me.pc = reads_tally;
                if (w.is == cell_is::claimed && w.epoch == me.ordered[me.n])
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
                me.reported = 1;
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
                h.pc = h.mine == 0 || !what.one_at_a_time ? checks_for_other : checks_end;
                if (h.mine != 0 && h.waiting == 0) h.pc = checks_end;
                name = "begins";
                break;
            case checks_end: {
                const process_is is = s.run[h.mine - 1].is;
                h.ended = is == process_is::none || is == process_is::other_process ? 1 : 0,
                h.pc = receives_reply;
                name = "checks_end";
                break;
            }
            case receives_reply:
                name = "hears";
                h.pc = judges;
                if (h.reported == 0 &&
                    (s.run[h.mine - 1].reported != 0 || (!what.exit_is_not_done && h.ended != 0)))
                    h.freeing = h.ordered, h.ordered = 0, h.reported = 1, t.run[h.mine - 1].reported = 0;
                break;
            case judges:
                judge(t, out);
                return;
            case checks_for_other:
                check_for_other(t, out);
                return;
            default:
                starts_one(t, out);
                return;
        }
        out.work(t, name, the_holder);
    }

    // After a fence, or after a death of the holder.
    void adds(const state& s, sink<state>& out) const {
        for (u8 p = 0; p < what.incarnations; ++p) {
            const bool known = (s.h.added & bit(p)) != 0;
            const bool old = (s.h.old & bit(p)) != 0;
            if (s.participant[p].in != entry::fenced || known || old) continue;
            state t = s;
            t.h.waiting |= bit(p), t.h.added |= bit(p), t.h.epoch[p] = s.participant[p].epoch;
            if (!what.retirement.frees_entry_last) t.participant[p].in = entry::free;
            out.work(t, "adds", the_holder);
        }
    }

    void judge(state t, sink<state>& out) const {
        holding& h = t.h;
        h.pc = frees_entries;
        if (h.ended == 0) {
            out.work(t, "continues", the_holder);
            process& x = t.run[h.mine - 1];
            if (!what.has_timeout || x.killed != 0 || (x.stopped == 0 && t.impatience == 0)) return;
            const bool hangs = x.stopped != 0;
            if (!hangs) --t.impatience;
            x.killed = 1;
            out.take(t, "loses_patience", the_holder, hangs, nullptr);
            return;
        }
        if (what.orders_repeated) h.waiting |= h.ordered;
        h.mine = h.ordered = h.reported = h.ended = 0;
        h.pc = checks_for_other;
        out.work(t, "reaps", the_holder);
    }

    void check_for_other(state t, sink<state>& out) const {
        holding& h = t.h;
        const char* name = "checks_for_other";
        h.pc = starts;
        if (h.waiting == 0) {
            h.pc = frees_entries;
        } else if (t.named != 0 && what.checks_for_another && (what.one_at_a_time || h.mine == 0)) {
            process& x = t.run[t.named - 1];
            const bool it = x.is != process_is::none && (!what.start_compared || x.serial == t.named_start);
            if (it && what.ends_another) x.killed = 1, name = "ends_another";
            if (it && what.waits_for_exit) h.pc = frees_entries;
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
                h.mine = static_cast<u8>(n + 1), h.reported = 0;
                h.pc = what.named_before_notified ? writes_start : notifies;
                name = "starts";
                break;
            }
            case writes_start:
                t.named_start = t.run[h.mine - 1].serial, h.pc = writes_pid, name = "writes_start";
                if (t.named_start == 0) t.named_start = t.serials;  // it has ended already
                break;
            case writes_pid:
                t.named = h.mine, name = "writes_pid";
                h.pc = what.named_before_notified ? notifies : frees_entries;
                break;
            case notifies: {
                name = "tells";
                u8 k = 0;
                for (u8 p = 0; p < what.incarnations && k < max_ordered; ++p)
                    if ((h.waiting & bit(p)) != 0) {
                        if (t.run[h.mine - 1].is == process_is::listens)
                            t.run[h.mine - 1].ordered[k] = h.epoch[p];
                        ++k, h.ordered |= bit(p), h.waiting &= static_cast<u8>(~bit(p));
                    }
                h.pc = what.named_before_notified ? frees_entries : writes_start;
                break;
            }
            default: {  // frees_entries
                name = "frees_entry";
                u8 p = 0;
                while (p < what.incarnations && (h.freeing & bit(p)) == 0) ++p;
                if (p == what.incarnations) {
                    h.pc = rests;
                    break;
                }
                h.freeing &= static_cast<u8>(~bit(p));
                h.old &= static_cast<u8>(~bit(p)), h.added &= static_cast<u8>(~bit(p));
                const char* rule = nullptr;
                for (const cell_word& w : t.cell)
                    if (w.is == cell_is::claimed && w.epoch == h.epoch[p])
                        rule = "an entry is free, and its cells are not mended";
                if (t.participant[p].in == entry::fenced) t.participant[p].in = entry::free;
                h.epoch[p] = 0;
                out.work(t, name, the_holder, rule);
                return;
            }
        }
        out.work(t, name, the_holder);
    }
};

}  // namespace

result explore(const repairer_setup& s, u64 max_states) {
    const model m(s);
    return search<model>(m, max_states).run();
}

}  // namespace carousel::ipc_model
