#include "gate_model.hpp"

#include <fmt/format.h>

namespace carousel::ipc_model {
namespace {

constexpr u8 most_permits = 2;

enum answer : u8 { pending, granted, expired, closed };
enum main_pc : u8 { rest, opens_first, opens_then, enqueues, waits };
enum stream_pc : u8 { none, to_request, at_gate, first_kernel, inside, outside, to_release };
enum thread_pc : u8 { idle, requested, decides, releases_permit, over };

struct permit_word {
    u8 generation, epoch;  // epoch 0: FREE
};
struct gate_words {
    u8 generation, state;  // generation 0: never opened
    u8 deadline_of, far;   // the wait that the deadline is of; far: nothing of it is over
};
struct stream_part {
    u8 at, generation;
    u8 excused;  // the wait was abandoned when it was granted: its kernels are not checked
};
struct client {
    u8 main, rounds, which;                  // which: the stream of this wait
    u8 generation, age;                      // of its wait
    u8 thread, got, permit, stalled_thread;  // got: 1 + the permit
    u8 dropped, releases;                    // releases: the stream does, after its kernels
    std::array<stream_part, 2> stream;
};
struct gate_state : common {
    std::array<permit_word, most_permits> permit{};
    std::array<gate_words, max_incarnations> gate{};
    std::array<client, max_incarnations> all{};
    u8 stalls = 0, drops = 0;
    u8 closer = 0, closer_incarnation = 0, closer_generation = 0;  // the holder at a gate
};

class model {
public:
    using state = gate_state;
    const gate_setup& what;
    explicit model(const gate_setup& s) : what(s) {}

    [[nodiscard]] state first() const {
        state s;
        static_cast<common&>(s) = begun(what);
        s.stalls = what.stalls, s.drops = what.drops;
        for (u8 p = 0; p < what.incarnations; ++p) s.all[p].rounds = p == 0 ? what.rounds : u8{1};
        return s;
    }
    void expand(const state& s, sink<state>& out) const {
        expand_incarnations(*this, s, out);
        for (u8 p = 0; p < what.incarnations; ++p) {
            if (s.participant[p].is != body::ended) kernels(s, p, out), time(s, p, out);
            if (s.participant[p].is == body::runs && s.stalls > 0 && s.all[p].thread != idle &&
                s.all[p].stalled_thread == 0) {
                state t = s;
                --t.stalls, t.all[p].stalled_thread = 1;
                out.fault(t, "TROUBLE", p);
            }
        }
        if (what.holder_closes) closes_late(s, out);
    }
    [[nodiscard]] bool busy(const state& s, u8 p) const {
        const client& c = s.all[p];
        const bool streams = c.stream[0].at != none || c.stream[1].at != none;
        return streams || (c.stalled_thread == 0 && (c.main != rest || c.rounds > 0 || c.thread != idle));
    }
    void dies(state& t, u8 p) const { t.all[p] = {}; }
    void born(state& t, u8 p) const {
        t.all[p] = {}, t.all[p].rounds = 1;
        if (!what.successor_continues) t.gate[p] = {};
    }

    void step(const state& s, u8 p, sink<state>& out) const {
        opens(s, p, out);
        host_functions(s, p, out);
        if (s.all[p].stalled_thread == 0) thread(s, p, out);
    }

    void repair_step(const state& s, sink<state>& out) const {
        state t = s;
        permit_word& w = t.permit[t.holder.k];
        if (what.repairs_permits && w.epoch == t.holder.epoch) w = {static_cast<u8>(w.generation + 1), 0};
        if (++t.holder.k == what.permits) end_repair(t);
        out.work(t, "mends_permit", the_holder);
    }

    [[nodiscard]] const char* broken(const state& s) const {
        u8 within = 0;
        for (u8 p = 0; p < what.incarnations; ++p)
            for (const stream_part& x : s.all[p].stream) {
                if (s.participant[p].is == body::ended || x.at != inside || x.excused != 0) continue;
                ++within;
                if (!has(s, p)) return "kernels run without a permit";
            }
        return within > what.permits ? "a permit is out twice" : nullptr;
    }
    [[nodiscard]] bool done(const state& s) const { return all_rest(*this, s) && s.closer == 0; }
    [[nodiscard]] const char* unsettled(const state& s) const {
        for (u8 p = 0; p < what.incarnations; ++p)
            if (s.all[p].stalled_thread != 0 || s.participant[p].is == body::stopped) return nullptr;
        for (u8 k = 0; k < what.permits; ++k)
            if (s.permit[k].epoch != 0) return "a permit is gone";
        return nullptr;
    }
    [[nodiscard]] std::string text(const state& s) const {
        std::string out = "permits";
        for (u8 k = 0; k < what.permits; ++k)
            out += fmt::format(" {}/{}", s.permit[k].generation, s.permit[k].epoch);
        for (u8 p = 0; p < what.incarnations; ++p)
            out += fmt::format("; life {} at {} thread {} streams {} {} gate {}/{}", p, s.all[p].main,
                               s.all[p].thread, s.all[p].stream[0].at, s.all[p].stream[1].at,
                               s.gate[p].generation, s.gate[p].state);
        return out;
    }

private:
    [[nodiscard]] static bool has(const state& s, u8 p) {
        const client& c = s.all[p];
        return c.got != 0 && s.permit[c.got - 1].epoch == s.participant[p].epoch &&
               s.permit[c.got - 1].generation == c.permit;
    }
    // The wait is over for its process: no thread there is blocked by it.
    void ends(client& c) const {
        const stream_part& x = c.stream[c.which];
        const bool in_hand = c.releases != 0 ? x.at != none : c.dropped == 0 || x.at == to_request;
        if (c.main == waits && !in_hand && c.thread == over) c.main = rest, c.thread = idle;
    }

