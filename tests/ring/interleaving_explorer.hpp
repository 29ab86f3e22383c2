#pragma once
// Runs several processes of a scenario as fibers of one thread, and enumerates the order of their accesses to
// shared words. The code under test is the ring's own code: it is compiled with -fsanitize=thread, so the
// compiler puts a call before each atomic access, and interleaving_explorer.cpp answers these calls instead
// of the sanitizer's library. No source of the ring knows of it.
//
// A process may be switched before each atomic access to a word that at least two processes of the scenario
// access and one of them writes. explore() visits each order with at most `preemptions` switches away from a
// process that could continue (depth first, by replay); explore_at_random() visits seeded orders without that
// limit. A process that is switched away from and then ended by end_process() has crashed at that access. So
// a scenario with a retirement contains a crash before each access, followed by the recovery.
//
// Limit: the orders are sequentially consistent. Effects of weaker memory orders are left to the tsan preset.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::test {

struct explored_scenario {
    std::function<void()> reset;                   ///< restores the initial state; called before each order
    std::vector<std::function<void()>> processes;  ///< at most 4
    /// Called after each order; returns what is wrong, or "". Its accesses are not interleaved.
    std::function<std::string()> judge;
    std::vector<std::span<const std::byte>> memory;  ///< the words in it may be shared
};

struct explored {
    u64 orders = 0;
    u64 shared_words = 0;   ///< words at which processes were switched
    u64 longest = 0;        ///< accesses to shared words in the longest order
    bool complete = false;  ///< all orders with at most that many preemptions were visited
    std::string finding;  ///< of the first unsound order, the last one that was visited; "" if all are sound
    [[nodiscard]] std::string text() const;
};

[[nodiscard]] explored explore(const explored_scenario& scenario, u32 preemptions, u64 most_orders);
[[nodiscard]] explored explore_at_random(const explored_scenario& scenario, u64 seed, u64 orders);

// Called by the processes of a scenario:

/// Counts the changes that other processes have made to the memory of the scenario.
[[nodiscard]] u64 changes_by_others();
/// Returns after another process has made a change after the first `seen`; if none does, never returns.
void await_change(u64 seen);
/// The process takes no further step, as after SIGKILL.
void end_process(u32 process);
/// Records a finding about the present order.
void report_unsound(std::string what);

}  // namespace carousel::test
