#include "parameter_model.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <map>

#include <fmt/format.h>

namespace carousel::model {
namespace {

constexpr int places = 4, readable = places - 1;  // as max_parameter_sets, readable_sets
constexpr int rounds = 8;  // the count of sets is modulo this, as 2^24 is: a multiple of the slots
constexpr int first_count = rounds - 2;  // near its end
constexpr int most_numbers = 5, most_changes = 6, instances = 2, window = 3;
constexpr i8 nothing = -1;

struct box_word {
    i8 sets = first_count, horizon = 0;
    auto operator<=>(const box_word&) const = default;
};
struct set {
    i8 from = 0, number = 0;
    auto operator<=>(const set&) const = default;
};
enum class source_at : i8 { idle, leased, read, moved, walks, found, stamped };
struct source {
    source_at at = source_at::idle;
    i8 number = nothing, place = nothing, walked = 0;
    box_word seen{0, 0};
    auto operator<=>(const source&) const = default;
};
enum class boss_at : i8 { idle, asked, half_filled, filled };
struct supervisor {
    boss_at at = boss_at::idle;
    i8 oldest = 0;
    box_word seen{0, 0};
    auto operator<=>(const supervisor&) const = default;
};
enum class number_is : i8 { waiting, leased, done };
struct state {
    box_word word{};
    std::array<set, places> sets{};
    std::array<source, instances> sources{};
    supervisor boss{};
    std::array<number_is, most_numbers> numbers{};
    i8 deaths = 0, boss_deaths = 0, changes = 0;
    // Unknown to every process of the run: the set that each number was given first, and where each change
    // begins to count.
    std::array<i8, most_numbers> given{nothing, nothing, nothing, nothing, nothing};
    std::array<i8, most_changes> from{};
    auto operator<=>(const state&) const = default;
};

int place_of(int sets) { return ((sets % places) + places) % places; }

i8 tail_of(const parameter_setup& c, const state& s) {
    i8 t = 0;
    while (t < c.numbers && s.numbers[t] == number_is::done) ++t;
    return t;
}

class search {
public:
    explicit search(const parameter_setup& c) : c_(c) {}

    parameter_result run() {
        std::deque<state> open{state{}};
        seen_.emplace(open.front(), std::pair{open.front(), std::string()});
        while (!open.empty() && result_.sound()) {
            const state s = open.front();
            open.pop_front();
            next_.clear();
            boss_steps(s);
            for (int k = 0; k < instances; ++k) source_steps(s, k);
            for (auto& [what, t] : next_) {
                std::sort(t.sources.begin(),
                          t.sources.end());  // the identity of the instance makes no difference
                if (!seen_.emplace(t, std::pair{s, what}).second) continue;
                judge(t);
                if (!result_.sound()) {
                    report(t);
                    break;
                }
                open.push_back(t);
            }
        }
        result_.states = seen_.size();
        return result_;
    }

private:
    template <typename F>
    void add(const state& s, std::string what, F by) {
        state t = s;
        by(t);
        next_.emplace_back(std::move(what), t);
    }

    void boss_steps(const state& s) {
        const supervisor& b = s.boss;
        const int place = place_of(b.seen.sets + 1);
        switch (b.at) {
            case boss_at::idle:
                if (s.changes < c_.changes)
                    add(s, "publish", [&](state& t) { t.boss = {boss_at::asked, tail_of(c_, s), {0, 0}}; });
                break;
            case boss_at::asked: {
                const bool room =
                    s.sets[static_cast<std::size_t>(place_of(s.word.sets + 1 - (readable - 1)))].from <=
                    b.oldest;
                result_.refused = result_.refused || !room;
                if (!room && c_.check_room) {
                    add(s, "no-room", [](state& t) { t.boss = {}; });
                } else {
                    // One step: if a source reads the slot that is being filled, the next state is torn.
                    add(s, "read-and-fill-from", [&](state& t) {
                        t.sets[static_cast<std::size_t>(place_of(s.word.sets + 1))].from = s.word.horizon;
                        t.boss.at = boss_at::half_filled;
                        t.boss.seen = s.word;
                    });
                }
                break;
            }
            case boss_at::half_filled:
                add(s, "fill-rest", [&](state& t) {
                    const set& before = s.sets[static_cast<std::size_t>(place_of(b.seen.sets))];
                    t.sets[static_cast<std::size_t>(place)].number = static_cast<i8>(before.number + 1);
                    t.boss.at = boss_at::filled;
                });
                break;
            case boss_at::filled:
                if (c_.one_cas ? s.word == b.seen : s.word.sets == b.seen.sets) {
                    add(s, fmt::format("counts-from({})", b.seen.horizon), [&](state& t) {
                        t.word.sets = static_cast<i8>((s.word.sets + 1) % rounds);
                        result_.round = result_.round || t.word.sets == 0;
                        t.from[static_cast<std::size_t>(t.changes++)] = b.seen.horizon;
                        t.boss = {};
                    });
                } else {
                    add(s, "count-failed", [](state& t) {
                        t.boss.at = boss_at::asked, t.boss.seen = {0, 0};
                    });
                }
                break;
        }
        // A supervisor that has written nothing is equivalent to one that never began.
        if ((b.at == boss_at::half_filled || b.at == boss_at::filled) &&
            s.boss_deaths < c_.supervisor_deaths) {
            add(s, "supervisor-dies", [](state& t) {
                t.boss = {};
                ++t.boss_deaths;
            });
        }
    }

