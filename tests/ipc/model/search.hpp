#pragma once
// Breadth first over all states of a model; then, backwards from the goals, the states from which no goal can
// be reached. A model's state is bytes only, so that states compare and hash as bytes.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "core/types.hpp"
#include "tests/support/state_set.hpp"

namespace carousel::ipc_model {

struct result {
    std::string broken;  ///< the rule that was broken; "" for none
    std::string why;     ///< the state in which it was
    u64 states = 0, steps = 0;
    double seconds = 0;
    std::vector<std::string> trace;  ///< shortest way there
};
inline constexpr const char* stuck = "somebody waits for ever";
inline constexpr const char* too_big = "the search has grown too large";

/// Takes the successors of one state.
template <class State>
class sink {
public:
    /// `actor`: the process, or `the_holder`. `works`: waiters may rely on this step. `broken`: the rule that
    /// the step breaks, or null.
    virtual void take(const State& next, const char* what, u8 actor, bool works, const char* broken) = 0;
    void work(const State& next, const char* what, u8 actor, const char* broken = nullptr) {
        take(next, what, actor, true, broken);
    }
    void fault(const State& next, const char* what, u8 actor) { take(next, what, actor, false, nullptr); }

protected:
    ~sink() = default;
};

/// What the search requires of a model:
///   state first()                          where it begins
///   void expand(state, sink<state>&)       all possible next states
///   const char* broken(state)              the rule that this state breaks, or null
///   bool done(state)                       no live process has anything left to do
///   const char* unsettled(state)           for such a state: what is lost or left over, or null
///   std::string text(state)
template <class Model>
class search final : sink<typename Model::state> {
    using state = typename Model::state;
    static_assert(std::is_trivially_copyable_v<state> && alignof(state) == 1,
                  "bytes only: nothing is padding");

public:
    explicit search(const Model& m, u64 max_states) : model_(m), max_states_(max_states) {}

    result run() {
        const auto started = std::chrono::steady_clock::now();
        forward();
        if (result_.broken.empty()) backward();
        result_.states = set_.size();
        result_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
        return std::move(result_);
    }

private:
    struct edge {
        u32 from, to;
    };
    /// A successor of the state at hand.
    struct successor {
        state next;
        u32 hash;
        bool works;
        const char* broken;
    };

    static const u8* bytes_of(const state& s) { return reinterpret_cast<const u8*>(&s); }
    [[nodiscard]] const state& at(u32 k) const { return *reinterpret_cast<const state*>(set_.at(k)); }

    void forward() {
        bool fresh = false;
        const state first = model_.first();
        set_.insert(bytes_of(first), set_.hash(bytes_of(first)), fresh);
        parent_.push_back(0);
        for (from_ = 0; from_ < set_.size() && result_.broken.empty(); ++from_) {
            const state now = at(from_);
            next_.clear();
            model_.expand(now, *this);
            for (const successor& s : next_) set_.expect_state(s.hash);
            for (std::size_t k = 0; k < next_.size() && result_.broken.empty(); ++k) enter(next_[k]);
            if (set_.size() > max_states_) fail(from_, too_big);
        }
    }

    // Kept until all of a state's successors are known: their look-ups wait for memory together.
    void take(const state& next, const char* what, u8 actor, bool works, const char* broken) override {
        if (wanted_ != nullptr) {  // a trace is printed
            if (step_text_.empty() && std::memcmp(&next, wanted_, sizeof next) == 0)
                step_text_ = fmt::format("{}:{}", actor == 0xFF ? "holder" : std::to_string(actor), what);
            return;
        }
        next_.push_back({next, set_.hash(bytes_of(next)), works, broken});
        set_.expect(next_.back().hash);
    }

    void enter(const successor& s) {
        ++result_.steps;
        bool fresh = false;
        const u32 k = set_.insert(bytes_of(s.next), s.hash, fresh);
        const char* broken = s.broken;
        if (fresh) {
            parent_.push_back(from_);
            if (broken == nullptr) broken = model_.broken(s.next);
            if (broken == nullptr && model_.done(s.next)) broken = model_.unsettled(s.next);
        }
        if (s.works && k != from_) edges_.push_back({from_, k});
        if (broken == nullptr) return;
        fail(from_, broken);
        report_step(at(from_), at(k));
        result_.why = model_.text(at(k));
    }

    void fail(u32 k, const char* rule) {
        result_.broken = rule;
        result_.why = model_.text(at(k));
        std::vector<u32> way{k};
        while (way.back() != 0) way.push_back(parent_[way.back()]);
        for (std::size_t n = way.size() - 1; n-- > 0;) report_step(at(way[n + 1]), at(way[n]));
    }
    void report_step(const state& from, const state& to) {
        wanted_ = &to;
        step_text_.clear();
        model_.expand(from, *this);
        wanted_ = nullptr;
        result_.trace.push_back(step_text_);
    }

    void backward() {
        const u32 n = set_.size();
        std::vector<u32> end(std::size_t{n} + 1, 0);
        for (const edge& e : edges_) ++end[e.to + 1];
        for (u32 k = 0; k < n; ++k) end[k + 1] += end[k];
        std::vector<u32> into(edges_.size());
        for (const edge& e : edges_) into[end[e.to]++] = e.from;  // end[k]: now where k's predecessors end
        std::vector<bool> good(n, false);
        std::vector<u32> open;
        for (u32 k = 0; k < n; ++k)
            if (model_.done(at(k))) good[k] = true, open.push_back(k);
        while (!open.empty()) {
            const u32 k = open.back();
            open.pop_back();
            for (u32 e = k == 0 ? 0 : end[k - 1]; e < end[k]; ++e)
                if (!good[into[e]]) good[into[e]] = true, open.push_back(into[e]);
        }
        // Where the way to a goal was lost; from the very first state on there may be none, then the last.
        u32 lost = n, last = n;
        for (u32 k = 0; k < n; ++k) {
            if (good[k]) continue;
            last = k;
            if (lost == n && good[parent_[k]]) lost = k;
        }
        if (last != n) fail(lost != n ? lost : last, stuck);
    }

    const Model& model_;
    u64 max_states_;
    test::state_set set_ = test::state_set(sizeof(state));
    std::vector<successor> next_;
    std::vector<u32> parent_;
    std::vector<edge> edges_;
    u32 from_ = 0;
    const state* wanted_ = nullptr;
    std::string step_text_;
    result result_;
};

}  // namespace carousel::ipc_model
