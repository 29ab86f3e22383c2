#include "bench/threads/thread_pipeline.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

#include "bench/statistics.hpp"
#include "bench/stopwatch.hpp"
#include "bench/threads/thread_stage.hpp"
#include "core/clock.hpp"
#include "spec/describe.hpp"

namespace carousel::bench {
namespace {

constexpr u32 lone_frames = 31, frames_before = 3;
constexpr u32 numbers_of_queues[] = {1, 2, 4};

/// All stages enqueue on one queue and have one buffer each. One buffer is enough, because the queue finishes
/// a frame before it begins the next frame.
class chain {
public:
    chain(const supervisor::pipeline& p, const thread_order& o) {
        world_.parameters = supervisor::plan_parameters(p, supervisor::describe_stages(p)).values;
        world_.device = device::open(o.device, o.cpu_threads);
        world_.runtime_directory = o.runtime_directory;
        world_.fps = p.fps > 0 ? p.fps : 60;
        queue_ = world_.device->make_queue();
        stages_ = make_stages(world_, p);
        for (const auto& s : stages_) s->allocate(1, queue_), lanes_ = std::min(lanes_, s->under_way());
        for (const auto& s : stages_) s->prepare();
        for (u64 k = 0; k < lanes_; ++k) marks_.push_back(make_mark(*world_.device, world_.stop));
    }

    /// Returns the median device time of lone frames.
    f64 lone_ms() {
        const auto watch = make_stopwatch(*queue_);
        std::vector<f64> ms;
        for (u32 k = 0; k < frames_before + lone_frames; ++k) {
            watch->start();
            enqueue(next_);
            watch->lap();
            const f64 one = watch->read().front().ms;
            finish(next_++);
            if (k >= frames_before) ms.push_back(one);
        }
        return median_of(ms);
    }

    /// Keeps `lanes_` frames in the queue until `end` is set; all frames are complete on return.
    void run_until(const std::atomic<bool>& end, std::atomic<u64>& done) {
        const u64 first = next_;
        const auto complete = [&](u64 n) {
            marks_[n % lanes_]->wait();
            finish(n);
            ++done;
        };
        for (; !end; ++next_) {
            if (next_ >= first + lanes_) complete(next_ - lanes_);
            enqueue(next_);
            marks_[next_ % lanes_]->record(*queue_);
        }
        for (u64 n = next_ - std::min(lanes_, next_ - first); n < next_; ++n) complete(n);
    }

private:
    void enqueue(u64 n) {
        for (const auto& s : stages_) {
            s->work_alone(n);
            if (!s->commits_on_host() || s->is_sink()) continue;
            queue_->drain();  // needed because downstream stages read data that this stage writes on the host
            s->finish_alone(n);
        }
    }
    void finish(u64 n) {
        for (const auto& s : stages_)
            if (s->is_sink()) s->finish_alone(n);
    }

    thread_world world_;
    std::shared_ptr<device::queue> queue_;
    std::vector<std::unique_ptr<thread_stage>> stages_;
    std::vector<std::unique_ptr<queue_mark>> marks_;
    u64 lanes_ = 16, next_ = 0;
};

/// The rate of all chains together. The measurement begins after a warm-up of a tenth of the time.
struct rate {
    f64 frames_per_second = 0, cpu_ms_per_frame = 0;
};
rate rate_of(std::vector<std::unique_ptr<chain>>& chains, f64 seconds) {
    std::atomic<bool> end = false;
    std::atomic<u64> done = 0;
    std::vector<std::thread> threads;
    std::vector<std::exception_ptr> failures(chains.size());
    for (std::size_t k = 0; k < chains.size(); ++k)
        threads.emplace_back([&, k] {
            try {
                chains[k]->run_until(end, done);
            } catch (...) {
                failures[k] = std::current_exception();
            }
        });
    std::this_thread::sleep_for(std::chrono::duration<f64>(seconds / 10));
    const u64 before = done, began = now_ns(), cpu = process_cpu_ns();
    std::this_thread::sleep_for(std::chrono::duration<f64>(seconds));
    const f64 frames = static_cast<f64>(done - before);
    const f64 took_s = static_cast<f64>(now_ns() - began) / 1e9;
    const f64 cpu_ms = static_cast<f64>(process_cpu_ns() - cpu) / 1e6;
    end = true;
    for (std::thread& t : threads) t.join();
    for (const std::exception_ptr& f : failures)
        if (f) std::rethrow_exception(f);
    return {frames / took_s, cpu_ms / std::max(frames, 1.0)};
}

}  // namespace

kernel_figures measure_kernels_alone(const supervisor::pipeline& p, const thread_order& o) {
    std::vector<std::unique_ptr<chain>> chains;
    kernel_figures best;
    for (const u32 queues : numbers_of_queues) {
        while (chains.size() < queues) chains.push_back(std::make_unique<chain>(p, o));
        if (queues == 1) best.lone_ms = chains.front()->lone_ms();
        const rate r = rate_of(chains, o.seconds);
        if (r.frames_per_second <= best.frames_per_second) continue;
        best.frames_per_second = r.frames_per_second, best.cpu_ms_per_frame = r.cpu_ms_per_frame;
        best.queues = queues;
    }
    return best;
}

}  // namespace carousel::bench