    void source_steps(const state& s, int k) {
        const auto index = static_cast<std::size_t>(k);
        const source& q = s.sources[index];
        const auto go = [&](const char* what, auto by) {
            add(s, fmt::format("{}({})", what, q.number), [&](state& t) { by(t, t.sources[index]); });
        };
        switch (q.at) {
            case source_at::idle:
                for (i8 n = tail_of(c_, s); n < std::min(tail_of(c_, s) + window, c_.numbers); ++n) {
                    if (s.numbers[static_cast<std::size_t>(n)] != number_is::waiting) continue;
                    add(s, fmt::format("lease({})", n), [&](state& t) {
                        t.numbers[static_cast<std::size_t>(n)] = number_is::leased;
                        t.sources[index] = {source_at::leased, n, nothing, 0, {0, 0}};
                    });
                }
                return;
            case source_at::leased:
                go("look", [&](state&, source& me) {
                    const bool ahead = c_.move_horizon && s.word.horizon <= q.number;
                    me.at = ahead ? source_at::read : source_at::moved;
                    if (ahead) me.seen = s.word;
                });
                break;
            case source_at::read:
                go("move-horizon", [&](state& t, source& me) {
                    me.at = s.word == q.seen ? source_at::moved : source_at::leased;
                    if (s.word == q.seen) t.word.horizon = static_cast<i8>(q.number + 1);
                    me.seen = {0, 0};
                });
                break;
            case source_at::moved:
                go("newest", [&](state&, source& me) {
                    me.at = source_at::walks;
                    me.place = static_cast<i8>(place_of(s.word.sets));
                    me.walked = 0;
                });
                break;
            case source_at::walks:
                go("reads-from", [&](state&, source& me) {
                    inspect_reader(s, q.place);
                    if (s.sets[static_cast<std::size_t>(q.place)].from <= q.number ||
                        q.walked == readable - 1) {
                        me.at = source_at::found;
                    } else {
                        me.place = static_cast<i8>(place_of(q.place - 1));
                        ++me.walked;
                    }
                });
                break;
            case source_at::found:
                go("stamps", [&](state& t, source& me) {
                    inspect_reader(s, q.place);
                    me.at = source_at::stamped;
                    const i8 got = s.sets[static_cast<std::size_t>(q.place)].number;
                    i8& given = t.given[static_cast<std::size_t>(q.number)];
                    result_.differs = result_.differs || (given != nothing && given != got);
                    given = got;
                });
                break;
            case source_at::stamped:
                go("done", [&](state& t, source& me) {
                    t.numbers[static_cast<std::size_t>(q.number)] = number_is::done;
                    me = {};
                });
                break;
        }
        // A death before the first CAS is equivalent to no lease at all.
        if (q.at > source_at::read && s.deaths < c_.deaths) {
            go("die", [&](state& t, source& me) {
                t.numbers[static_cast<std::size_t>(q.number)] = number_is::waiting;
                me = {};
                ++t.deaths;
            });
        }
        if (!result_.sound()) report(s);
    }

    // A set that a source reads during its filling has no content at all.
    void inspect_reader(const state& s, int place) {
        const bool being_filled =
            s.boss.at == boss_at::half_filled && place_of(s.boss.seen.sets + 1) == place;
        result_.torn = result_.torn || being_filled;
    }

    void judge(const state& s) {
        for (int n = 0; n < c_.numbers; ++n) {
            const i8 given = s.given[static_cast<std::size_t>(n)];
            if (given == nothing) continue;
            for (int m = 0; m < n; ++m)
                result_.falls = result_.falls || s.given[static_cast<std::size_t>(m)] > given;
            for (int k = 0; k < s.changes; ++k)
                result_.inexact =
                    result_.inexact || (n >= s.from[static_cast<std::size_t>(k)]) != (given > k);
        }
    }

    void report(const state& s) {
        if (!result_.trace.empty()) return;
        for (const state* at = &s; !seen_.at(*at).second.empty(); at = &seen_.at(*at).first)
            result_.trace.push_back(seen_.at(*at).second);
        std::reverse(result_.trace.begin(), result_.trace.end());
    }

    const parameter_setup c_;
    parameter_result result_;
    std::map<state, std::pair<state, std::string>> seen_;
    std::vector<std::pair<std::string, state>> next_;
};

}  // namespace

parameter_result explore_parameters(const parameter_setup& s) { return search(s).run(); }

}  // namespace carousel::model
