#include "reentry_model.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <utility>

namespace carousel::model {
namespace {

constexpr int rings = 2, window = 2, most_frames = 4;
constexpr int middle = 1;         // it fills ring 1, and may have a state
constexpr int of_states = rings;  // the number of its ring of states

enum class copy_is : i8 { absent, filling, whole, committed, ready };
enum class lease_is : i8 { wait, leased, done };
struct copy {
    copy_is at = copy_is::absent;
    i8 tombstone = 0;
    i8 wrong = 0;  ///< its bytes are not those that its maker has committed
    auto operator<=>(const copy&) const = default;
};
struct reentry_state {
    /// by ring and frame; `taken` of ring 0 are the source's numbers, of ring 1 the middle's leases of ring 0
    std::array<std::array<copy, most_frames>, rings> made{};
    std::array<std::array<lease_is, most_frames>, rings> taken{};
    std::array<lease_is, most_frames> sink{};
    std::array<i8, rings> tail{};
    std::array<copy, most_frames> states{};
    i8 states_tail = 0;
    i8 first = 0;  ///< the first frame of the block
    i8 delivered = 0, rebuilds = 0;
    i8 wrong = 0, repeated = 0, lost = 0, reused = 0, excess = 0;
    i8 written = 0;  ///< frames that the program at the source has committed
    auto operator<=>(const reentry_state&) const = default;
};

class reentry_search {
public:
    explicit reentry_search(const reentry_setup& c) : c_(c) {}

    reentry_result run() {
        std::deque<reentry_state> open{reentry_state{}};
        seen_.emplace(open.front(), std::pair{open.front(), std::string()});
        while (!open.empty() && result_.sound()) {
            const reentry_state s = open.front();
            open.pop_front();
            next_.clear();
            for (int k = 0; k < rings; ++k) maker_steps(s, k);
            sink_steps(s);
            for (int k = 0; k < rings; ++k) sweep(s, k);
            if (c_.state) sweep_states(s);
            const std::size_t steps = next_.size();
            if (s.rebuilds < c_.rebuilds) rebuilds(s);
            for (std::size_t n = 0; n < next_.size(); ++n) {
                const auto& [what, t] = next_[n];
                if (n < steps) into_[t].push_back(s);  // liveness needs no rebuild
                if (!seen_.emplace(t, std::pair{s, what}).second) continue;
                open.push_back(t);
                result_.wrong = t.wrong != 0;
                result_.repeated = t.repeated != 0;
                result_.lost = t.lost != 0;
                result_.reused = t.reused != 0;
                result_.excess = t.excess != 0;
                if (result_.sound()) continue;
                report(t);
                break;
            }
        }
        if (result_.sound()) find_stuck();
        result_.states = seen_.size();
        return result_;
    }

private:
    template <typename F>
    void add(const reentry_state& s, const std::string& what, F by) {
        reentry_state t = s;
        by(t);
        next_.emplace_back(what, t);
    }
    [[nodiscard]] static std::string name(const char* what, int ring, int n) {
        return std::string(what) + "(" + std::to_string(ring) + "," + std::to_string(n) + ")";
    }
    [[nodiscard]] lease_is reader(const reentry_state& s, int ring, int n) const {
        return ring + 1 < rings ? s.taken[ring + 1][n] : s.sink[n];
    }

