// Measures each primitive between processes, and compares it with Boost's primitive and with the fastest
// equivalent between threads of one process.
#include <unistd.h>

#include <algorithm>
#include <boost/interprocess/ipc/message_queue.hpp>
#include <boost/interprocess/sync/interprocess_mutex.hpp>
#include <boost/interprocess/sync/interprocess_semaphore.hpp>
#include <boost/lockfree/queue.hpp>
#include <chrono>
#include <deque>
#include <mutex>
#include <semaphore>

#include "bench/ipc/run.hpp"
#include "bench/ipc/workers.hpp"
#include "bench/statistics.hpp"
#include "carousel/ipc.hpp"

namespace carousel::bench {
namespace {

namespace bi = boost::interprocess;
using std::chrono::seconds;
constexpr u64 block_bytes = 65536;
constexpr u32 queue_length = 1024;

/// State that a semaphore with one permit guards. Only the holder of the permit changes it, so the count
/// equals the number of operations.
struct guarded {
    u64 count = 0;
};

struct contender {
    const char *primitive, *by;
    bool processes;
    /// Called for each round.
    std::function<worker_setup()> make;
    /// Called after a round: verifies the transferred data.
    std::function<bool(u64 operations)> check;
};

/// Calls `one` repeatedly until `stop` is set.
template <class One>
worker_loop loop_of(One one) {
    return [one = std::move(one)](const std::atomic<u32>& stop) mutable {
        u64 n = 0;
        for (; stop.load(std::memory_order_relaxed) == 0; ++n) one();
        return n;
    };
}

// ---- semaphores

void add_semaphores(std::vector<contender>& all, const std::string& space) {
    const auto count = std::make_shared<shared_with_children<guarded>>();
    const auto fresh = [count] { (*count)->count = 0; };
    const auto right = [count](u64 operations) { return (*count)->count == operations; };
    all.push_back({"semaphore", "Carousel", true,
                   [=] {
                       fresh();
                       return [=](u32) {
                           auto turn =
                               std::make_shared<ipc::shared_semaphore>(ipc::open(space).semaphore("turn", 1));
                           return loop_of([turn, count] {
                               const auto held = turn->acquire(seconds(10));
                               ++(*count)->count;
                           });
                       };
                   },
                   right});
    struct boost_block {
        bi::interprocess_semaphore semaphore{1};
    };
    const auto boosts = std::make_shared<shared_with_children<boost_block>>();
    all.push_back({"semaphore", "Boost interprocess_semaphore", true,
                   [=] {
                       fresh();
                       return [=](u32) {
                           return loop_of([boosts, count] {
                               (*boosts)->semaphore.wait();
                               ++(*count)->count;
                               (*boosts)->semaphore.post();
                           });
                       };
                   },
                   right});
    const auto standard = std::make_shared<std::counting_semaphore<>>(1);
    all.push_back({"semaphore", "std::counting_semaphore", false,
                   [=] {
                       fresh();
                       return [=](u32) {
                           return loop_of([standard, count] {
                               standard->acquire();
                               ++(*count)->count;
                               standard->release();
                           });
                       };
                   },
                   right});
    const auto mutex = std::make_shared<std::mutex>();
    all.push_back({"semaphore", "std::mutex", false,
                   [=] {
                       fresh();
                       return [=](u32) {
                           return loop_of([mutex, count] {
                               const std::lock_guard lock(*mutex);
                               ++(*count)->count;
                           });
                       };
                   },
                   right});
}

// ---- queues: each worker alternately pushes and pops one element

/// The sum of all values that the workers have pushed, and the sum of all values that they have popped. The
/// two sums are equal when the queue is empty again.
struct sums {
    std::atomic<u64> pushed, popped;
};

/// A worker's loop: pushes values that contain the worker's number.
template <class Push, class Pop>
worker_loop queue_loop(u32 worker, const std::shared_ptr<shared_with_children<sums>>& all, Push push,
                       Pop pop) {
    return [=](const std::atomic<u32>& stop) mutable {
        u64 n = 0, pushed = 0, popped = 0;
        for (; stop.load(std::memory_order_relaxed) == 0; ++n) {
            const u64 value = (u64{worker} << 40U) + n;
            push(value), pushed += value;
            popped += pop();
        }
        (*all)->pushed.fetch_add(pushed), (*all)->popped.fetch_add(popped);
        return n;
    };
}

void add_queues(std::vector<contender>& all, const std::string& space, const std::string& name) {
    const auto total = std::make_shared<shared_with_children<sums>>();
    const auto fresh = [total] { (*total)->pushed = 0, (*total)->popped = 0; };
    const auto right = [total](u64) { return (*total)->pushed == (*total)->popped; };
    all.push_back({"queue", "Carousel", true,
                   [=] {
                       fresh();
                       return [=](u32 worker) {
                           auto q = std::make_shared<ipc::shared_queue<u64>>(
                               ipc::open(space).queue<u64>("queue", queue_length));
                           return queue_loop(
                               worker, total, [q](u64 v) { q->push(v, seconds(10)); },
                               [q] { return q->pop(seconds(10)); });
                       };
                   },
                   right});
    try {
        const bi::message_queue made(bi::create_only, name.c_str(), queue_length, sizeof(u64));
        all.push_back({"queue", "Boost message_queue", true,
                       [=] {
                           fresh();
                           return [=](u32 worker) {
                               auto q = std::make_shared<bi::message_queue>(bi::open_only, name.c_str());
                               return queue_loop(
                                   worker, total, [q](u64 v) { q->send(&v, sizeof v, 0); },
                                   [q] {
                                       u64 v = 0;
                                       bi::message_queue::size_type size = 0;
                                       unsigned priority = 0;
                                       q->receive(&v, sizeof v, size, priority);
                                       return v;
                                   });
                           };
                       },
                       right});
    } catch (const bi::interprocess_exception&) {
        // no /dev/shm: Boost's primitive is not measured
    }
    const auto lockfree =
        std::make_shared<boost::lockfree::queue<u64, boost::lockfree::capacity<queue_length>>>();
    all.push_back({"queue", "boost::lockfree::queue", false,
                   [=] {
                       fresh();
                       return [=](u32 worker) {
                           return queue_loop(
                               worker, total,
                               [q = lockfree](u64 v) {
                                   while (!q->push(v)) ::usleep(0);
                               },
                               [q = lockfree] {
                                   u64 v = 0;
                                   while (!q->pop(v)) ::usleep(0);
                                   return v;
                               });
                       };
                   },
                   right});
}

// ---- pools and work queues

void add_pools(std::vector<contender>& all, const std::string& space) {
    const auto wrong = std::make_shared<shared_with_children<std::atomic<u64>>>();
    const auto right = [wrong](u64) { return **wrong == 0; };
    all.push_back({"pool", "Carousel", true,
                   [=] {
                       return [=](u32 worker) {
                           auto pool = std::make_shared<ipc::shared_pool>(
                               ipc::open(space).pool("blocks", 64 * block_bytes, block_bytes));
                           return loop_of([pool, wrong, worker] {
                               const auto block = pool->acquire(block_bytes, seconds(10));
                               auto* mine = reinterpret_cast<volatile u32*>(block.data().data());
                               *mine = worker;  // no other worker has this block
                               if (*mine != worker) (*wrong)->fetch_add(1);
                           });
                       };
                   },
                   right});
    all.push_back({"pool", "malloc and free", false,
                   [=] {
                       return [=](u32 worker) {
                           return loop_of([wrong, worker] {
                               auto* mine = static_cast<volatile u32*>(std::malloc(block_bytes));
                               *mine = worker;
                               if (*mine != worker) (*wrong)->fetch_add(1);
                               std::free(const_cast<u32*>(mine));
                           });
                       };
                   },
                   right});
}

void add_work_queues(std::vector<contender>& all, const std::string& space) {
    const auto total = std::make_shared<shared_with_children<sums>>();
    const auto fresh = [total] { (*total)->pushed = 0, (*total)->popped = 0; };
    const auto right = [total](u64) { return (*total)->pushed == (*total)->popped; };
    all.push_back({"work queue", "Carousel", true,
                   [=] {
                       fresh();
                       return [=](u32 worker) {
                           auto q = std::make_shared<ipc::shared_work_queue<u64>>(
                               ipc::open(space).work_queue<u64>("tasks", queue_length, 3));
                           return queue_loop(
                               worker, total, [q](u64 v) { (void)q->submit(v, seconds(10)); },
                               [q] {
                                   auto task = q->claim(seconds(10));
                                   const u64 v = task.value();
                                   task.commit();
                                   return v;
                               });
                       };
                   },
                   right});
    struct locked {
        std::mutex mutex;
        std::deque<u64> tasks;
    };
    const auto standard = std::make_shared<locked>();
    all.push_back({"work queue", "std::mutex and deque", false,
                   [=] {
                       fresh();
                       return [=](u32 worker) {
                           return queue_loop(
                               worker, total,
                               [standard](u64 v) {
                                   const std::lock_guard lock(standard->mutex);
                                   standard->tasks.push_back(v);
                               },
                               [standard] {
                                   const std::lock_guard lock(standard->mutex);  // not empty: pushed before
                                   const u64 v = standard->tasks.front();
                                   standard->tasks.pop_front();
                                   return v;
                               });
                       };
                   },
                   right});
}

void add_words(std::vector<contender>& all) {
    const auto word = std::make_shared<shared_with_children<std::atomic<u64>>>();
    for (const bool processes : {true, false})
        all.push_back({"word, fetch_add", "std::atomic", processes,
                       [=] {
                           **word = 0;
                           return [=](u32) { return loop_of([word] { (*word)->fetch_add(1); }); };
                       },
                       [word](u64 operations) { return **word == operations; }});
}

primitive_row measure(const contender& c, u32 number, const ipc_bench_options& o) {
    primitive_row row{c.primitive, c.by, c.processes, number, 0, 0, 0, true};
    std::vector<f64> rates, ns;
    for (u32 k = 0; k < o.rounds; ++k) {
        const round_result r = run_round(c.processes, number, o.round_ms, c.make());
        row.verified = row.verified && r.well && r.operations > 0 && c.check(r.operations);
        rates.push_back(static_cast<f64>(r.operations) / r.seconds);
        ns.push_back(r.seconds * 1e9 * number / static_cast<f64>(std::max<u64>(1, r.operations)));
    }
    row.operations_s = median_of(rates), row.ns = median_of(ns);
    std::sort(ns.begin(), ns.end());
    row.p95_ns = ns[std::min(ns.size() - 1, ns.size() * 95 / 100)];
    return row;
}

}  // namespace

void measure_primitives(const ipc_bench_options& o, const std::string& space, ipc_bench_result& r,
                        const progress_function& report_progress) {
    const std::string name = "carousel-bench-queue-" + std::to_string(::getpid());
    std::vector<contender> all;
    add_words(all);
    add_semaphores(all, space);
    add_queues(all, space, name);
    add_pools(all, space);
    add_work_queues(all, space);
    for (const contender& c : all)
        for (const u32 number : o.processes) {
            report_progress(std::string("primitives: ") + c.primitive + ", " + c.by + ", " +
                            std::to_string(number));
            r.primitives.push_back(measure(c, number, o));
        }
    bi::message_queue::remove(name.c_str());
}

}  // namespace carousel::bench
