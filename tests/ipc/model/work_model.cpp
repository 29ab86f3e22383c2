#include "work_model.hpp"

#include <fmt/format.h>

namespace carousel::ipc_model {
namespace {

constexpr u8 most_places = 2, most_tasks = 4;

enum pc : u8 {
    rest,
    check_free,
    fill,
    write_one,
    write_two,
    submit,
    check_waiting,
    claim,
    read_one,
    read_two,
    ends,
    check_dead_letter,
    take_dead_letter,
    dead_letter_one,
    dead_letter_two,
    free_dead_letter
};
enum class task_is : u8 { free, filling, waiting, claimed, dead_letter, reading };
struct task_word {
    u8 generation, attempts, epoch;
    task_is is;
    bool operator==(const task_word&) const = default;
};
struct payload {
    u8 one, two;
};
struct client {
    u8 at, checks, place, one, left;
    task_word mine;  // the value that it has read, and then the value that it has computed from it
    u8 old_place;    // 1 + the place of a task that it has committed; 0: none
    task_word old;   // and its claim
};
struct fate {
    u8 submitted, committed, attempts, read;
};
struct work_state : common {
    std::array<task_word, most_places> word{};
    std::array<payload, most_places> data{};
    u8 next_free = 0, next_waiting = 0, fails = 0, again = 0;
    std::array<client, max_incarnations> all{};
    std::array<fate, most_tasks> of{};
};

class model {
public:
    using state = work_state;
    const work_setup& what;
    explicit model(const work_setup& s) : what(s) {}

    [[nodiscard]] state first() const {
        state s;
        static_cast<common&>(s) = begun(what);
        s.fails = what.fails, s.again = what.again;
        for (u8 p = 0; p < what.submitters; ++p) s.all[p].left = what.tasks;
        return s;
    }
    void expand(const state& s, sink<state>& out) const { expand_incarnations(*this, s, out); }
    [[nodiscard]] bool busy(const state& s, u8 p) const { return s.all[p].at != rest || s.all[p].left > 0; }
    void dies(state& t, u8 p) const {
        const client& me = t.all[p];
        const task_word& w = t.word[me.place];
        if (me.at != rest && w.is == task_is::claimed && w.epoch == t.participant[p].epoch && w == me.mine)
            ++t.of[task_at(t, me.place)].attempts;
        const u8 left = me.left;
        t.all[p] = {};
        t.all[p].left = t.left.births > 0 ? left : u8{0};
    }
    void born(state&, u8) const {}

    void step(const state& s, u8 p, sink<state>& out) const {
        repeats(s, p, out);
        if (p < what.submitters)
            submits(s, p, out);
        else if (s.all[p].at < check_dead_letter)
            works(s, p, out);
        else
            reads_dead_letter(s, p, out);
    }

    void repair_step(const state& s, sink<state>& out) const {
        state t = s;
        repairer& m = t.holder;
        task_word& w = t.word[m.k];
        if (w.epoch == m.epoch && w.is != task_is::free) {
            if (w.is == task_is::filling && what.repairs_filling) w = freed(w);
            if (w.is == task_is::claimed && what.repairs_claimed)
                w = what.claimed_redelivered ? failed(w) : freed(w);
            if (w.is == task_is::reading && what.repairs_reading)
                w = what.dead_letter_redelivered
                        ? task_word{w.generation, w.attempts, 0, task_is::dead_letter}
                        : freed(w);
        }
        if (++m.k == what.places) end_repair(t);
        out.work(t, "mends_place", the_holder);
    }

