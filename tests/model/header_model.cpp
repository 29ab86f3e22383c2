#include "header_model.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <utility>

namespace carousel::model {
namespace {

/// A field is 0 if it is correct, otherwise what flips have made of it.
struct header {
    i8 own = 0, alone = 0;
    i8 sealed_own = 0, sealed_alone = 0, seal = 0;
    auto operator<=>(const header&) const = default;
    [[nodiscard]] bool is_sealed() const { return seal == 0 && own == sealed_own && alone == sealed_alone; }
    void close() { sealed_own = own, sealed_alone = alone, seal = 0; }
};
enum class slot_is : i8 { filling, submitted, committed, ready, done };
struct ring {
    header h{};
    slot_is at = slot_is::filling;
    auto operator<=>(const ring&) const = default;
};
enum class maker_at : i8 { idle, entered, sealed, carried, over };
enum class reader_at : i8 { idle, checked, leased, entered, compared, sealed, submitted, over };
enum class viewer_at : i8 { idle, leased, read, over };
struct header_state {
    ring made{}, read{};  ///< the maker's frame; the reader's own
    maker_at maker = maker_at::idle;
    reader_at reader = reader_at::idle;
    viewer_at viewer = viewer_at::idle;
    i8 reader_own = 0, reader_alone = 0;  ///< in the reader's own memory
    i8 viewer_own = 0, viewer_alone = 0;
    i8 flips = 0, deaths = 0;
    i8 ended = 0;  ///< how often a reader has ended because of a header
    bool wrong = false;
    auto operator<=>(const header_state&) const = default;
};

class header_search {
public:
    explicit header_search(const header_setup& c) : c_(c) {}

