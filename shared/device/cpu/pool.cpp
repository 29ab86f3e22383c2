#include "device/cpu/pool.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/errors.hpp"
#include "core/resource_limit.hpp"
#include "core/signal_stack.hpp"

namespace carousel::device::cpu {
namespace {

thread_local bool inside_loop = false;

struct loop_mark {
    loop_mark() { inside_loop = true; }
    ~loop_mark() { inside_loop = false; }
};

}  // namespace

// Only one loop runs at a time. Workers join and leave an open loop under the mutex, and the caller waits
// only for the workers that have joined. A worker that wakes up late finds the loop closed and sleeps again.
struct pool::state {
    std::mutex callers;  // several queues may share the pool; their loops take turns
    std::mutex mutex;
    std::condition_variable work, idle;
    u64 loop = 0;       // number of the latest loop
    bool open = false;  // true while workers may join the loop
    bool stop = false;
    unsigned joined = 0;  // workers inside the loop
    const std::function<void(u64, u64, unsigned)>* body = nullptr;
    u64 count = 0, grain = 1;
    std::atomic<u64> next{0};
    std::exception_ptr failure;
    std::vector<std::thread> threads;

    void run(unsigned worker) noexcept {
        const loop_mark mark;
        for (;;) {
            const u64 begin = next.fetch_add(grain, std::memory_order_relaxed);
            if (begin >= count) return;
            try {
                (*body)(begin, std::min(begin + grain, count), worker);
            } catch (...) {
                next.store(count, std::memory_order_relaxed);  // after this store, no worker starts another
                                                               // range
                const std::lock_guard lock(mutex);
                if (!failure) failure = std::current_exception();
                return;
            }
        }
    }

    void work_loop(unsigned worker) {
        name_this_thread(fmt::format("pool {}", worker).c_str());
        const signal_stack for_overflows;
        u64 seen = 0;
        std::unique_lock lock(mutex);
        for (;;) {
            work.wait(lock, [&] { return stop || (open && loop != seen); });
            if (stop) return;
            seen = loop;
            ++joined;
            lock.unlock();
            run(worker);
            lock.lock();
            if (--joined == 0) idle.notify_one();
        }
    }
};

pool::pool(unsigned threads) : state_(std::make_unique<state>()) {
    const unsigned wanted = std::min(threads != 0 ? threads : usable_cores(), 1024U);
    try {
        const signals_blocked quiet;
        for (unsigned i = 1; i < wanted; ++i)
            state_->threads.emplace_back([s = state_.get(), i] { s->work_loop(i); });
    } catch (const std::system_error& e) {
        const std::size_t made = state_->threads.size();
        {
            const std::lock_guard lock(state_->mutex);
            state_->stop = true;
        }
        state_->work.notify_all();
        for (auto& thread : state_->threads) thread.join();
        throw out_of_resources(fmt::format(
            "CPU backend: thread {} of {} could not be started: {}; or lower the number of threads", made + 2,
            wanted, no_thread_text(e.code().value())));
    }
}

pool::~pool() {
    {
        const std::lock_guard lock(state_->mutex);
        state_->stop = true;
    }
    state_->work.notify_all();
    for (auto& thread : state_->threads) thread.join();
}

unsigned pool::size() const noexcept { return static_cast<unsigned>(state_->threads.size()) + 1; }

void pool::parallel_for(u64 count, u64 grain, const std::function<void(u64, u64, unsigned)>& body) {
    CAROUSEL_ASSERT(grain > 0);
    CAROUSEL_ASSERT(!inside_loop);  // a loop that is started inside a loop would wait for itself
    if (count == 0) return;
    state& s = *state_;
    const std::lock_guard turn(s.callers);
    const u64 ranges = (count - 1) / grain + 1;
    {
        const std::lock_guard lock(s.mutex);
        s.body = &body;
        s.count = count;
        s.grain = grain;
        s.next.store(0, std::memory_order_relaxed);
        s.failure = nullptr;
        ++s.loop;
        s.open = ranges > 1 && !s.threads.empty();
    }
    if (s.open) {
        const u64 helpers = std::min<u64>(ranges - 1, s.threads.size());
        if (helpers == s.threads.size()) {
            s.work.notify_all();
        } else {
            for (u64 i = 0; i < helpers; ++i) s.work.notify_one();
        }
    }
    s.run(0);
    std::unique_lock lock(s.mutex);
    s.open = false;
    s.idle.wait(lock, [&] { return s.joined == 0; });
    s.body = nullptr;
    if (s.failure) std::rethrow_exception(std::exchange(s.failure, nullptr));
}

}  // namespace carousel::device::cpu