    [[nodiscard]] const char* broken(const state& s) const {
        for (u8 a = what.submitters; a < what.incarnations; ++a)
            for (u8 b = what.submitters; b < a; ++b)
                if (claims(s, a) && claims(s, b) && s.all[a].place == s.all[b].place)
                    return "a task is claimed twice";
        for (const fate& f : s.of) {
            if (f.committed + f.read > 1) return "a task was ended twice";
            if (f.attempts > what.max_attempts) return "a task has had too many attempts";
        }
        return nullptr;
    }
    [[nodiscard]] bool done(const state& s) const {
        if (no_worker_left(s)) return true;
        if (!all_rest(*this, s)) return false;
        for (u8 k = 0; k < what.places; ++k)
            if (s.word[k].is == task_is::waiting ||
                (what.reads_dead_letters && s.word[k].is == task_is::dead_letter))
                return false;
        return true;
    }
    [[nodiscard]] const char* unsettled(const state& s) const {
        if (no_worker_left(s)) return nullptr;
        u8 dead_letters = 0, open = 0;
        for (u8 k = 0; k < what.places; ++k) {
            if (s.word[k].is == task_is::dead_letter)
                ++dead_letters;
            else if (s.word[k].is != task_is::free)
                return "a place is gone";
        }
        for (const fate& f : s.of) {
            open += f.submitted - f.committed - f.read;
            if (f.committed + f.read == 0 && f.submitted != 0 && f.attempts != what.max_attempts)
                return "a task is lost";
            if (f.read != 0 && f.attempts != what.max_attempts) return "a dead letter came before its time";
        }
        return dead_letters == open ? nullptr : "a task is lost";
    }
    [[nodiscard]] std::string text(const state& s) const {
        std::string out = "places";
        for (u8 k = 0; k < what.places; ++k)
            out += fmt::format(" {}/{}/{}/{}", s.word[k].generation, s.word[k].attempts, s.word[k].epoch,
                               static_cast<int>(s.word[k].is));
        for (u8 p = 0; p < what.incarnations; ++p)
            out += fmt::format("; life {} at {} place {}", p, s.all[p].at, s.all[p].place);
        return out;
    }

private:
    [[nodiscard]] static u8 task_at(const state& s, u8 k) {
        return s.data[k].one == 0 ? u8{0} : static_cast<u8>(s.data[k].one - 1);
    }
    [[nodiscard]] u8 next_of(const state& s, u8 p) const {
        return static_cast<u8>(1 + p * what.tasks + what.tasks - s.all[p].left);
    }
    [[nodiscard]] static bool claims(const state& s, u8 p) {
        return s.participant[p].is != body::ended && s.all[p].at >= read_one && s.all[p].at <= ends;
    }
    [[nodiscard]] bool no_worker_left(const state& s) const {
        for (u8 p = what.submitters; p < what.incarnations; ++p)
            if (s.participant[p].is != body::ended) return false;
        return true;
    }
    [[nodiscard]] task_word freed(const task_word& w) const {
        return {static_cast<u8>(w.generation + (what.next_generation ? 1 : 0)), 0, 0, task_is::free};
    }
    [[nodiscard]] task_word failed(const task_word& w) const {
        const u8 attempts = static_cast<u8>(w.attempts + (what.attempts_counted ? 1 : 0));
        const u8 limit = static_cast<u8>(what.max_attempts - (what.dead_letters_in_time ? 0 : 1));
        const bool dead_letter = what.dead_letters_made && attempts >= limit;
        return {w.generation, attempts, 0, dead_letter ? task_is::dead_letter : task_is::waiting};
    }
    static void clear(client& me) { me = {rest, 0, 0, 0, me.left, {}, me.old_place, me.old}; }

    // The search for a word in that state wraps once; `found` is its position then.
    void check(client& me, const state& s, task_is wanted, u8 found) const {
        const task_word w = s.word[me.place];
        if (w.is == wanted) {
            me.mine = w, me.at = found;
        } else if (++me.checks == what.places) {
            clear(me);
        } else {
            me.place = static_cast<u8>((me.place + 1) % what.places);
        }
    }
    // From the observed value to that state, named. Returns false if another process was faster, and
    // continues the search.
    bool take(state& t, u8 p, task_is to, bool checked, u8& hint) const {
        client& me = t.all[p];
        if (t.word[me.place] != me.mine && checked) return false;
        me.mine.epoch = to == task_is::claimed && !what.claim_named ? u8{0} : t.participant[p].epoch;
        me.mine.is = to;
        t.word[me.place] = me.mine;
        hint = static_cast<u8>((me.place + 1) % what.places);
        return true;
    }
    void advance_check(client& me, u8 at) const {
        me.mine = {}, me.at = at;
        if (++me.checks == what.places)
            clear(me);
        else
            me.place = static_cast<u8>((me.place + 1) % what.places);
    }

    void submits(const state& s, u8 p, sink<state>& out) const {
        state t = s;
        client& me = t.all[p];
        const char* name = "";
        switch (me.at) {
            case rest:
                if (me.left == 0) return;
                me.place = s.next_free, me.at = check_free, name = "begins";
                break;
            case check_free:
                check(me, s, task_is::free, fill), name = "looks_at_place";
                break;
            case fill:
                name = "takes_place";
                if (take(t, p, task_is::filling, what.fill_checked, t.next_free))
                    me.at = what.writes_first ? write_one : submit;
                else
                    advance_check(me, check_free);
                break;
            case write_one:
                t.data[me.place].one = next_of(s, p), me.at = write_two, name = "writes";
                break;
            case write_two:
                t.data[me.place].two = next_of(s, p), me.at = submit, name = "writes_rest";
                if (!what.writes_first) --me.left, clear(me);
                break;
            default:  // submit
                name = "submits";
                if (t.word[me.place] == me.mine) {
                    t.word[me.place] = {me.mine.generation, 0, 0, task_is::waiting};
                    t.of[next_of(s, p) - 1].submitted = 1;
                }
                if (what.writes_first)
                    --me.left, clear(me);
                else
                    me.at = write_one;
                break;
        }
        out.work(t, name, p);
    }

