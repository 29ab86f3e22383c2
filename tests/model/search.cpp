#include "search.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>

#include "tests/support/state_set.hpp"

namespace carousel::model {
namespace {

/// A vector that grows without copying its elements.
template <typename T>
class chunked {
public:
    void push_back(T v) {
        if (size_ % chunk == 0) chunks_.push_back(std::make_unique_for_overwrite<T[]>(chunk));
        chunks_.back()[size_++ % chunk] = v;
    }
    T operator[](size_t i) const { return chunks_[i / chunk][i % chunk]; }
    [[nodiscard]] size_t size() const { return size_; }

private:
    static constexpr size_t chunk = size_t{1} << 18U;
    std::vector<std::unique_ptr<T[]>> chunks_;
    size_t size_ = 0;
};

constexpr u32 target_bits = 28;  // an edge is {actor:4, target:28}

class search final : successors {
public:
    explicit search(const setup& s) : setup_(s), layout_(s), set_(layout_.size()), moves_(s, *this) {}

    result run(u64 max_states) {
        const auto started = std::chrono::steady_clock::now();
        forward(std::min<u64>(max_states, 1U << target_bits));
        if (result_.found == failure::holds) liveness();
        result_.states = set_.size();
        result_.steps = edges_.size();
        result_.bytes = set_.memory() + edges_.size() * 2 * sizeof(u32) + u64{set_.size()} * 16;
        result_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
        return std::move(result_);
    }

private:
    /// A successor of the current state.
    struct successor {
        u32 hash;
        actor acting;
        label how;
        failure broken;
        std::string why;
    };

    void forward(u64 max_states) {
        bool fresh = false;
        packed_.resize(layout_.size() + 8);
        layout_.pack(initial_state(setup_), packed_.data());
        set_.insert(packed_.data(), set_.hash(packed_.data()), fresh);
        parent_.push_back(0);
        label_.push_back({action::start});
        state now;
        for (from_ = 0; from_ < set_.size() && result_.found == failure::holds; ++from_) {
            first_edge_.push_back(static_cast<u32>(edges_.size()));
            layout_.unpack(set_.at(from_), now);
            next_.clear();
            moves_.expand(now);
            for (const successor& s : next_) set_.expect_state(s.hash);
            for (size_t k = 0; k < next_.size() && result_.found == failure::holds; ++k)
                enter(next_[k], packed_.data() + k * layout_.size());
            if (set_.size() > max_states) result_.found = failure::too_big;
        }
        first_edge_.push_back(static_cast<u32>(edges_.size()));
    }

    // Kept until all of a state's successors are known: their look-ups then wait for memory together.
    void take(const state& s, label l, actor acting, failure f, const std::string& why) override {
        const size_t at = next_.size() * layout_.size();
        if (packed_.size() < at + layout_.size() + 8) packed_.resize(2 * (at + layout_.size() + 8));
        layout_.pack(s, packed_.data() + at);
        next_.push_back({set_.hash(packed_.data() + at), acting, l, f, why});
        set_.expect(next_.back().hash);
    }

    void enter(const successor& s, const u8* packed) {
        bool fresh = false;
        const u32 k = set_.insert(packed, s.hash, fresh);
        if (fresh) {
            parent_.push_back(from_);
            label_.push_back(s.how);
        }
        if (s.broken != failure::holds) {
            result_.found = s.broken;
            result_.why = s.why;
            result_.trace = trace(from_);
            result_.trace.push_back(to_text(s.how));
            return;
        }
        if (k != from_) edges_.push_back(static_cast<u32>(s.acting) << target_bits | k);
    }

    [[nodiscard]] std::vector<std::string> trace(u32 k) const {
        std::vector<std::string> out;
        for (; k != 0; k = parent_[k]) out.push_back(to_text(label_[k]));
        std::reverse(out.begin(), out.end());
        return out;
    }

    using goal_test = bool (*)(const setup&, const state&);

    // Returns false if some state can't reach the goal by steps of `allowed`; the first such state is
    // reported.
    bool reaches(goal_test goal, actors allowed, failure otherwise) {
        const u32 n = set_.size();
        const auto step_ok = [&](u32 e) { return (allowed >> (e >> target_bits) & 1U) != 0; };
        constexpr u32 target_mask = (1U << target_bits) - 1;
        std::vector<u32> head(size_t{n} + 1, 0);
        for (size_t e = 0; e < edges_.size(); ++e)
            if (step_ok(edges_[e])) ++head[(edges_[e] & target_mask) + 1];
        for (u32 k = 0; k < n; ++k) head[k + 1] += head[k];
        std::vector<u32> into(head[n]);
        for (u32 k = 0; k < n; ++k)
            for (u32 e = first_edge_[k]; e < first_edge_[k + 1]; ++e)
                if (step_ok(edges_[e])) into[head[edges_[e] & target_mask]++] = k;
        // head[k] is now the end of k's predecessors, hence head[k-1] their begin.
        std::vector<bool> good(n, false);
        std::vector<u32> stack;
        state s;
        for (u32 k = 0; k < n; ++k) {
            layout_.unpack(set_.at(k), s);
            if (!goal(setup_, s)) continue;
            good[k] = true;
            stack.push_back(k);
        }
        while (!stack.empty()) {
            const u32 k = stack.back();
            stack.pop_back();
            for (u32 e = k == 0 ? 0 : head[k - 1]; e < head[k]; ++e) {
                if (good[into[e]]) continue;
                good[into[e]] = true;
                stack.push_back(into[e]);
            }
        }
        const auto bad = std::find(good.begin(), good.end(), false);
        if (bad == good.end()) return true;
        const auto k = static_cast<u32>(bad - good.begin());
        result_.found = otherwise;
        result_.trace = trace(k);
        layout_.unpack(set_.at(k), s);
        result_.why = describe(setup_, s);
        return false;
    }

    void liveness() {
        constexpr actors working = one(actor::live) | one(actor::supervisor) | one(actor::gpu) |
                                   one(actor::consumer) | one(actor::freer);
        constexpr actors all = working | one(actor::kill) | one(actor::viewer);
        if (!setup_.kills_never_complete && !reaches(clean, all, failure::stuck)) return;
        if (setup_.any_latest() && !reaches(delivered, working | one(actor::kill), failure::viewer_blocks))
            return;
        if (setup_.check_no_fence) reaches(delivered, working, failure::waits_for_fence);
    }

    const setup& setup_;
    layout layout_;
    test::state_set set_;
    std::vector<successor> next_;
    std::vector<u8> packed_;  ///< the packed states, with room after the last
    moves moves_;
    chunked<u32> parent_;
    chunked<label> label_;
    chunked<u32> edges_;
    chunked<u32> first_edge_;
    u32 from_ = 0;
    result result_;
};

}  // namespace

result explore(const setup& s, u64 max_states) {
    s.validate();
    return std::make_unique<search>(s)->run(max_states);
}

}  // namespace carousel::model