    // The stage that fills ring k. A stage may finish its two jobs in any order.
    void maker_steps(const reentry_state& s, int k) {
        int chosen = 0;
        while (chosen < c_.frames &&
               (s.taken[k][chosen] != lease_is::wait || (k > 0 && chosen < s.tail[k - 1])))
            ++chosen;
        const auto in_progress = std::count(s.taken[k].begin(), s.taken[k].end(), lease_is::leased);
        const auto most = k == 0 && c_.made_once ? 1 : 2;  // a program has one frame at a time
        if (chosen < c_.frames && in_progress < most && chosen < s.tail[k] + window &&
            (k == 0 || s.made[k - 1][chosen].at == copy_is::ready) && (k != middle || can_begin(s, chosen)))
            add(s, name("lease", k, chosen), [&](reentry_state& t) {
                t.taken[k][chosen] = lease_is::leased;
                if (k > 0 && t.made[k - 1][chosen].wrong != 0) t.wrong = 1;
                if (t.made[k][chosen].at != copy_is::absent || chosen < t.tail[k]) t.repeated = 1;
                const bool tombstone = k > 0 && t.made[k - 1][chosen].tombstone != 0;
                t.made[k][chosen] = {copy_is::filling, tombstone ? i8{1} : i8{0}, 1};
                if (k != middle || !c_.state) return;
                t.states[chosen] = {copy_is::filling, 0, 1};
                const copy before = chosen > 0 ? t.states[chosen - 1] : copy{};
                const bool whole = before.wrong == 0 || before.at < copy_is::committed;
                if (chosen > 0 && (before.at == copy_is::absent || !whole)) t.wrong = 1;
            });
        for (int n = 0; n < c_.frames; ++n) {
            if (s.taken[k][n] != lease_is::leased) continue;
            copy_is next{};
            switch (s.made[k][n].at) {
                case copy_is::filling:
                    next = copy_is::whole;
                    break;
                case copy_is::whole:
                    next = copy_is::committed;
                    break;
                case copy_is::committed:
                    next = copy_is::ready;
                    break;
                default:  // READY, or freed already
                    if (k == middle && c_.state && s.states[n].at == copy_is::committed) {
                        add(s, name("ready", of_states, n),
                            [&](reentry_state& t) { t.states[n].at = copy_is::ready; });
                        continue;
                    }
                    add(s, name("done", k, n), [&](reentry_state& t) { t.taken[k][n] = lease_is::done; });
                    continue;
            }
            if (next == copy_is::committed && k == middle && !is_next(s, n)) continue;
            add(s, name("step", k, n), [&](reentry_state& t) {
                t.made[k][n].at = next;
                if (k == middle && c_.state && next != copy_is::ready)
                    t.states[n] = {next, 0, next == copy_is::committed ? i8{0} : i8{1}};
                if (next != copy_is::committed) return;
                t.made[k][n].wrong = 0;
                if (k != 0 || !c_.made_once) return;
                if (n < t.written) t.reused = 1;
                t.written = static_cast<i8>(std::max<int>(t.written, n + 1));
            });
        }
    }

    [[nodiscard]] bool can_begin(const reentry_state& s, int n) const {
        return !c_.state || n == s.first || (n > 0 && s.states[n - 1].at != copy_is::absent);
    }
    /// A stage with a state commits in order.
    [[nodiscard]] bool is_next(const reentry_state& s, int n) const {
        return !c_.state || n == 0 || s.taken[middle][n - 1] == lease_is::done;
    }
    void sweep_states(const reentry_state& s) {
        if (s.states_tail < c_.frames && s.states[s.states_tail].at == copy_is::ready)
            add(s, name("tail", of_states, s.states_tail), [&](reentry_state& t) { ++t.states_tail; });
        for (int n = 0; n + 1 < s.states_tail; ++n)
            if (s.states[n].at == copy_is::ready)
                add(s, name("free", of_states, n), [&](reentry_state& t) { t.states[n] = {}; });
    }

    void sink_steps(const reentry_state& s) {
        constexpr int in = rings - 1;
        for (int n = s.tail[in]; n < c_.frames; ++n) {
            if (s.made[in][n].at != copy_is::ready) return;
            if (s.sink[n] == lease_is::done) continue;
            if (s.sink[n] == lease_is::wait)
                add(s, name("lease", rings, n), [&](reentry_state& t) {
                    t.sink[n] = lease_is::leased;
                    if (t.made[in][n].wrong != 0) t.wrong = 1;
                });
            else
                add(s, name("deliver", rings, n), [&](reentry_state& t) {
                    t.sink[n] = lease_is::done;
                    if (n < t.delivered) t.repeated = 1;
                    if (n > t.delivered) t.lost = 1;
                    t.delivered = static_cast<i8>(n + 1);
                });
            return;
        }
    }

    void sweep(const reentry_state& s, int k) {
        const int at = s.tail[k];
        if (at < c_.frames && s.made[k][at].at == copy_is::ready && reader(s, k, at) == lease_is::done)
            add(s, name("tail", k, at), [&](reentry_state& t) { ++t.tail[k]; });
        for (int n = 0; n < at; ++n)
            if (s.made[k][n].at == copy_is::ready)
                add(s, name("free", k, n), [&](reentry_state& t) { t.made[k][n] = {}; });
    }

    void rebuilds(const reentry_state& s) {
        add(s, "rebuild", [&](reentry_state& t) { rebuild(t, -1, 0); });
        for (int k = 0; k < rings; ++k)
            for (int n = 0; n < c_.frames; ++n)
                if (s.made[k][n].at != copy_is::absent)
                    add(s, name("rebuild-without", k, n), [&](reentry_state& t) { rebuild(t, k, n); });
    }

    static copy& copy_of(reentry_state& s, int ring, int n) {
        return ring == of_states ? s.states[n] : s.made[ring][n];
    }