    void works(const state& s, u8 p, sink<state>& out) const {
        state t = s;
        client& me = t.all[p];
        const char* name = "";
        const char* rule = nullptr;
        switch (me.at) {
            case rest:
                if (what.reads_dead_letters) {
                    me.at = check_dead_letter;
                    out.work(t, "looks_for_letters", p);
                    t = s;
                }
                me.place = s.next_waiting, me.at = check_waiting, name = "looks_for_work";
                break;
            case check_waiting:
                check(me, s, task_is::waiting, claim), name = "looks_at_place";
                break;
            case claim:
                name = "claims";
                if (!take(t, p, task_is::claimed, what.claim_checked, t.next_waiting)) {
                    advance_check(me, check_waiting);
                    break;
                }
                me.at = what.reads_first ? read_one : ends;
                if (me.mine.attempts != s.of[task_at(s, me.place)].attempts)
                    rule = "a count of attempts is wrong";
                break;
            case read_one:
                me.one = s.data[me.place].one, me.at = read_two, name = "reads";
                break;
            case read_two:
                if (me.one == 0 || me.one != s.data[me.place].two) rule = "a task is torn";
                me.at = ends, name = "reads_rest";
                if (!what.reads_first) clear(me);
                break;
            default:  // ends
                rule = ends_it(s, p, out);
                t = s;
                if (rule == nullptr) commit(t, p);
                name = "commits";
                break;
        }
        out.work(t, name, p, rule);
    }

    // The branches that are not the normal course; the rule that is broken if it ends at all.
    const char* ends_it(const state& s, u8 p, sink<state>& out) const {
        if (s.word[s.all[p].place] != s.all[p].mine) return "a claim is not its holder's any more";
        if (s.fails > 0 && what.reads_first) {
            state t = s;
            client& me = t.all[p];
            ++t.of[task_at(t, me.place)].attempts, --t.fails;
            t.word[me.place] = failed(me.mine);
            clear(me);
            out.work(t, "fails", p);
        }
        return nullptr;
    }
    void commit(state& t, u8 p) const {
        client& me = t.all[p];
        ++t.of[task_at(t, me.place)].committed;
        t.word[me.place] = freed(me.mine);
        if (t.again > 0) me.old_place = static_cast<u8>(me.place + 1), me.old = me.mine;
        if (what.reads_first)
            clear(me);
        else
            me.at = read_one;
    }
    // A completed commit is repeated much later, by another thread of that incarnation.
    void repeats(const state& s, u8 p, sink<state>& out) const {
        const client& me = s.all[p];
        if (me.old_place == 0 || s.again == 0) return;
        state t = s;
        --t.again;
        t.all[p].old_place = 0, t.all[p].old = {};
        const u8 k = static_cast<u8>(me.old_place - 1);
        const bool fits = t.word[k] == me.old;
        if (fits) t.word[k] = freed(me.old);
        out.take(t, "commits_again", p, false,
                 fits ? "a task was committed by a claim that was over" : nullptr);
    }

    void reads_dead_letter(const state& s, u8 p, sink<state>& out) const {
        state t = s;
        client& me = t.all[p];
        const char* name = "";
        const char* rule = nullptr;
        u8 unused = 0;
        switch (me.at) {
            case check_dead_letter:
                check(me, s, task_is::dead_letter, take_dead_letter), name = "looks_at_place";
                break;
            case take_dead_letter:
                name = "takes_letter";
                if (take(t, p, task_is::reading, true, unused))
                    me.at = dead_letter_one;
                else
                    advance_check(me, check_dead_letter);
                break;
            case dead_letter_one:
                me.one = s.data[me.place].one, me.at = dead_letter_two, name = "reads";
                break;
            case dead_letter_two:
                if (me.one == 0 || me.one != s.data[me.place].two) rule = "a letter is torn";
                me.at = free_dead_letter, name = "reads_rest";
                break;
            default:  // free_dead_letter
                name = "frees_letter";
                if (t.word[me.place] != me.mine) rule = "a letter is not its reader's any more";
                ++t.of[task_at(t, me.place)].read;
                t.word[me.place] = freed(me.mine);
                clear(me);
                break;
        }
        out.work(t, name, p, rule);
    }
};

}  // namespace

result explore(const work_setup& s, u64 max_states) {
    const model m(s);
    return search<model>(m, max_states).run();
}

}  // namespace carousel::ipc_model
