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
    /// `who`: the process, or `the_holder`. `works`: those who wait may rely on this step to come. `broken`:
    /// the rule that the step breaks, or null.
    virtual void take(const State& next, const char* what, u8 who, bool works, const char* broken) = 0;
    void work(const State& next, const char* what, u8 who, const char* broken = nullptr) {
        take(next, what, who, true, broken);
    }
    void fault(const State& next, const char* what, u8 who) { take(next, what, who, false, nullptr); }

protected:
    ~sink() = default;
};

/// Packed states by number, and the number of a packed state.
template <class State>
class state_set {
    static_assert(std::is_trivially_copyable_v<State> && alignof(State) == 1,
                  "bytes only: nothing is padding");

public:
    [[nodiscard]] const State& operator[](u32 k) const { return chunks_[k / chunk][k % chunk]; }
    [[nodiscard]] u32 size() const { return size_; }
    u32 insert(const State& s, bool& fresh) {
        std::size_t h = hash(s) & (table_.size() - 1);
        for (; table_[h] != empty; h = (h + 1) & (table_.size() - 1)) {
            if (std::memcmp(&(*this)[table_[h]], &s, sizeof s) != 0) continue;
            fresh = false;
            return table_[h];
        }
        fresh = true;
        if (size_ % chunk == 0) chunks_.push_back(std::make_unique_for_overwrite<State[]>(chunk));
        chunks_.back()[size_ % chunk] = s;
        table_[h] = size_++;
        if (u64{size_} * 8 > table_.size() * 5) grow();
        return size_ - 1;
    }

private:
    static constexpr u32 empty = ~0U, chunk = 1U << 14U;
    static u64 hash(const State& s) {
        const auto* p = reinterpret_cast<const u8*>(&s);
        u64 h = 0x243F6A8885A308D3ULL;
        for (std::size_t k = 0; k < sizeof s; k += 8) {
            u64 v = 0;
            std::memcpy(&v, p + k, std::min<std::size_t>(8, sizeof s - k));
            h = (h ^ v) * 0x9E3779B97F4A7C15ULL;
            h ^= h >> 29U;
        }
        return h ^ (h >> 32U);
    }
    void grow() {
        std::vector<u32> bigger(table_.size() * 2, empty);
        for (u32 k = 0; k < size_; ++k) {
            std::size_t h = hash((*this)[k]) & (bigger.size() - 1);
            while (bigger[h] != empty) h = (h + 1) & (bigger.size() - 1);
            bigger[h] = k;
        }
        table_.swap(bigger);
    }

    std::vector<std::unique_ptr<State[]>> chunks_;
    std::vector<u32> table_ = std::vector<u32>(std::size_t{1} << 14U, empty);
    u32 size_ = 0;
};

/// What the search asks of a model:
///   state first()                          where it begins
///   void expand(state, sink<state>&)       all that may come next
///   const char* broken(state)              the rule that this state breaks, or null
///   bool done(state)                       nobody who lives has anything left to do
///   const char* unsettled(state)           of such a state: what is lost or left over, or null
///   std::string text(state)
template <class Model>
class search final : sink<typename Model::state> {
    using state = typename Model::state;

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

    void forward() {
        bool fresh = false;
        set_.insert(model_.first(), fresh);
        parent_.push_back(0);
        for (from_ = 0; from_ < set_.size() && result_.broken.empty(); ++from_) {
            const state now = set_[from_];
            model_.expand(now, *this);
            if (set_.size() > max_states_) fail(from_, too_big);
        }
    }

    void take(const state& next, const char* what, u8 who, bool works, const char* broken) override {
        if (wanted_ != nullptr) {  // a trace is told
            if (said_.empty() && std::memcmp(&next, wanted_, sizeof next) == 0)
                said_ = fmt::format("{}:{}", who == 0xFF ? "holder" : std::to_string(who), what);
            return;
        }
        if (!result_.broken.empty()) return;
        ++result_.steps;
        bool fresh = false;
        const u32 k = set_.insert(next, fresh);
        if (fresh) {
            parent_.push_back(from_);
            if (broken == nullptr) broken = model_.broken(next);
            if (broken == nullptr && model_.done(next)) broken = model_.unsettled(next);
        }
        if (works && k != from_) edges_.push_back({from_, k});
        if (broken == nullptr) return;
        fail(from_, broken);
        tell(set_[from_], set_[k]);
        result_.why = model_.text(set_[k]);
    }

    void fail(u32 k, const char* rule) {
        result_.broken = rule;
        result_.why = model_.text(set_[k]);
        std::vector<u32> way{k};
        while (way.back() != 0) way.push_back(parent_[way.back()]);
        for (std::size_t n = way.size() - 1; n-- > 0;) tell(set_[way[n + 1]], set_[way[n]]);
    }
    void tell(const state& from, const state& to) {
        wanted_ = &to;
        said_.clear();
        model_.expand(from, *this);
        wanted_ = nullptr;
        result_.trace.push_back(said_);
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
            if (model_.done(set_[k])) good[k] = true, open.push_back(k);
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
    state_set<state> set_;
    std::vector<u32> parent_;
    std::vector<edge> edges_;
    u32 from_ = 0;
    const state* wanted_ = nullptr;
    std::string said_;
    result result_;
};

}  // namespace carousel::ipc_model
