#include "state_model.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "world_graph.hpp"

namespace carousel::model {
namespace {

constexpr int most_frames = 5, most_slots = 5, most_jobs = 2, incarnations = 2;
constexpr i8 none = -1, torn = 0x40;  // `torn` is in no content of a whole state

enum class slot_is : i8 { free, fill, ready, quarantined };
struct slot {
    slot_is word = slot_is::free;
    i8 number = none;  ///< in the header
    i8 content = 0;    ///< a bit for each frame
    i8 status = none;  ///< the number in the status word, if that is READY
    i8 epoch = 0;      ///< in the header: of the incarnation that made it, or of the rebuild that took it
    i8 before_epoch = none;  ///< in the header: that of the state from which this one is computed
    i8 status_epoch = none;
    i8 tombstone = 0;  ///< in the header
};
enum class job_is : i8 { idle, leased, filled, submitted, committed, ready, aborted };
enum class work_is : i8 { none, writes, done };
struct job {
    job_is at = job_is::idle;
    work_is work = work_is::none;
    i8 finished = 0;
    i8 number = none, place = none, before = none;
};
enum class process_is : i8 { absent, live, dead, revoked, fenced };
struct frame {
    i8 holder = none;  ///< incarnation with the lease
    i8 done = 0, attempts = 0;
    i8 tombstone = 0;  ///< below the tail, as it was delivered
};
struct world {
    std::array<slot, most_slots> slots{};
    std::array<std::array<job, most_jobs>, incarnations> jobs{};
    std::array<process_is, incarnations> process{process_is::live, process_is::absent};
    std::array<frame, most_frames> frames{};
    std::array<i8, incarnations> epoch{1, none};
    i8 last_epoch = 1, delivered_epoch = none;
    i8 tail = 0, deaths = 0, rebuilds = 0;
};

class search {
public:
    explicit search(const state_setup& c) : c_(c) {}

    state_result run() {
        graph_.add(world{}, graph_.none, "");
        for (std::size_t at = 0; at < graph_.size() && result_.sound(); ++at) {
            from_ = at;
            steps(graph_.at(at));
        }
        const auto ended = [this](const world& w) { return w.tail == c_.frames; };
        const std::size_t stuck = result_.sound() ? graph_.stuck(ended) : graph_.none;
        if (stuck != graph_.none) {
            result_.stuck = true;
            result_.trace = graph_.trace(stuck);
        }
        result_.states = graph_.size();
        return result_;
    }

private:
    template <typename F>
    void add(const world& w, const std::string& what, F by) {
        world t = w;
        by(t);
        if (t.rebuilds == c_.rebuilds)  // what a free slot contains is read only by a rebuild
            for (slot& each : t.slots)
                if (each.word == slot_is::free) each = {};
        graph_.add(t, from_, what);
        if (result_.sound() || !result_.trace.empty()) return;
        result_.trace = graph_.trace(from_);
        result_.trace.push_back(what);
    }

    // ------------------------------------------------------------------ what the words hold

    [[nodiscard]] bool is_ready(const world& w, int n) const { return ready_slot(w, n) != none; }
    [[nodiscard]] i8 ready_slot(const world& w, int n) const {
        for (int k = 0; k < c_.slots; ++k)
            if (w.slots[idx(k)].word == slot_is::ready && w.slots[idx(k)].number == n)
                return static_cast<i8>(k);
        return none;
    }
    static std::size_t idx(int k) { return static_cast<std::size_t>(k); }
    [[nodiscard]] const job* job_of(const world& w, int i, int n) const {
        for (int k = 0; k < c_.in_flight; ++k) {
            const job& j = w.jobs[idx(i)][idx(k)];
            if (j.number == n && j.at != job_is::idle && j.at != job_is::aborted) return &j;
        }
        return nullptr;
    }
    /// What state n contains in a run without faults, given the frames that were delivered as tombstones.
    [[nodiscard]] static i8 expected(const world& w, int n) {
        i8 all = 0;
        for (int k = 0; k <= n; ++k)
            if (w.frames[idx(k)].tombstone == 0) all = static_cast<i8>(all | 1 << k);
        return all;
    }

    // ------------------------------------------------------------------ the steps

    void steps(const world& w) {
        for (int i = 0; i < incarnations; ++i) {
            if (w.process[idx(i)] == process_is::live) {
                begin(w, i);
                if (w.deaths < c_.deaths)
                    add(w, fmt::format("{} dies", i), [&](world& t) {
                        t.process[idx(i)] = process_is::dead;
                        ++t.deaths;
                    });
            }
            const bool device_works =
                w.process[idx(i)] != process_is::absent && w.process[idx(i)] != process_is::fenced;
            for (int k = 0; k < c_.in_flight; ++k) {
                if (w.process[idx(i)] == process_is::live) host(w, i, k);
                if (device_works) device(w, i, k);
                if (!c_.owner_commits && w.process[idx(i)] <= process_is::dead)
                    commit(w, i, k, "helper commits");
            }
            recover(w, i);
        }
        sweep(w);
        rebuild(w);
    }

