#include "checkpoint_model.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <map>

namespace carousel::model {
namespace {

constexpr int max_frames = 7, every = 2, stages = 2, numbers = 4;  // numbers 0, 2, 4 and 6; 0 needs no file
constexpr int window = 2;

enum class file_is : i8 { absent, partial, whole };
struct file {
    file_is at = file_is::absent;
    i8 tombstone = 0;  ///< the state is that after a tombstone
    auto operator<=>(const file&) const = default;
};
struct checkpoint_state {
    std::array<i8, stages> done{};                               ///< frames that the stage has committed
    std::array<std::array<i8, max_frames>, stages> tombstone{};  ///< how the frame was committed
    std::array<i8, stages> copied{};  ///< the number whose state is still to be written
    std::array<std::array<file, numbers>, stages> files{};
    i8 listed = 0, to_remove = 0, delivered = 0, passed = 0, released = 0, losses = 0, deaths = 0,
       rebuilds = 0, wrong = 0, lost = 0;
    auto operator<=>(const checkpoint_state&) const = default;
};

class checkpoint_search {
public:
    explicit checkpoint_search(const checkpoint_setup& c) : c_(c) {}

    checkpoint_result run() {
        std::deque<checkpoint_state> open{checkpoint_state{}};
        seen_.emplace(open.front(), std::pair{open.front(), std::string()});
        while (!open.empty() && result_.sound()) {
            const checkpoint_state s = open.front();
            open.pop_front();
            next_.clear();
            for (int k = 0; k < stages; ++k) stage_steps(s, k);
            sink_and_supervisor(s);
            // nothing is left to do, and the sink lacks a frame
            if (next_.empty() && s.delivered < c_.frames) result_.stuck = true;
            if (s.losses < c_.losses && s.passed < c_.frames)
                add(s, "lose", [&](checkpoint_state& t) { lose(t); });
            if (s.rebuilds < c_.rebuilds && s.passed < c_.frames)
                add(s, "rebuild", [&](checkpoint_state& t) { rebuild(t); });
            for (const auto& [what, t] : next_) {
                if (!seen_.emplace(t, std::pair{s, what}).second) continue;
                open.push_back(t);
                result_.wrong = result_.wrong || t.wrong != 0;
                result_.lost = result_.lost || t.lost != 0;
                if (result_.sound()) continue;
                for (const checkpoint_state* at = &t; !seen_.at(*at).second.empty();
                     at = &seen_.at(*at).first)
                    result_.trace.push_back(seen_.at(*at).second);
                std::reverse(result_.trace.begin(), result_.trace.end());
                break;
            }
        }
        result_.states = seen_.size();
        return result_;
    }

private:
    template <typename F>
    void add(const checkpoint_state& s, const std::string& what, F by) {
        checkpoint_state t = s;
        by(t);
        next_.emplace_back(what, t);
    }
    static std::string name(const char* what, int stage) {
        return std::string(what) + "(" + std::to_string(stage) + ")";
    }
    [[nodiscard]] bool is_due(int n) const { return (n + 1) % every == 0 && n + 1 <= c_.frames; }

    void stage_steps(const checkpoint_state& s, int k) {
        const int n = s.done[k];
        const int ahead = k + 1 < stages ? s.done[k + 1] : s.passed;
        const bool is_there =
            k > 0 ? n < s.done[k - 1] : c_.link_keeps == 0 || n < s.released + c_.link_keeps;
        const bool waits = c_.waits_for_file && is_due(n) && s.copied[k] != 0;
        if (n < c_.frames && is_there && n < ahead + window && !waits) {
            for (const i8 tombstone : {i8{0}, i8{1}}) {
                if (tombstone != 0 && (s.deaths != 1 || k != 0)) continue;
                add(s, name(tombstone != 0 ? "abandon" : "commit", k), [&](checkpoint_state& t) {
                    t.tombstone[k][n] = tombstone;
                    if (tombstone != 0) ++t.deaths;
                    if (is_due(n) && t.copied[k] == 0) t.copied[k] = static_cast<i8>(n + 1);
                    ++t.done[k];
                });
            }
            // The process has copied the state, and dies before the commit.
            if (s.deaths == 0 && k == 0)
                add(s, name("die", k), [&](checkpoint_state& t) {
                    ++t.deaths;
                    if (!c_.waits_for_file) t.copied[k] = 0;
                    if (is_due(n) && !c_.after_commit) t.files[k][(n + 1) / every] = {file_is::whole, 0};
                });
        }
        const int number = s.copied[k];
        if (number == 0) return;
        add(s, name("write", k), [&](checkpoint_state& t) {
            file& f = t.files[k][number / every];
            const bool first = f.at == file_is::absent && !c_.whole_files;
            f = {first ? file_is::partial : file_is::whole, t.tombstone[k][number - 1]};
            if (!first) t.copied[k] = 0;
        });
    }

