#include "queue_model.hpp"

#include <fmt/format.h>

namespace carousel::ipc_model {
namespace {

constexpr u8 most_cells = 3, most_elements = 8;

enum pc : u8 {
    rest,
    claim_check,
    claim_cas,
    claim_hint,
    claim_moved,
    write_one,
    write_two,
    publish,
    take_check,
    take_cas,
    take_hint,
    read_one,
    read_two,
    consume,
    leased
};
enum class cell_is : u8 { free, claimed, ready, popping, leased, tomb, lost };
struct cell_word {
    u8 lap, epoch;
    cell_is is;
    bool operator==(const cell_word&) const = default;
};
struct payload {
    u8 one, two;
};
struct tally {
    u8 count, place, round;  // place: 1 + the cell that was counted last; 0: none
};
struct client {
    u8 at, ticket, first, from, one, left;  // from: of the cell that is claimed or taken: its lap
    cell_is seen;
};
// State that no client knows: for each element, whether it was published, taken, consumed, and whether its
// owner died with it.
struct fate {
    u8 published, taken, consumed, died;
};
struct queue_state : common {
    std::array<cell_word, most_cells> cell{};
    std::array<payload, most_cells> data{};
    u8 head = 0, tail = 0, requeues = 0;
    tally lost{}, tombs{};
    std::array<client, max_incarnations> all{};
    std::array<fate, most_elements> of{};
    std::array<u8, max_incarnations> newest{};
    u8 died_popping = 0, died_claiming = 0;
};

enum repair_pc : u8 { bury_tomb, clear_lost, clear_tombs, checks_word, mark, notify, frees, notify_done };

class model {
public:
    using state = queue_state;
    const queue_setup& what;
    explicit model(const queue_setup& s) : what(s) {}

    [[nodiscard]] state first() const {
        state s;
        static_cast<common&>(s) = begun(what);
        s.requeues = what.requeues;
        for (u8 p = 0; p < what.producers; ++p) s.all[p].left = what.elements;
        return s;
    }
    void expand(const state& s, sink<state>& out) const { expand_incarnations(*this, s, out); }
    [[nodiscard]] bool busy(const state& s, u8 p) const { return s.all[p].at != rest || s.all[p].left > 0; }
    void dies(state& t, u8 p) const {
        for (u8 k = 0; k < what.capacity; ++k) {
            const cell_word& w = t.cell[k];
            const bool mine =
                t.all[p].at != rest && k == spot(t.all[p].ticket) && w.epoch == t.participant[p].epoch;
            if (mine && w.is == cell_is::claimed) ++t.died_claiming;
            if (mine && w.is == cell_is::popping) ++t.died_popping, t.of[id_at(t, k)].died = 1;
        }
        const u8 left = t.all[p].left;
        t.all[p] = {};
        t.all[p].left = t.left.births > 0 ? left : u8{0};  // what its next incarnation has to do
    }
    void born(state&, u8) const {}

    void step(const state& s, u8 p, sink<state>& out) const {
        if (s.all[p].at == rest && p >= what.producers)
            begins_to_take(s, p, out);
        else if (s.all[p].at < take_check)
            pushes(s, p, out);
        else if (s.all[p].at < read_one)
            takes(s, p, out);
        else
            consumes(s, p, out);
    }

    void repair_step(const state& s, sink<state>& out) const;