    // Without tails, leases and numbers of the old words: these may be the damage.
    void rebuild(reentry_state& t, int bad_ring, int bad_frame) {
        ++t.rebuilds;
        // R2 for the program, which the rebuild does not end: what it has committed becomes READY
        if (c_.made_once)
            for (int n = 0; n < c_.frames; ++n)
                if (t.made[0][n].at == copy_is::committed) t.made[0][n].at = copy_is::ready;
        if (bad_ring >= 0) copy_of(t, bad_ring, bad_frame).wrong = 1;
        const auto enters = [&](int k, int n) {
            const copy_is at = copy_of(t, k, n).at;
            if (at != copy_is::ready && (c_.ready_slots_only || at != copy_is::whole)) return false;
            return !c_.proof || k != bad_ring || n != bad_frame;
        };
        // lost: written, and neither here nor in the ring before
        const auto is_lost = [&](int k, int n) {
            if (!c_.made_once || !c_.keeps_place || n >= t.written || enters(k, n)) return false;
            return k == 0 || !enters(k - 1, n) || t.written > n + window;
        };
        // done[k]: the frames below are done in the stage that fills ring k; done[rings]: delivered
        std::array<int, rings + 1> done{};
        done.fill(c_.frames);
        done[rings] = t.delivered;
        for (int k = rings - 1; k >= 0; --k) {
            int n = done[k + 1];
            while (n < std::min(c_.frames, done[k + 1] + window) && (enters(k, n) || is_lost(k, n))) ++n;
            // A stage with a state falls to the newest state that is proved; the sink may get frames again.
            if (k == middle && c_.state && c_.state_proved)
                while (n > 0 && !enters(of_states, n - 1)) --n;
            done[k] = n;
            done[k + 1] = std::min(done[k + 1], n);
        }
        t.delivered = static_cast<i8>(std::min<int>(t.delivered, done[rings]));
        if (c_.state) {
            t.first = t.delivered;
            t.states_tail = static_cast<i8>(done[middle]);
            for (int n = 0; n < c_.frames; ++n)
                if (n + 1 == done[middle] && c_.state_enters && enters(of_states, n))
                    t.states[n].at = copy_is::ready;
                else
                    t.states[n] = {};
        }
        u64 entered = 0;
        for (int k = 0; k < rings; ++k) {
            const int tail = c_.slowest_reader ? done[k + 1] : done[k];
            for (int n = 0; n < c_.frames; ++n) {
                const bool kept =
                    enters(k, n) && n >= tail && n < tail + window && (n < done[k] || !c_.without_gaps);
                const bool lost = !kept && n >= tail && n < done[k] && is_lost(k, n);
                if (lost && bad_ring < 0) t.excess = 1;
                const i8 tombstone = lost || (kept && t.made[k][n].tombstone != 0) ? i8{1} : i8{0};
                t.made[k][n].at = kept || lost ? copy_is::ready : copy_is::absent;
                t.made[k][n].tombstone = tombstone;
                if (!kept) t.made[k][n].wrong = 0;
                entered += kept ? 1 : 0;
                const bool over = n < done[k] && (k > 0 || c_.numbers_done || n < done[k + 1]);
                t.taken[k][n] = over ? lease_is::done : lease_is::wait;
            }
            t.tail[k] = static_cast<i8>(tail);
        }
        for (int n = 0; n < c_.frames; ++n) t.sink[n] = n < t.delivered ? lease_is::done : lease_is::wait;
        result_.entered = std::max(result_.entered, entered);
    }

    void find_stuck() {
        std::map<reentry_state, bool> good;
        std::vector<reentry_state> stack;
        for (const auto& [s, from] : seen_)
            if (s.delivered == c_.frames) good[s] = true, stack.push_back(s);
        while (!stack.empty()) {
            const reentry_state s = stack.back();
            stack.pop_back();
            for (const reentry_state& before : into_[s])
                if (!std::exchange(good[before], true)) stack.push_back(before);
        }
        for (const auto& [s, from] : seen_) {
            if (good[s]) continue;
            result_.stuck = true;
            return report(s);
        }
    }

    void report(const reentry_state& s) {
        for (const reentry_state* at = &s; !seen_.at(*at).second.empty(); at = &seen_.at(*at).first)
            result_.trace.push_back(seen_.at(*at).second);
        std::reverse(result_.trace.begin(), result_.trace.end());
    }

    reentry_setup c_;
    std::map<reentry_state, std::pair<reentry_state, std::string>> seen_;
    std::map<reentry_state, std::vector<reentry_state>> into_;
    std::vector<std::pair<std::string, reentry_state>> next_;
    reentry_result result_;
};

}  // namespace

reentry_result explore_reentry(const reentry_setup& s) { return reentry_search(s).run(); }

}  // namespace carousel::model