    void sink_and_supervisor(const checkpoint_state& s) {
        if (s.passed < s.done[stages - 1])
            add(s, "deliver", [&](checkpoint_state& t) {
                if (t.passed > t.delivered) t.lost = 1;
                t.passed = static_cast<i8>(t.passed + 1);
                t.delivered = std::max(t.delivered, t.passed);
            });
        if (const i8 free = c_.release_listed ? s.listed : s.delivered;
            c_.link_keeps > 0 && s.released < free)
            add(s, "release", [&](checkpoint_state& t) { t.released = free; });
        for (int number = s.listed + every; number <= c_.frames; number += every) {
            int there = 0;
            for (int k = 0; k < stages; ++k)
                there += s.files[k][number / every].at != file_is::absent ? 1 : 0;
            if (there < (c_.all_stages ? stages : 1) || (c_.delivered && s.passed < number)) continue;
            if (s.to_remove != 0) continue;
            add(s, "list", [&](checkpoint_state& t) {
                t.to_remove = t.listed;
                if (c_.list_first) {
                    t.listed = static_cast<i8>(number);
                } else {
                    remove(t);
                    t.to_remove = static_cast<i8>(number);
                }
            });
        }
        if (s.to_remove != 0)
            add(s, "remove", [&](checkpoint_state& t) {
                if (c_.list_first)
                    remove(t);
                else
                    t.listed = t.to_remove;
                t.to_remove = 0;
            });
    }
    static void remove(checkpoint_state& t) {
        for (auto& of : t.files) of[t.to_remove / every] = {};
    }

    void rebuild(checkpoint_state& t) const {
        ++t.rebuilds;
        t.to_remove = 0;
        if (c_.keeps_files) return;
        for (int k = 0; k < stages; ++k)
            for (int number = t.listed + every; number < every * numbers; number += every) {
                file& f = t.files[k][number / every];
                // the newest state, which the stage writes again
                if (f.at == file_is::whole && number == t.done[k]) t.copied[k] = t.done[k];
                f = {};
            }
    }

    void lose(checkpoint_state& t) {
        const int from = t.listed;
        ++t.losses;
        if (from > t.delivered || from < t.released) t.lost = 1;
        for (int k = 0; k < stages; ++k) {
            const file& f = t.files[k][from / every];
            const bool right = f.at == file_is::whole && f.tombstone == t.tombstone[k][std::max(from - 1, 0)];
            if (from > 0 && !right) t.wrong = 1;
            t.done[k] = static_cast<i8>(from);
            t.copied[k] = 0;
        }
        t.passed = static_cast<i8>(from);
        t.to_remove = 0;
        for (auto& of : t.files)
            for (int number = from / every + 1; c_.begins_clean && number < numbers; ++number)
                of[number] = {};
        result_.restarts_from = std::max(result_.restarts_from, from);
    }

    checkpoint_setup c_;
    std::map<checkpoint_state, std::pair<checkpoint_state, std::string>> seen_;
    std::vector<std::pair<std::string, checkpoint_state>> next_;
    checkpoint_result result_;
};

}  // namespace

checkpoint_result explore_checkpoints(const checkpoint_setup& s) { return checkpoint_search(s).run(); }

}  // namespace carousel::model
