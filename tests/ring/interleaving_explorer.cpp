#include "interleaving_explorer.hpp"

#include <ucontext.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <random>
#include <stdexcept>
#include <utility>

#include "core/errors.hpp"

namespace carousel::test {
namespace {

constexpr u32 no_process = ~0U;
constexpr u64 stack_bytes = 256U << 10U;
constexpr u64 most_accesses = 20'000;  ///< per order; more of them mean that no process makes progress

constexpr u8 elsewhere = 0xF0;  ///< a word that is not in the scenario's memory

struct choice {
    u32 taken, options;
};

class explorer {
public:
    explicit explorer(const explored_scenario& s) : scenario_(&s), fibers_(s.processes.size()) {
        CAROUSEL_ASSERT(fibers_.size() <= 4);
        const std::byte* end = s.memory.front().data();
        base_ = end;
        for (const auto& range : s.memory) {
            base_ = std::min(base_, range.data());
            end = std::max(end, range.data() + range.size());
        }
        used_.resize(static_cast<u64>(end - base_) / 8, elsewhere);
        for (const auto& range : s.memory)
            std::memset(&used_[static_cast<u64>(range.data() - base_) / 8], 0, range.size() / 8);
        for (fiber& f : fibers_) f.stack = std::make_unique<std::byte[]>(stack_bytes);
    }

    explored depth_first(u32 preemptions, u64 most) {
        preemptions_ = preemptions;
        while (result_.orders < most) {
            if (!visit()) return result_;
            if (std::exchange(found_shared_, false)) {
                path_.clear();  // there are more words to switch at, so the orders are enumerated again
                continue;
            }
            while (!path_.empty() && path_.back().taken + 1 == path_.back().options) path_.pop_back();
            if (path_.empty()) {
                result_.complete = true;
                return result_;
            }
            ++path_.back().taken;
        }
        return result_;
    }

    explored at_random(u64 seed, u64 orders) {
        preemptions_ = ~0U;
        random_ = true;
        dice_.seed(seed);
        while (result_.orders < orders && visit()) path_.clear();
        return result_;
    }

    void access(const void* at, bool writes) {
        if (!is_watched(at)) return;
        u8& used = used_[word_of(at)];
        const auto before = used;
        used |= static_cast<u8>((writes ? 0x11U : 1U) << now_);
        if (used != before && is_shared(used) && !is_shared(before)) {
            ++result_.shared_words;
            found_shared_ = true;
        }
        if (!is_shared(used)) return;
        ++order_.back().second;
        if (++accesses_ > most_accesses) {
            unsound("no process makes progress");
            leave();
        }
        switch_to(choose(true));
    }
    void changed(const void* at) {
        if (is_watched(at)) ++changes_[now_];
    }

    [[nodiscard]] u64 changes_by_others() const { return changes_by_others(now_); }
    void await_change(u64 seen) {
        fiber& f = fibers_[now_];
        f.waits = true;
        f.seen = seen;
        switch_to(choose(false));
        f.waits = false;
    }
    void end(u32 process) { fibers_[process].ended = true; }
    void unsound(std::string what) {
        if (finding_.empty()) finding_ = std::move(what);
    }

private:
    struct fiber {
        std::unique_ptr<std::byte[]> stack;
        ucontext_t context{};
        bool ended = false, waits = false;
        u64 seen = 0;
    };

    [[nodiscard]] u64 word_of(const void* at) const {
        return static_cast<u64>(static_cast<const std::byte*>(at) - base_) / 8;
    }
    [[nodiscard]] bool is_watched(const void* at) const {
        return now_ != no_process && word_of(at) < used_.size() && used_[word_of(at)] != elsewhere;
    }
    // The high half has the processes that may write the word, the low half those that access it.
    static bool is_shared(u8 used) { return used >> 4U != 0 && (used & (used - 1U) & 0xFU) != 0; }

    [[nodiscard]] u64 changes_by_others(u32 process) const {
        u64 sum = 0;
        for (u32 k = 0; k < fibers_.size(); ++k)
            if (k != process) sum += changes_[k];
        return sum;
    }
    [[nodiscard]] bool can_run(u32 k) const {
        const fiber& f = fibers_[k];
        return !f.ended && (!f.waits || changes_by_others(k) != f.seen);
    }

    // Option 0 is the present process, if it can continue: depth-first search begins without preemptions.
    u32 choose(bool continues) {
        u32 options[4], count = 0;
        if (continues) options[count++] = now_;
        if (!continues || preemptions_used_ < preemptions_)
            for (u32 k = 0; k < fibers_.size(); ++k)
                if (k != now_ && can_run(k)) options[count++] = k;
        if (count == 0) return no_process;
        u32 taken = 0;
        if (count > 1) {
            if (at_ == path_.size()) {
                if (random_ && (!continues || dice_() % 4 == 0)) taken = static_cast<u32>(dice_() % count);
                path_.push_back({taken, count});
            }
            // A replayed order meets the same options; otherwise a process depends on more than the words.
            if (path_[at_].options != count) throw_not_deterministic();
            taken = path_[at_++].taken;
        }
        if (continues && taken != 0) ++preemptions_used_;
        return options[taken];
    }
    [[noreturn]] static void throw_not_deterministic() {
        throw std::logic_error("the scenario is not deterministic: a replayed order met other options");
    }

