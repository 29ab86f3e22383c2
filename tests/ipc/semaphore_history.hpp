#pragma once
#include "history.hpp"

namespace carousel::test {
/// Clients acquire, hold, release and give up; checks that nobody is overtaken and no permit is out twice.
/// `died_and_granted`: how often a waiter got a permit.
bool semaphore_history(history& h, u64 seed, u64& granted);
}  // namespace carousel::test