    void begin(const world& w, int i) {
        const auto free_job = std::find_if(w.jobs[idx(i)].begin(), w.jobs[idx(i)].begin() + c_.in_flight,
                                           [](const job& j) { return j.at == job_is::idle; });
        if (free_job == w.jobs[idx(i)].begin() + c_.in_flight) return;
        const auto k = free_job - w.jobs[idx(i)].begin();
        for (i8 n = w.tail; n < c_.frames; ++n) {
            const frame& f = w.frames[idx(n)];
            if (f.done != 0) continue;
            if (f.holder != none) {
                if (f.holder == i || !c_.begins_in_order) continue;
                return;  // the predecessor holds it: the frames after it wait
            }
            const bool in_order =
                n == 0 || w.frames[idx(n - 1)].done != 0 || w.frames[idx(n - 1)].holder == i;
            if (!in_order && c_.begins_in_order) return;
            add(w, fmt::format("{} leases {}", i, n), [&](world& t) {
                t.frames[idx(n)].holder = static_cast<i8>(i);
                t.jobs[idx(i)][idx(static_cast<int>(k))] = {job_is::leased, work_is::none, 0, n, none, none};
            });
            return;
        }
    }

    void host(const world& w, int i, int k) {
        const job& j = w.jobs[idx(i)][idx(k)];
        const auto go = [&](const char* what, auto by) {
            add(w, fmt::format("{} {} {}", i, what, j.number),
                [&](world& t) { by(t, t.jobs[idx(i)][idx(k)]); });
        };
        if (j.at == job_is::leased) {
            for (int s = 0; s < c_.slots; ++s) {
                if (w.slots[idx(s)].word != slot_is::free) continue;
                go("fills", [&](world& t, job& me) {
                    me.at = job_is::filled;
                    me.place = static_cast<i8>(s);
                    // The header is stored before SUBMITTED; content and status stay until the device writes.
                    t.slots[idx(s)].word = slot_is::fill;
                    t.slots[idx(s)].number = j.number;
                    t.slots[idx(s)].epoch = w.epoch[idx(i)];
                    t.slots[idx(s)].tombstone = w.frames[idx(j.number)].tombstone;
                });
                break;  // slots are alike
            }
        } else if (j.at == job_is::filled) {
            const job* const same = job_of(w, i, j.number - 1);
            const i8 before = j.number == 0     ? none
                              : same != nullptr ? same->place
                                                : ready_slot(w, j.number - 1);
            if (j.number != 0 && before == none) {
                if (same == nullptr) result_.lost = true;
                if (same != nullptr) return;  // it is leased, and its slot not yet known
            }
            go("submits", [&](world& t, job& me) {
                me.at = job_is::submitted;
                me.before = before;
                t.slots[idx(j.place)].before_epoch = before == none ? none : w.slots[idx(before)].epoch;
            });
        } else if (j.at == job_is::submitted) {
            if (!c_.writes_in_process && j.work == work_is::done && j.finished == 0)
                go("finishes", [&](world& t, job& me) {
                    me.finished = 1;
                    t.slots[idx(j.place)].content = result_of(w, j);
                });
            const bool first = std::none_of(w.jobs[idx(i)].begin(), w.jobs[idx(i)].end(), [&](const job& o) {
                return o.at != job_is::idle && o.at < job_is::committed && o.number < j.number;
            });
            if (first || !c_.commits_in_order) commit(w, i, k, "commits");
        } else if (j.at == job_is::committed || j.at == job_is::ready) {
            complete(w, i, k);
        }
    }

    void commit(const world& w, int i, int k, const char* what) {
        const job& j = w.jobs[idx(i)][idx(k)];
        if (j.at != job_is::submitted || j.work != work_is::done) return;
        if (!c_.writes_in_process && j.finished == 0) return;
        add(w, fmt::format("{} {} {}", i, what, j.number),
            [&](world& t) { t.jobs[idx(i)][idx(k)].at = job_is::committed; });
    }

    void complete(const world& w, int i, int k) {
        const job& j = w.jobs[idx(i)][idx(k)];
        add(w, fmt::format("{} completes {}", i, j.number), [&](world& t) {
            job& me = t.jobs[idx(i)][idx(k)];
            if (j.at == job_is::committed) {
                t.slots[idx(j.place)].word = slot_is::ready;
                me.at = job_is::ready;
            } else {
                t.frames[idx(j.number)].done = 1;
                t.frames[idx(j.number)].holder = none;
                me = {};
            }
        });
    }