    void switch_to(u32 next) {
        if (next == now_) return;
        if (next == no_process) leave();
        const u32 from = std::exchange(now_, next);
        order_.emplace_back(next, 0);
        ::swapcontext(&fibers_[from].context, &fibers_[next].context);
    }
    void leave() {
        const u32 from = std::exchange(now_, no_process);
        ::swapcontext(&fibers_[from].context, &outside_);
    }

    static void enter(u32 low, u32 high) {
        auto* self = reinterpret_cast<explorer*>(u64{high} << 32U | low);
        try {
            self->scenario_->processes[self->now_]();
        } catch (const std::exception& e) {
            self->unsound(std::string("an exception: ") + e.what());
        }
        self->fibers_[self->now_].ended = true;
        const u32 next = self->choose(false);
        self->switch_to(next);
    }

    // Returns false if the order is unsound.
    bool visit() {
        scenario_->reset();
        finding_.clear();
        order_.clear();
        accesses_ = at_ = 0;
        preemptions_used_ = 0;
        const auto self = reinterpret_cast<u64>(this);
        for (u32 k = 0; k < fibers_.size(); ++k) {
            fiber& f = fibers_[k];
            f.ended = f.waits = false;
            changes_[k] = 0;
            ::getcontext(&f.context);
            f.context.uc_stack.ss_sp = f.stack.get();
            f.context.uc_stack.ss_size = stack_bytes;
            f.context.uc_link = &outside_;
            ::makecontext(&f.context, reinterpret_cast<void (*)()>(&explorer::enter), 2,
                          static_cast<u32>(self), static_cast<u32>(self >> 32U));
        }
        now_ = choose(false);  // the first process may be any
        order_.emplace_back(now_, 0);
        ::swapcontext(&outside_, &fibers_[now_].context);
        now_ = no_process;
        ++result_.orders;
        result_.longest = std::max(result_.longest, accesses_);
        if (const std::string judged = scenario_->judge(); !judged.empty()) unsound(judged);
        if (finding_.empty()) return true;
        result_.finding = finding_ + " (accesses to shared words in order:";
        for (const auto& [process, count] : order_)
            result_.finding.append(" ")
                .append(1, static_cast<char>('A' + process))
                .append(std::to_string(count));
        result_.finding.append(")");
        return false;
    }

    const explored_scenario* scenario_;
    const std::byte* base_ = nullptr;
    std::vector<u8> used_;  ///< per word from base_ on, over all orders
    std::vector<fiber> fibers_;
    ucontext_t outside_{};
    u32 now_ = no_process, preemptions_ = 0, preemptions_used_ = 0;
    std::vector<choice> path_;
    std::size_t at_ = 0;
    bool random_ = false, found_shared_ = false;
    u64 accesses_ = 0, changes_[4] = {};
    std::mt19937_64 dice_;
    std::vector<std::pair<u32, u64>> order_;  ///< which process, and its accesses until it was switched
    std::string finding_;
    explored result_;
};

explorer* present = nullptr;

/// Makes the explorer the one that the accesses of this thread reach.
struct while_present {
    explicit while_present(explorer& e) { present = &e; }
    ~while_present() { present = nullptr; }
    while_present(const while_present&) = delete;
    while_present& operator=(const while_present&) = delete;
};

}  // namespace

std::string explored::text() const {
    return std::to_string(orders) + " orders" + (complete ? " (all)" : "") + ", " +
           std::to_string(shared_words) + " shared words, up to " + std::to_string(longest) + " accesses" +
           (finding.empty() ? "" : ": " + finding);
}

explored explore(const explored_scenario& scenario, u32 preemptions, u64 most_orders) {
    explorer e(scenario);
    const while_present here(e);
    return e.depth_first(preemptions, most_orders);
}

explored explore_at_random(const explored_scenario& scenario, u64 seed, u64 orders) {
    explorer e(scenario);
    const while_present here(e);
    return e.at_random(seed, orders);
}

u64 changes_by_others() { return present->changes_by_others(); }
void await_change(u64 seen) { present->await_change(seen); }
void end_process(u32 process) { present->end(process); }
void report_unsound(std::string what) { present->unsound(std::move(what)); }

void explored_access(const void* at, bool writes) {
    if (present != nullptr) present->access(at, writes);
}
void explored_change(const void* at) {
    if (present != nullptr) present->changed(at);
}

}  // namespace carousel::test