    [[nodiscard]] const char* broken(const state&) const { return nullptr; }
    [[nodiscard]] bool done(const state& s) const {
        if (no_consumer_left(s)) return true;
        if (!all_rest(*this, s)) return false;
        for (u8 e = 0; e < most_elements; ++e)
            if (s.of[e].published != 0 && s.of[e].consumed + s.of[e].died == 0) return false;
        return true;
    }
    [[nodiscard]] const char* unsettled(const state& s) const {
        if (no_consumer_left(s)) return nullptr;
        for (u8 k = 0; k < what.capacity; ++k)
            if (s.cell[k].is != cell_is::free) return "capacity is lost";
        if (s.lost.count != s.died_popping) return "the count of the lost is wrong";
        if (s.tombs.count != s.died_claiming) return "the count of the tombs is wrong";
        return nullptr;
    }
    [[nodiscard]] std::string text(const state& s) const {
        std::string out = fmt::format("head {}, tail {}, lost {}, tombs {}, cells", s.head, s.tail,
                                      s.lost.count, s.tombs.count);
        for (u8 k = 0; k < what.capacity; ++k)
            out += fmt::format(" {}/{}/{}", s.cell[k].lap, s.cell[k].epoch, static_cast<int>(s.cell[k].is));
        for (u8 p = 0; p < what.incarnations; ++p)
            out += fmt::format("; life {} at {} ticket {}", p, s.all[p].at, s.all[p].ticket);
        return out;
    }

private:
    [[nodiscard]] u8 lap(u8 ticket) const { return static_cast<u8>(ticket / what.capacity); }
    [[nodiscard]] u8 spot(u8 ticket) const { return static_cast<u8>(ticket % what.capacity); }
    // An element is 1 + its number; those of a producer follow each other.
    [[nodiscard]] static u8 id_at(const state& s, u8 k) {
        return s.data[k].one == 0 ? u8{0} : static_cast<u8>(s.data[k].one - 1);
    }
    [[nodiscard]] u8 next_of(const state& s, u8 p) const {
        return static_cast<u8>(1 + p * what.elements + what.elements - s.all[p].left);
    }
    [[nodiscard]] bool no_consumer_left(const state& s) const {
        for (u8 p = what.producers; p < what.incarnations; ++p)
            if (s.participant[p].is != body::ended) return false;
        return true;
    }
    void clear(client& me) const { me = {rest, 0, 0, 0, 0, me.left, cell_is::free}; }

    void pushes(const state& s, u8 p, sink<state>& out) const {
        state t = s;
        client& me = t.all[p];
        cell_word& w = t.cell[spot(me.ticket)];
        const u8 mine = lap(me.ticket), epoch = what.claim_named ? s.participant[p].epoch : u8{0};
        const cell_word claimed{mine, epoch, cell_is::claimed};
        const char* name = "";
        switch (s.all[p].at) {
            case rest:
                if (me.left == 0) return;
                me.ticket = s.tail, me.at = claim_check, name = "reads_tail";
                break;
            case claim_check:
                name = "looks_at_cell";
                if (what.lap_compared && w.lap < mine)
                    clear(me);  // full
                else
                    me.at = w.is == cell_is::free && (w.lap == mine || !what.lap_compared) ? claim_cas
                                                                                           : claim_hint;
                break;
            case claim_cas:
                name = "claims", me.at = claim_check;
                if (w == cell_word{w.lap, 0, cell_is::free} && (w.lap == mine || !what.lap_compared)) {
                    w = claimed, me.at = claim_moved;
                } else if (!what.claim_checked) {
                    w = claimed, me.at = claim_moved;
                }
                break;
            case claim_hint:
                name = "moves_tail";
                if (s.tail == me.ticket) ++t.tail;
                me.ticket = std::max<u8>(t.tail, static_cast<u8>(me.ticket + 1)), me.at = claim_check;
                break;
            case claim_moved:
                name = "moves_tail";
                if (s.tail == me.ticket) ++t.tail;
                me.at = what.writes_first ? write_one : publish;
                break;
            case write_one:
                name = "writes";
                t.data[spot(me.ticket)].one = next_of(s, p), me.at = write_two;
                break;
            case write_two:
                name = "writes_rest";
                t.data[spot(me.ticket)].two = next_of(s, p), me.at = publish;
                if (!what.writes_first) --me.left, clear(me);
                break;
            default:  // publish
                name = "publishes";
                if (w == claimed) {
                    w = {mine, 0, cell_is::ready};
                    t.of[next_of(s, p) - 1].published = 1;
                }
                if (what.writes_first)
                    --me.left, clear(me);
                else
                    me.at = write_one;
                break;
        }
        out.work(t, name, p);
    }