    [[nodiscard]] i8 result_of(const world& w, const job& j) const {
        i8 before = 0;
        if (j.before != none) {
            const slot& b = w.slots[idx(j.before)];
            before = b.number == j.number - 1 ? b.content : torn;
        }
        if (w.slots[idx(j.place)].tombstone != 0) return c_.copies_at_tombstone ? before : i8{0};
        return static_cast<i8>(before | 1 << j.number);
    }

    void device(const world& w, int i, int k) {
        const job& j = w.jobs[idx(i)][idx(k)];
        const bool enqueued =
            j.at == job_is::submitted || (j.at == job_is::aborted && j.before != none) ||
            (j.at == job_is::aborted && j.number == 0 && j.place != none && j.work != work_is::none);
        if (!enqueued) return;
        if (j.work == work_is::none) {
            for (const job& o : w.jobs[idx(i)])
                if (c_.waits_for_previous && o.place != none && o.number == j.number - 1 &&
                    o.place == j.before && o.at != job_is::idle && o.work != work_is::done)
                    return;
            add(w, fmt::format("{}'s device begins {}", i, j.number), [&](world& t) {
                t.jobs[idx(i)][idx(k)].work = work_is::writes;
                t.slots[idx(j.place)].status = none;
                t.slots[idx(j.place)].content = torn;
            });
        } else if (j.work == work_is::writes) {
            add(w, fmt::format("{}'s device ends {}", i, j.number), [&](world& t) {
                t.jobs[idx(i)][idx(k)].work = work_is::done;
                t.slots[idx(j.place)].status = j.number;
                t.slots[idx(j.place)].status_epoch = w.epoch[idx(i)];
                if (c_.writes_in_process) t.slots[idx(j.place)].content = result_of(w, j);
            });
        }
    }

    // Each change of a word is a step, so that a supervisor that dies between two of them is covered: the
    // next one continues from the words.
    void recover(const world& w, int i) {
        const process_is p = w.process[idx(i)];
        const int other = 1 - i;
        if (p == process_is::dead) {
            for (int k = 0; k < c_.in_flight; ++k) {
                const job& j = w.jobs[idx(i)][idx(k)];
                if (j.at == job_is::committed || j.at == job_is::ready) return complete(w, i, k);
                if (j.at != job_is::idle && j.at != job_is::aborted)
                    return add(w, fmt::format("R2 aborts {} of {}", j.number, i),
                               [&](world& t) { t.jobs[idx(i)][idx(k)].at = job_is::aborted; });
            }
            add(w, fmt::format("{} is revoked", i), [&](world& t) {
                t.process[idx(i)] = process_is::revoked;
                if (t.process[idx(other)] == process_is::absent) start(t, other);
            });
        } else if (p == process_is::revoked || p == process_is::fenced) {
            bool tagged = false;
            for (int k = 0; k < c_.in_flight; ++k) {
                const job& j = w.jobs[idx(i)][idx(k)];
                if (j.at != job_is::aborted) continue;
                tagged = true;
                if (j.place != none && w.slots[idx(j.place)].word == slot_is::fill &&
                    w.slots[idx(j.place)].number == j.number && owns(w, i, k))
                    return add(w, fmt::format("R4 quarantines the slot of {}", j.number),
                               [&](world& t) { t.slots[idx(j.place)].word = slot_is::quarantined; });
                if (w.frames[idx(j.number)].holder == i)
                    return add(w, fmt::format("R4 requeues {}", j.number), [&](world& t) {
                        frame& f = t.frames[idx(j.number)];
                        f.holder = none;
                        f.attempts = 1;
                        if (c_.tombstone && w.frames[idx(j.number)].attempts != 0) f.tombstone = 1;
                    });
                if (p == process_is::fenced || !c_.frees_after_fence)
                    add(w, fmt::format("R5 frees the slot of {}", j.number), [&](world& t) {
                        if (j.place != none && t.slots[idx(j.place)].word == slot_is::quarantined)
                            t.slots[idx(j.place)].word = slot_is::free;
                        if (p == process_is::fenced)
                            t.jobs[idx(i)][idx(k)] = {};
                        else
                            t.jobs[idx(i)][idx(k)].at = job_is::aborted;
                    });
            }
            if (p == process_is::revoked)
                add(w, fmt::format("{} is fenced", i),
                    [&](world& t) { t.process[idx(i)] = process_is::fenced; });
            else if (!tagged)
                add(w, fmt::format("{} is forgotten", i), [&](world& t) {
                    t.process[idx(i)] = process_is::absent;
                    if (t.process[idx(other)] != process_is::live) start(t, i);
                });
        }
    }

    static void start(world& t, int i) {
        t.process[idx(i)] = process_is::live;
        t.epoch[idx(i)] = ++t.last_epoch;
    }