    // acquire(): the gate, then the stream.
    void opens(const state& s, u8 p, sink<state>& out) const {
        state t = s;
        client& me = t.all[p];
        gate_words& g = t.gate[p];
        const u8 next = static_cast<u8>(g.generation + (what.next_generation || g.generation == 0 ? 1 : 0));
        const char* name = "";
        switch (s.all[p].main) {
            case rest:
                if (me.rounds == 0 || me.stream[me.which ^ 1U].at != none) return;
                me.which ^= 1U, me.main = opens_first;
                name = "begins";
                break;
            case opens_first:
            case opens_then:
                name =
                    (s.all[p].main == opens_first) == what.deadline_first ? "stores_deadline" : "opens_gate";
                if (*name == 's')
                    g.deadline_of = static_cast<u8>(what.deadline_first ? next : g.generation), g.far = 1;
                else
                    g.generation = next, g.state = pending;
                if (*name == 'o') me.generation = next, me.age = 0;
                me.main = static_cast<u8>(s.all[p].main + 1);
                break;
            case enqueues:
                if (me.thread != idle) return;  // only where a gate is opened too early
                name = "enqueues";
                me.stream[me.which] = {to_request, me.generation, 0};
                me.main = waits, me.releases = 1, me.dropped = me.got = 0, --me.rounds;
                break;
            default:
                if (!what.opened_when_over && me.rounds > 0 && me.stream[me.which ^ 1U].at == none) {
                    me.which ^= 1U, me.main = opens_first;
                    out.work(t, "opens_too_early", p);
                    t = s;
                }
                drops_wait(t, p, out);
                return;
        }
        out.work(t, name, p);
    }

    // The handle ends without a release in stream order.
    void drops_wait(state t, u8 p, sink<state>& out) const {
        client& me = t.all[p];
        stream_part& x = me.stream[me.which];
        if (t.drops == 0 || me.dropped != 0 || x.at == none || x.at == to_release) return;
        --t.drops, me.dropped = 1, me.releases = 0;
        if (me.thread == over) x.excused = 1, me.thread = releases_permit;
        ends(me);
        out.fault(t, "LETS_GO", p);
    }

    void host_functions(const state& s, u8 p, sink<state>& out) const {
        for (u8 n = 0; n < 2; ++n) {
            state t = s;
            client& me = t.all[p];
            stream_part& x = me.stream[n];
            if (x.at == to_request) {
                gate_words& g = t.gate[p];
                if (what.deadline_when_requested) g.deadline_of = x.generation, g.far = 0;
                me.thread = requested, x.at = at_gate;
                out.work(t, "asks", p);
            } else if (x.at == to_release) {
                x.at = none;
                me.dropped = 1;
                if (me.thread == over) me.thread = releases_permit;
                out.work(t, "gives_back_in_order", p);
            }
        }
    }

