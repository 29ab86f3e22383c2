#pragma once
// A space in one process, in a folder of the test's own.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "core/clock.hpp"
#include "ipc/holder.hpp"
#include "tests/support/scratch_folder.hpp"

namespace carousel::test {

using ipc::holder;
using ipc::memory_when;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct scene {
    scratch_folder folder;
    scene() { ::setenv("XDG_RUNTIME_DIR", folder.path.c_str(), 1); }
};

/// A holder on its own thread; its end is like a death for its clients.
class held_space {
public:
    explicit held_space(const std::string& name, u64 bytes = u64{4} << 20U,
                        memory_when when = memory_when::at_once)
        : holder_(name, bytes, when) {
        thread_ = std::thread([this] {
            while (!ends_) holder_.run_once(5);
        });
    }
    ~held_space() {
        ends_ = true;
        thread_.join();
    }
    [[nodiscard]] holder& of() { return holder_; }

private:
    holder holder_;
    std::atomic<bool> ends_{false};
    std::thread thread_;
};

template <class Fn>
std::string refusal_of(Fn fn) {
    try {
        fn();
    } catch (const std::exception& e) {
        return e.what();
    }
    return "";
}

template <class Condition>
bool soon(Condition c) {
    for (const u64 until = now_ns() + 20 * ns_per_s; now_ns() < until;
         std::this_thread::sleep_for(milliseconds(2)))
        if (c()) return true;
    return false;
}

}  // namespace carousel::test