    /// The slot's tag names this job (no other job of either incarnation fills it).
    [[nodiscard]] bool owns(const world& w, int i, int k) const {
        for (int o = 0; o < incarnations; ++o)
            for (int m = 0; m < c_.in_flight; ++m) {
                const job& j = w.jobs[idx(o)][idx(m)];
                if ((o != i || m != k) && j.at != job_is::idle && j.at != job_is::aborted &&
                    j.place == w.jobs[idx(i)][idx(k)].place)
                    return false;
            }
        return true;
    }

    void sweep(const world& w) {
        if (const i8 at = w.tail < c_.frames ? ready_slot(w, w.tail) : none; at != none)
            add(w, fmt::format("{} is delivered", w.tail), [&](world& t) {
                t.frames[idx(w.tail)].tombstone = w.slots[idx(at)].tombstone;
                t.delivered_epoch = w.slots[idx(at)].epoch;
                result_.wrong = result_.wrong || w.slots[idx(at)].content != expected(t, w.tail);
                ++t.tail;
            });
        for (int k = 0; k < c_.slots; ++k) {
            const slot& s = w.slots[idx(k)];
            if (s.word != slot_is::ready || s.number >= w.tail) continue;
            bool newer = false;
            for (int n = s.number + 1; n < c_.frames; ++n) newer = newer || is_ready(w, n);
            const bool kept = c_.keeps_at_tail ? s.number == w.tail - 1 : c_.keeps_newest && !newer;
            if (!kept)
                add(w, fmt::format("{} is freed", s.number),
                    [&](world& t) { t.slots[idx(k)].word = slot_is::free; });
        }
    }

    // All processes are gone, with their device work. The words are made again from the headers and the
    // status words in memory, and from the ledger, which has the tail and the epoch of the last state that
    // was delivered.
    void rebuild(const world& w) {
        if (w.rebuilds == c_.rebuilds) return;
        rebuild_without(w, none);
        for (int k = 0; c_.damage && k < c_.slots; ++k)
            if (w.slots[idx(k)].number >= w.tail - 1) rebuild_without(w, k);
    }

    void rebuild_without(const world& w, int damaged) {
        world seen = w;
        if (damaged != none) seen.slots[idx(damaged)].number = none;
        std::vector<i8> taken;  // places, from the state below the tail on
        i8 before = w.tail == 0 || !c_.takes_delivered ? none : w.delivered_epoch;
        for (int n = w.tail - 1; n < c_.frames; ++n) {
            if (n < 0 || (n < w.tail && !c_.takes_below_tail)) continue;
            const bool below = n < w.tail;
            const auto found = [&](const world& in) {
                return proven(in, n, below ? none : before, below && c_.takes_delivered ? before : none);
            };
            const i8 at = found(seen);
            if (at == none && below && damaged != none && found(w) == damaged)
                return;  // that state is damaged itself: the newest checkpoint is for that
            if (at == none && below) result_.lost = true;
            if (at == none && n >= w.tail && c_.takes_unbroken) break;
            if (at == none) continue;
            taken.push_back(at);
            before = seen.slots[idx(at)].epoch;
        }
        add(w, damaged == none ? "rebuild" : fmt::format("rebuild without {}", w.slots[idx(damaged)].number),
            [&](world& t) {
                t.slots = seen.slots;
                ++t.rebuilds;
                t.jobs = {};
                t.process = {process_is::absent, process_is::absent};
                const i8 epoch = ++t.last_epoch;
                start(t, 0);
                for (slot& s : t.slots) s.word = slot_is::free;
                for (int n = w.tail; n < c_.frames; ++n) t.frames[idx(n)] = {};  // attempts are in no header
                for (const i8 at : taken) {
                    slot& s = t.slots[idx(at)];
                    s.word = slot_is::ready;
                    s.epoch = s.status_epoch = s.before_epoch = epoch;
                    t.frames[idx(s.number)].done = 1;
                }
                if (t.tail > 0) t.delivered_epoch = epoch;
            });
    }

    /// The slot with a whole state n, computed from a state of `before` and made in `made` (`none`: any).
    [[nodiscard]] i8 proven(const world& w, int n, i8 before, i8 made) const {
        i8 best = none;
        for (int k = 0; k < c_.slots; ++k) {
            const slot& s = w.slots[idx(k)];
            if (s.number != n || (c_.checks_status && s.status != n) ||
                (c_.checks_status_epoch && s.status_epoch != s.epoch) || (made != none && s.epoch != made) ||
                (c_.takes_chain && before != none && s.before_epoch != before))
                continue;
            if (best == none || s.epoch > w.slots[idx(best)].epoch) best = static_cast<i8>(k);
        }
        return best;
    }

    const state_setup c_;
    state_result result_;
    world_graph<world> graph_;
    std::size_t from_ = 0;
};

}  // namespace

state_result explore_states(const state_setup& s) { return search(s).run(); }

}  // namespace carousel::model