    void thread(const state& s, u8 p, sink<state>& out) const {
        state t = s;
        client& me = t.all[p];
        switch (s.all[p].thread) {
            case requested:
                for (u8 k = 0; k < what.permits; ++k) {
                    if (s.permit[k].epoch != 0) continue;
                    t = s;
                    t.permit[k].epoch = s.participant[p].epoch;
                    me.got = static_cast<u8>(k + 1), me.permit = s.permit[k].generation, me.thread = decides;
                    out.work(t, "takes_permit", p);
                }
                t = s;
                me.thread = decides;
                if (s.all[p].age > 0) out.work(t, "time_over", p);
                if (!what.permit_first && t.gate[p].state == pending) {
                    t.gate[p].state = granted;
                    out.work(t, "grants_before", p);
                }
                return;
            case decides: {
                gate_words& g = t.gate[p];
                const u8 to = me.got == 0                                   ? expired
                              : me.dropped != 0 && what.dropped_not_granted ? closed
                                                                            : granted;
                const bool mine = g.generation == me.generation && g.state == pending;
                if (mine || !what.thread_swaps) g.generation = me.generation, g.state = to;
                const bool back = (!mine && what.thread_swaps) || (me.dropped != 0 && what.dropped_released);
                me.thread = back ? releases_permit : over;
                ends(me);
                out.work(t, "decides", p);
                return;
            }
            case releases_permit:
                if (has(s, p)) {
                    permit_word& w = t.permit[me.got - 1];
                    w = {static_cast<u8>(w.generation + 1), 0};
                }
                me.got = me.permit = 0, me.thread = over;
                ends(me);
                out.work(t, "releases", p);
                return;
            default:
                ends(me);  // a gate opened too early, or the stream has passed all gates
                if (me.main != s.all[p].main) out.work(t, "ends", p);
                return;
        }
    }

    // The parts that run on a GPU: also while the process is stopped.
    void kernels(const state& s, u8 p, sink<state>& out) const {
        for (u8 n = 0; n < 2; ++n) {
            state t = s;
            stream_part& x = t.all[p].stream[n];
            const gate_words& g = s.gate[p];
            const bool mine = g.generation == x.generation, yes = mine && g.state == granted;
            const bool over = what.any_answer ? !mine || g.state != pending : yes;
            const bool released = s.all[p].which != n || s.all[p].releases == 0;
            const char* rule = nullptr;
            switch (x.at) {
                case at_gate:
                    if (!over) continue;
                    x.at = first_kernel;
                    out.work(t, "continues", p);
                    break;
                case first_kernel:
                    x.at = yes || !what.kernels_check_permit ? inside : outside;
                    if (!what.released_after_kernels && t.all[p].thread == thread_pc::over)
                        t.all[p].thread = releases_permit;
                    out.work(t, "first_kernel", p);
                    break;
                case inside:
                case outside:
                    if (what.kernels_check_permit && x.excused == 0 && yes != (x.at == inside))
                        rule = "two kernels behind one gate are told different things";
                    x.at = released ? none : to_release;
                    out.work(t, "last_kernel", p, rule);
                    break;
                default:
                    break;
            }
        }
    }

    void time(const state& s, u8 p, sink<state>& out) const {
        state t = s;
        client& me = t.all[p];
        if (me.age == 2 || me.main != waits || me.stream[me.which].at == to_request) return;
        ++me.age;
        out.work(t, me.age == 1 ? "deadline" : "a_second_behind", p);
    }

    // The holder, at one gate after the other: its word, its deadline, the CAS.
    void closes_late(const state& s, sink<state>& out) const {
        const auto is_over = [&](u8 p) {
            const gate_words& g = s.gate[p];
            return g.far == 0 && (g.deadline_of != s.all[p].generation || s.all[p].age == 2);
        };
        state t = s;
        if (s.closer == 0) {
            for (u8 p = 0; p < what.incarnations; ++p) {
                const gate_words& g = s.gate[p];
                const bool checks =
                    what.deadline_read_last ? g.generation != 0 && g.state == pending : is_over(p);
                if (!checks) continue;
                t = s;
                t.closer = 1, t.closer_incarnation = p, t.closer_generation = g.generation;
                out.work(t, "looks_at_gate", the_holder);
            }
            return;
        }
        const u8 p = s.closer_incarnation;
        gate_words& g = t.gate[p];
        if (s.closer == 1) {
            const bool continues = what.deadline_read_last ? is_over(p) : g.state == pending;
            if (!what.deadline_read_last) t.closer_generation = g.generation;
            t.closer = continues ? 2 : 0;
            if (!continues) t.closer_incarnation = t.closer_generation = 0;
            out.work(t, "looks_at_deadline", the_holder);
        } else {
            const char* rule = nullptr;
            const bool mine = g.generation == s.closer_generation && g.state == pending;
            if (mine && s.participant[p].is != body::ended && s.all[p].generation == g.generation &&
                s.all[p].age < 2)
                rule = "a gate is closed before its time";
            if (mine || !what.holder_swaps) g.generation = s.closer_generation, g.state = closed;
            t.closer = t.closer_incarnation = t.closer_generation = 0;
            out.work(t, "closes_gate", the_holder, rule);
        }
        if (s.left.holder_deaths > 0) {
            t = s;
            --t.left.holder_deaths;
            t.closer = t.closer_incarnation = t.closer_generation = 0;
            out.fault(t, "DIES", the_holder);
        }
    }
};

}  // namespace

result explore(const gate_setup& s, u64 max_states) {
    const model m(s);
    return search<model>(m, max_states).run();
}

}  // namespace carousel::ipc_model