    void begins_to_take(const state& s, u8 p, sink<state>& out) const {
        state t = s;
        client& me = t.all[p];
        me.ticket = me.first = s.head, me.at = take_check;
        out.work(t, "reads_head", p);
    }

    void takes(const state& s, u8 p, sink<state>& out) const {
        state t = s;
        client& me = t.all[p];
        const u8 k = spot(me.ticket), mine = lap(me.ticket);
        cell_word& w = t.cell[k];
        const char* rule = nullptr;
        const char* name = "looks_at_cell";
        const auto pass = [&] {
            ++me.ticket, me.at = take_check;
            if (me.ticket >= me.first + what.capacity) clear(me);
        };
        if (me.at == take_hint) {
            name = "moves_head";
            if (s.head == me.ticket) ++t.head;
            ++me.first;
            pass();
        } else if (me.at == take_cas) {
            name = what.pops ? "pops" : "leases";
            me.at = take_check;
            if ((w.is == cell_is::ready && w.lap == mine) || !what.take_checked) {
                w = {mine, s.participant[p].epoch, what.pops ? cell_is::popping : cell_is::leased};
                me.from = static_cast<u8>(mine + 1), me.first = 0, me.at = read_one;
                if (!what.reads_first) me.at = consume;
                rule = taken(t, k);
            }
        } else if (w.lap > mine) {
            if (me.ticket == me.first)
                me.at = take_hint;
            else
                pass();
        } else if (w.lap < mine || w.is == cell_is::free ||
                   (w.is == cell_is::claimed && what.waits_for_claimed)) {
            clear(me);
        } else if (w.is == cell_is::ready) {
            me.at = take_cas;
        } else {
            pass();
        }
        out.work(t, name, p, rule);
    }

    // An element is taken: the first time of each, in the order of its producer.
    [[nodiscard]] const char* taken(state& t, u8 k) const {
        if (t.data[k].one == 0 || t.data[k].one != t.data[k].two) return "an element is torn";
        const u8 e = id_at(t, k), producer = static_cast<u8>(e / what.elements);
        if (t.of[e].consumed != 0 || t.of[e].died != 0) return "an element came twice";
        if (t.of[e].taken != 0) return nullptr;
        t.of[e].taken = 1;
        if (e + 1 < t.newest[producer]) return "a producer's elements came out of order";
        t.newest[producer] = static_cast<u8>(e + 1);
        return nullptr;
    }

