#include "bench/threads/thread_stage.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace carousel::bench {
namespace {

/// A mark (an event) is a counter. The queue that records the mark sets the counter to the number of the
/// recording. The worker of a waiting queue blocks until the counter has reached the number that the queue
/// waits for.
class cpu_mark final : public queue_mark {
public:
    explicit cpu_mark(const std::atomic<bool>& stop) : state_(std::make_shared<state>(stop)) {}

    void record(device::queue& on) override {
        const u64 number = ++recorded_;
        on.submit([s = state_, number](device::cpu::pool&) {
            {
                const std::lock_guard lock(s->mutex);
                s->done = number;
            }
            s->moved.notify_all();
        });
    }
    void hold(device::queue& on) override {
        on.submit([s = state_, number = recorded_.load()](device::cpu::pool&) { s->wait_for(number); });
    }
    void wait() override { state_->wait_for(recorded_.load()); }

private:
    struct state {
        explicit state(const std::atomic<bool>& s) : stop(s) {}
        void wait_for(u64 number) {
            std::unique_lock lock(mutex);
            // A queue whose task has thrown runs no more tasks, so `done` stays below `number`; setting
            // `stop` then ends this wait.
            while (done < number && !stop.load()) moved.wait_for(lock, std::chrono::milliseconds(20));
        }
        const std::atomic<bool>& stop;
        std::mutex mutex;
        std::condition_variable moved;
        u64 done = 0;
    };
    std::shared_ptr<state> state_;
    std::atomic<u64> recorded_ = 0;
};

}  // namespace

std::unique_ptr<queue_mark> make_mark(device::context& context, const std::atomic<bool>& stop) {
#ifdef CAROUSEL_WITH_CUDA
    if (context.kind() == device::device_kind::cuda) return make_cuda_mark();
#endif
    (void)context;
    return std::make_unique<cpu_mark>(stop);
}

}  // namespace carousel::bench