    header_result run() {
        std::deque<header_state> open{header_state{}};
        seen_.emplace(open.front(), std::pair{open.front(), std::string()});
        while (!open.empty() && result_.sound()) {
            const header_state s = open.front();
            open.pop_front();
            next_.clear();
            maker_steps(s);
            reader_steps(s);
            viewer_steps(s);
            faults(s);
            for (auto& [what, t] : next_) {
                into_[t].push_back(s);
                if (!seen_.emplace(t, std::pair{s, what}).second) continue;
                open.push_back(t);
                result_.wrong = t.wrong;
                result_.innocent = t.ended > t.flips;
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
    void add(const header_state& s, const char* what, F by) {
        header_state t = s;
        by(t);
        next_.emplace_back(what, t);
    }

    // Checks the committed header: fields that only the header contains have their sealed values.
    static void judge(header_state& t, i8 own, i8 alone) {
        t.wrong = t.wrong || own != 0 || alone != t.made.h.sealed_alone;
    }

    void maker_steps(const header_state& s) {
        switch (s.maker) {
            case maker_at::idle:
                add(s, "maker-enters", [](header_state& t) {
                    t.made.h.own = t.made.h.alone = 0;
                    t.maker = maker_at::entered;
                });
                break;
            case maker_at::entered:
                add(s, "maker-seals", [&](header_state& t) {
                    if (c_.enter_again) t.made.h.own = 0;
                    t.made.h.close();
                    t.wrong = t.wrong || t.made.h.own != 0;
                    t.maker = maker_at::sealed;
                });
                break;
            case maker_at::sealed:
                if (s.made.at == slot_is::filling)
                    add(s, "maker-submits", [](header_state& t) { t.made.at = slot_is::submitted; });
                else if (c_.owner_commits)
                    add(s, "maker-carries", [&](header_state& t) {
                        t.maker = maker_at::carried;
                        if (c_.carry_checks_seal && !t.made.h.is_sealed()) return;
                        t.made.h.alone = 0;
                        t.made.h.close();
                        t.wrong = t.wrong || t.made.h.own != 0;
                    });
                else
                    add(s, "maker-commits", [](header_state& t) { commit(t); });
                break;
            case maker_at::carried:
                add(s, "maker-commits", [](header_state& t) { commit(t); });
                break;
            case maker_at::over:
                break;
        }
        // The supervisor's step, if the maker died after COMMITTED.
        if (s.made.at == slot_is::committed)
            add(s, "ready", [](header_state& t) { t.made.at = slot_is::ready; });
    }
    static void commit(header_state& t) {
        t.made.at = slot_is::committed;
        t.maker = maker_at::over;
    }

    void reader_steps(const header_state& s) {
        const header& in = s.made.h;
        const auto ends = [](header_state& t) {
            ++t.ended;
            put_back(t);
        };
        switch (s.reader) {
            case reader_at::idle:
                if (s.made.at == slot_is::ready && (!c_.check_seal || in.is_sealed()))
                    add(s, "reader-looks", [](header_state& t) { t.reader = reader_at::checked; });
                break;
            case reader_at::checked:
                add(s, "reader-leases", [](header_state& t) { t.reader = reader_at::leased; });
                break;
            case reader_at::leased:
                add(s, "reader-uses", [](header_state& t) {
                    t.reader_own = t.read.h.own = t.made.h.own;
                    t.reader_alone = t.read.h.alone = t.made.h.alone;
                    t.reader = reader_at::entered;
                });
                break;
            case reader_at::entered:
                // The reader's process() may read the metadata at any time.
                if (s.reader_alone == in.sealed_alone && in.alone != in.sealed_alone)
                    add(s, "reader-looks-at-metadata",
                        [](header_state& t) { t.reader_alone = t.made.h.alone; });
                if (c_.again && !in.is_sealed())
                    add(s, "reader-ends", ends);
                else
                    add(s, "reader-compares", [](header_state& t) { t.reader = reader_at::compared; });
                break;
            case reader_at::compared:
                add(s, "reader-seals", [&](header_state& t) {
                    if (c_.enter_again) t.read.h.own = t.reader_own;
                    t.read.h.close();
                    t.wrong = t.wrong || t.read.h.own != t.reader_own;
                    t.reader = reader_at::sealed;
                });
                break;
            case reader_at::sealed:
                add(s, "reader-submits", [](header_state& t) {
                    judge(t, t.reader_own, t.reader_alone);
                    t.reader = reader_at::submitted;
                });
                break;
            case reader_at::submitted:
                add(s, "reader-commits", [](header_state& t) {
                    t.read.at = slot_is::committed;
                    t.made.at = slot_is::done;
                    t.reader = reader_at::over;
                });
                break;
            case reader_at::over:
                break;
        }
    }
    static void put_back(header_state& t) {
        t.reader = reader_at::idle;
        t.reader_own = t.reader_alone = 0;
        t.read = {};
    }

    void viewer_steps(const header_state& s) {
        const auto abandons = [](header_state& t) { t.viewer = viewer_at::over; };
        switch (s.viewer) {
            case viewer_at::idle:
                if (s.made.at != slot_is::ready) break;
                if (!s.made.h.is_sealed())  // which saves it the read
                    add(s, "viewer-throws-away", abandons);
                else
                    add(s, "viewer-leases", [](header_state& t) { t.viewer = viewer_at::leased; });
                break;
            case viewer_at::leased:
                add(s, "viewer-reads", [](header_state& t) {
                    t.viewer_own = t.made.h.own;
                    t.viewer_alone = t.made.h.alone;
                    t.viewer = viewer_at::read;
                });
                break;
            case viewer_at::read:
                if (c_.viewer_again && !s.made.h.is_sealed())
                    add(s, "viewer-throws-away", abandons);
                else
                    add(s, "viewer-shows", [](header_state& t) {
                        judge(t, t.viewer_own, t.viewer_alone);
                        t.viewer = viewer_at::over;
                    });
                break;
            case viewer_at::over:
                break;
        }
    }

    void faults(const header_state& s) {
        const auto flip = [&](const char* what, auto&& at) {
            if (s.flips >= c_.flips) return;
            add(s, what, [&](header_state& t) {
                at(t) =
                    static_cast<i8>(at(t) ^ (1 << s.flips));  // a different bit each time: none flips back
                ++t.flips;
            });
        };
        flip("flip-own", [](header_state& t) -> i8& { return t.made.h.own; });
        flip("flip-alone", [](header_state& t) -> i8& { return t.made.h.alone; });
        flip("flip-seal", [](header_state& t) -> i8& { return t.made.h.seal; });
        flip("flip-reader's-own", [](header_state& t) -> i8& { return t.read.h.own; });
        // R2: what is not COMMITTED is aborted and made again, in another slot.
        if (s.deaths < c_.deaths && s.maker != maker_at::over)
            add(s, "maker-dies", [](header_state& t) {
                t.made = {};
                t.maker = maker_at::idle;
                ++t.deaths;
            });
        if (s.deaths < c_.deaths && s.reader != reader_at::over)
            add(s, "reader-dies", [](header_state& t) {
                put_back(t);
                ++t.deaths;
            });
        // The audit checks READY slots. A frame that has not been delivered is made again with the block.
        if (c_.audit && s.made.at == slot_is::ready && !s.made.h.is_sealed())
            add(s, "block-made-anew", [](header_state& t) {
                t.made = {};
                t.maker = maker_at::idle;
                t.viewer = viewer_at::idle;
                put_back(t);
            });
    }

    // The frame must be deliverable from each state.
    void find_stuck() {
        std::map<header_state, bool> good;
        std::vector<header_state> stack;
        for (const auto& [s, from] : seen_)
            if (s.reader == reader_at::over) good[s] = true, stack.push_back(s);
        while (!stack.empty()) {
            const header_state s = stack.back();
            stack.pop_back();
            for (const header_state& before : into_[s])
                if (!std::exchange(good[before], true)) stack.push_back(before);
        }
        for (const auto& [s, from] : seen_) {
            if (good[s]) continue;
            result_.stuck = true;
            return report(s);
        }
    }

    void report(const header_state& s) {
        for (const header_state* at = &s; !seen_.at(*at).second.empty(); at = &seen_.at(*at).first)
            result_.trace.push_back(seen_.at(*at).second);
        std::reverse(result_.trace.begin(), result_.trace.end());
    }

    header_setup c_;
    std::map<header_state, std::pair<header_state, std::string>> seen_;
    std::map<header_state, std::vector<header_state>> into_;
    std::vector<std::pair<std::string, header_state>> next_;
    header_result result_;
};

}  // namespace

header_result explore_header(const header_setup& s) { return header_search(s).run(); }

}  // namespace carousel::model
