#include "bench/threads/thread_pipeline.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <thread>

#include "bench/threads/thread_stage.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "ledger/ledger.hpp"
#include "ring/topology.hpp"
#include "spec/describe.hpp"

namespace carousel::bench {
namespace {

/// Returns the number of slots that the stage's ring has in a run, computed by the run's own rule
/// (ring/topology.hpp).
u64 slots_downstream(const supervisor::pipeline& p, u32 stage) {
    ring::plan plan;
    for (const supervisor::stage_spec& s : p.stages) {
        ring::stage_plan one;
        one.name = s.name;
        one.inputs = s.input_indices;
        one.instances = s.instances;
        one.in_flight = s.in_flight.value_or(lanes_by_itself);
        if (const auto at = p.links.find(s.name); at != p.links.end())
            one.window = at->second.window.value_or(0);
        plan.stages.push_back(std::move(one));
    }
    return ring::derived_slots(plan, stage);
}

f64 cpu_ms() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const auto ms = [](const timeval& t) {
        return static_cast<f64>(t.tv_sec) * 1e3 + static_cast<f64>(t.tv_usec) / 1e3;
    };
    return ms(used.ru_utime) + ms(used.ru_stime);
}

/// Thrown if work never ends. The work's thread can't be joined and its context can't be destroyed, so the
/// caller must end the process.
struct stalled : error {
    explicit stalled(const std::string& what) : error(exit_code::stage_failed, what) {}
};

class thread_pipeline {
public:
    thread_pipeline(const supervisor::pipeline& p, const thread_order& o) : order_(o) {
        world_.parameters = supervisor::plan_parameters(p, supervisor::describe_stages(p)).values;
        world_.device = device::open(o.device, o.cpu_threads);
        world_.runtime_directory = o.runtime_directory;
        world_.fps = p.fps > 0 ? p.fps : 60;
        world_.failed = [this] { world_.stop = true; };
        if (o.exactly > 0) world_.end = o.exactly;
        stages_ = make_stages(world_, p);
        u64 most = 0;
        for (u32 k = 0; k < stages_.size(); ++k) {
            const u64 slots = slots_downstream(p, k);
            stages_[k]->allocate(slots);
            most = std::max(most, slots);
        }
        for (const auto& s : stages_) s->prepare();
        world_.pace = p.fps, world_.began_ns = now_ns();
        for (const auto& s : stages_) s->start(most);
    }
    ~thread_pipeline() { end(); }
    thread_pipeline(const thread_pipeline&) = delete;
    thread_pipeline& operator=(const thread_pipeline&) = delete;

    /// Returns the number of frames that every sink has delivered.
    [[nodiscard]] u64 delivered() const {
        u64 least = ~u64{0};
        for (const auto& s : stages_)
            if (s->is_sink()) least = std::min(least, s->delivered());
        return least;
    }
    /// Sleeps until N frames are delivered or until the given time; rethrows the exception of a stage, or
    /// throws `stalled` if no frame arrives for `patience_s`.
    void wait(u64 frames, u64 until_ns) {
        u64 seen = delivered(), moved_ns = now_ns();
        while (delivered() < frames && now_ns() < until_ns) {
            if (world_.stop) end();
            rethrow();
            if (const u64 now = delivered(); now != seen) seen = now, moved_ns = now_ns();
            if (static_cast<f64>(now_ns() - moved_ns) > order_.patience_s * 1e9) throw stalled(slowest());
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }
    void end() {
        world_.stop = true;
        for (const auto& s : stages_) s->join();
        for (const auto& s : stages_) s->finish_work();
    }
    void rethrow() const {
        for (const auto& s : stages_)
            if (world_.stop && s->failure()) std::rethrow_exception(s->failure());
    }
    /// Uses p50 and p99 of the slowest sink.
    void take_latencies(u64 first, thread_figures& f) const {
        for (const auto& s : stages_) {
            if (!s->is_sink()) continue;
            std::vector<f64> ms = s->latencies_ms(first);
            if (ms.empty()) continue;
            std::sort(ms.begin(), ms.end());
            const auto at = [&](f64 q) {
                return ms[static_cast<std::size_t>(q * static_cast<f64>(ms.size() - 1))];
            };
            f.p50_ms = std::max(f.p50_ms, at(0.5));
            f.p99_ms = std::max(f.p99_ms, at(0.99));
        }
    }
    [[nodiscard]] std::string image_hash() const {
        for (const auto& s : stages_)
            if (s->is_sink()) {
                const std::vector<u64> all = s->hashes();
                return fmt::format("{:016x}", telemetry::hash_bytes(std::as_bytes(std::span(all))));
            }
        return {};
    }

private:
    /// Returns a message that names the stage that delays the others: the first stage, in the order of the
    /// file, that has finished the fewest frames.
    [[nodiscard]] std::string slowest() const {
        const auto least = std::min_element(stages_.begin(), stages_.end(), [](const auto& a, const auto& b) {
            return a->delivered() < b->delivered();
        });
        return fmt::format("no frame was delivered for {} s: stage \"{}\" has finished {}", order_.patience_s,
                           (*least)->name(), (*least)->delivered());
    }

    const thread_order& order_;
    thread_world world_;
    std::vector<std::unique_ptr<thread_stage>> stages_;
};

constexpr u64 for_ever = ~u64{0};
constexpr u64 flowing = 3;  // as in a measured run: after this number of delivered frames, the pipeline is
                            // considered to deliver frames steadily

thread_figures measure(thread_pipeline& all, const thread_order& o) {
    thread_figures f;
    if (o.exactly > 0) {
        const u64 began = now_ns();
        all.wait(o.exactly, for_ever);
        f.frames = o.exactly;
        f.seconds = static_cast<f64>(now_ns() - began) / 1e9;
        f.image_hash = all.image_hash();
        all.take_latencies(0, f);
        if (o.before_the_end) o.before_the_end();
        all.end();
        return f;
    }
    all.wait(flowing, for_ever);
    all.wait(for_ever, now_ns() + static_cast<u64>(o.warm_up_s * 1e9));
    const u64 first = all.delivered(), began = now_ns();
    const f64 cpu_first = cpu_ms();
    if (o.frames > 0)
        all.wait(first + o.frames, for_ever);
    else
        all.wait(for_ever, began + static_cast<u64>(o.seconds * 1e9));
    f.frames = all.delivered() - first;
    f.seconds = static_cast<f64>(now_ns() - began) / 1e9;
    const f64 cpu_last = cpu_ms();
    if (f.frames == 0) throw error(exit_code::stage_failed, "no frame was delivered in the measured time");
    f.cpu_ms_per_frame = (cpu_last - cpu_first) / static_cast<f64>(f.frames);
    all.take_latencies(first, f);
    if (o.before_the_end) o.before_the_end();
    all.end();
    all.rethrow();
    return f;
}

}  // namespace

thread_figures run_in_threads(const supervisor::pipeline& p, const thread_order& o) {
    auto all = std::make_unique<thread_pipeline>(p, o);
    try {
        return measure(*all, o);
    } catch (const stalled&) {
        (void)all.release();  // its threads still run
        throw;
    }
}

}  // namespace carousel::bench
