// The steps of a receiving stage before it reports to its sender that frames are on disk. sync(2) is this
// program's own function here: it records the call.
#include "stages/hosts/durable_watch.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/errors.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;

std::mutex mutex;
std::vector<std::string> seen;  ///< guarded by mutex

void note(const std::string& what) {
    const std::lock_guard lock(mutex);
    seen.push_back(what);
}

/// A watch over sinks that have delivered up to `answers`, one after the other; the last one again and again.
std::vector<std::string> seen_of(std::vector<u64> answers, bool sync, bool wanted = true) {
    {
        const std::lock_guard lock(mutex);
        seen.clear();
    }
    std::atomic<std::size_t> asked{0}, polled{0};
    {
        const hosts::durable_watch watch({[&] {
                                              ++polled;
                                              return wanted;
                                          },
                                          [&] {
                                              const u64 below =
                                                  answers[std::min(asked++, answers.size() - 1)];
                                              note("read " + std::to_string(below));
                                              return below;
                                          },
                                          [](u64 below) { note("told " + std::to_string(below)); }, sync});
        const std::size_t enough = wanted ? answers.size() + 1 : 2;
        for (int k = 0; k < 2000 && (wanted ? asked : polled) < enough; ++k)
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    const std::lock_guard lock(mutex);
    while (seen.size() > 1 && seen.back() == seen[seen.size() - 2]) seen.pop_back();
    return seen;
}

}  // namespace

extern "C" void sync() noexcept { note("sync"); }

TEST_CASE("sinks' data is synced between the poll of their ledgers and the word to the sender") {
    CHECK(seen_of({3, 3, 5}, true) == std::vector<std::string>{"read 3", "sync", "told 3", "read 3", "read 5",
                                                               "sync", "told 5", "read 5"});
}

TEST_CASE("only a stage that requested a sync, and has something to report, pays for it") {
    CHECK(seen_of({3, 5}, false) ==
          std::vector<std::string>{"read 3", "told 3", "read 5", "told 5", "read 5"});
    CHECK(seen_of({0}, true) == std::vector<std::string>{"read 0"});
    CHECK(seen_of({3}, true, false).empty());
}