    void consumes(const state& s, u8 p, sink<state>& out) const {
        state t = s;
        client& me = t.all[p];
        const u8 k = spot(me.ticket);
        const char* rule = nullptr;
        const char* name = "reads";
        if (me.at == read_one) {
            me.one = s.data[k].one, me.at = read_two;
        } else if (me.at == read_two) {
            name = "reads_rest";
            if (me.one != s.data[k].two || me.one == 0) rule = "an element is torn";
            me.at = what.pops ? consume : leased;
            if (!what.reads_first) clear(me);
        } else {
            const cell_word mine{lap(me.ticket), s.participant[p].epoch,
                                 what.pops ? cell_is::popping : cell_is::leased};
            if (s.cell[k] != mine) rule = "a cell is not its holder's any more";
            if (rule == nullptr && s.requeues > 0 && me.at == leased) {
                t.cell[k] = {mine.lap, 0, cell_is::ready};
                --t.requeues;
                clear(me);
                out.work(t, "releases_permit", p);
                t = s;
            }
            name = what.pops ? "consumes" : "commits";
            fate& e = t.of[id_at(s, k)];
            if (rule == nullptr && e.consumed++ != 0) rule = "an element came twice";
            t.cell[k] = {static_cast<u8>(mine.lap + 1), 0, cell_is::free};
            client& then = t.all[p];
            if (what.reads_first)
                clear(then);
            else
                then.at = read_one;
        }
        out.work(t, name, p, rule);
    }
};

// The holder: first the graves (marked by an earlier repair), then the dead client's cells. `n`: 0 in the
// graves' pass, then 1; `epoch` of a cell that is being buried is 0.
void model::repair_step(const state& s, sink<state>& out) const {
    state t = s;
    repairer& m = t.holder;
    cell_word& w = t.cell[m.k];
    tally& of = w.is == cell_is::tomb ? t.tombs : t.lost;
    const char* name = "looks_at_cell";
    const auto next = [&] {
        m.pc = m.n == 0 ? bury_tomb : checks_word;
        if (++m.k < what.capacity) return;
        m.k = 0;
        if (m.n == 1)
            end_repair(t);
        else
            m.pc = clear_lost, m.n = 1;
    };
    if (m.pc == bury_tomb && !what.tombs_first) m.n = 1, m.pc = checks_word;
    switch (m.pc) {
        case bury_tomb:
            if (w.is == cell_is::tomb || w.is == cell_is::lost)
                m.pc = notify;
            else
                next();
            break;
        case clear_lost:
        case clear_tombs: {
            tally& mark_of = m.pc == clear_lost ? t.lost : t.tombs;
            if (what.marks_cleared) mark_of.place = mark_of.round = 0;
            m.pc = m.pc == clear_lost ? clear_tombs : checks_word;
            name = "clears_mark";
            break;
        }
        case checks_word:
            if (!what.tombs_first && (w.is == cell_is::tomb || w.is == cell_is::lost)) {
                m.pc = notify;
            } else if (w.epoch != m.epoch) {
                next();
            } else if ((w.is == cell_is::claimed && what.repairs_claimed) ||
                       (w.is == cell_is::popping && what.repairs_popping) ||
                       (w.is == cell_is::leased && what.repairs_leased)) {
                m.pc = mark;
            } else {
                next();
            }
            break;
        case mark:  // by CAS from the observed value, which no other process changes: its owner has ended
            name = "repairs_cell";
            if (w.epoch != m.epoch) {
                m.pc = checks_word;
            } else if (w.is == cell_is::leased || (w.is == cell_is::popping && !what.popped_is_lost)) {
                w = {w.lap, 0, cell_is::ready};
                next();
            } else {
                w = {w.lap, 0, w.is == cell_is::claimed ? cell_is::tomb : cell_is::lost};
                m.pc = notify;
            }
            break;
        case notify: {
            name = "counts";
            const u8 place = static_cast<u8>(m.k + 1), round = static_cast<u8>(w.lap % what.rounds);
            if (of.place != place || of.round != round || !what.counted_once)
                of = {static_cast<u8>(of.count + 1), place, round};
            m.pc = frees;
            break;
        }
        case frees:
            name = "frees_cell";
            m.pc = notify_done;
            // Which tally it was is known no more from the word: kept in `n`'s second bit.
            if (w.is == cell_is::tomb) m.n = static_cast<u8>(m.n + 2);
            w = {static_cast<u8>(w.lap + (what.tombs_advance ? 1 : 0)), 0, cell_is::free};
            break;
        default: {  // notify_done
            name = "clears_mark";
            tally& tombs_or_lost = m.n >= 2 ? t.tombs : t.lost;
            tombs_or_lost.place = tombs_or_lost.round = 0;
            m.n = static_cast<u8>(m.n & 1U);
            next();
            break;
        }
    }
    out.work(t, name, the_holder);
}

}  // namespace

result explore(const queue_setup& s, u64 max_states) {
    const model m(s);
    return search<model>(m, max_states).run();
}

}  // namespace carousel::ipc_model
