#pragma once
// One stage of the baseline without isolation, the marks that other stages wait for, and the classes of the
// shipped stages.

#include <carousel/stage.hpp>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "device/backend.hpp"
#include "spec/pipeline_file.hpp"

namespace carousel::bench {

// A point in one queue for which another queue of the same context can wait without the host. Between
// isolated processes such a wait is not allowed, because a recording process that dies never reaches the
// point. Within one process no thread dies alone, so the baseline may use such waits.

class queue_mark {
public:
    virtual ~queue_mark() = default;
    /// Marks the point after all work enqueued on `on` so far. Called by one thread at a time.
    virtual void record(device::queue& on) = 0;
    /// Makes work that is enqueued on `on` after this call wait for the point of the last record().
    virtual void hold(device::queue& on) = 0;
    /// Blocks until the work before the point of the last record() is done. Throws the exception that this
    /// work has thrown.
    virtual void wait() = 0;
};

/// Returns a mark for queues of `context`. Setting `stop` ends every wait of a CPU mark; `stop` must outlive
/// all CPU marks.
[[nodiscard]] std::unique_ptr<queue_mark> make_mark(device::context& context, const std::atomic<bool>& stop);

/// Defined in the CUDA part of the library, if that part is built.
[[nodiscard]] std::unique_ptr<queue_mark> make_cuda_mark();

// The classes of the shipped stages, by program name.

/// `run`: as in a pipeline file, the program's name or a path to it. Throws config_error for any other
/// program, because its class is not part of this program.
[[nodiscard]] std::unique_ptr<stage> make_shipped_stage(const std::string& stage_name,
                                                        const std::string& run);

// One stage of the baseline: its objects (one per instance), its buffers, and the marks that other stages
// wait for.

/// Number of frames in flight per instance if the file does not set it. This number lets host and device
/// overlap; it can be low because there are no context switches to hide within one process.
inline constexpr u32 lanes_by_itself = 4;

/// State that all stages of one baseline share.
struct thread_world {
    std::unique_ptr<device::context> device;
    std::map<std::string, std::unique_ptr<device::mapping>, std::less<>> assets;
    std::vector<std::byte> parameters;  ///< the parameters; in this baseline they are the same for every
                                        ///< frame
    std::string runtime_directory;
    f64 fps = 60;
    f64 pace = 0;       ///< the rate at which a source starts frames, in frames per second; 0: as fast as
                        ///< possible
    u64 began_ns = 0;   ///< time at which the first frame is due
    u64 end = ~u64{0};  ///< number of the first frame that is not produced
    std::atomic<bool> stop = false;
    std::function<void()> failed;  ///< called after an exception has been stored; all stages then end
};

class thread_stage {
public:
    thread_stage(thread_world& world, const supervisor::pipeline& p, const supervisor::stage_spec& spec,
                 std::vector<thread_stage*> inputs);
    ~thread_stage();
    thread_stage(const thread_stage&) = delete;
    thread_stage& operator=(const thread_stage&) = delete;

    /// Allocates buffers and assets; prepare() is called after all stages have allocated theirs. `one_queue`:
    /// the queue that all instances share, for work_alone(); null: each instance has its own queue.
    void allocate(u64 slots, std::shared_ptr<device::queue> one_queue = nullptr);
    void prepare();
    /// Alternative to start(): the caller is the only thread, and calls these functions for one frame after
    /// the other.
    void work_alone(u64 n);
    void finish_alone(u64 n);
    [[nodiscard]] bool commits_on_host() const { return objects_.front()->commits_on_host(); }
    /// Starts the threads. `most_slots`: the largest number of slots of any ring; other stages may refer to
    /// that many recent frames of this stage.
    void start(u64 most_slots);
    void join();
    /// Waits until the device has finished this stage's work. Must be called before any other stage is
    /// destroyed, because the work may read that stage's buffers.
    void finish_work() noexcept;

    [[nodiscard]] const frame_format* output() const { return output_of(description_); }
    [[nodiscard]] bool is_source() const { return inputs_.empty(); }
    [[nodiscard]] bool is_sink() const { return readers_.empty(); }
    [[nodiscard]] u64 under_way() const { return u64{in_flight_} * spec_.instances; }
    [[nodiscard]] const std::vector<thread_stage*>& readers() const { return readers_; }
    [[nodiscard]] const std::string& name() const { return spec_.name; }
    [[nodiscard]] u64 delivered() const { return delivered_.load(); }
    /// Returns the time at which frame n was started; valid only while the frame is in flight.
    [[nodiscard]] u64 begun_ns(u64 n) const { return cell_of(n).begun_ns.load(); }
    /// For a sink: returns for each frame, from frame `first` on, the milliseconds from its start in the
    /// source to its delivery.
    [[nodiscard]] std::vector<f64> latencies_ms(u64 first) const;
    /// Returns the exception that ended this stage, or null.
    [[nodiscard]] std::exception_ptr failure() const { return failure_; }
    [[nodiscard]] std::vector<u64> hashes() const;

private:
    class current_frame;
    class surroundings;
    /// One of the recent frames that other stages may still refer to.
    struct cell {
        std::unique_ptr<queue_mark> mark;
        /// 1 + number of the last frame that was enqueued or finished
        std::atomic<u64> enqueued = 0, finished = 0;
        std::atomic<u64> begun_ns = 0;
    };
    void enqueue_frames(u32 instance);
    void enqueue_one(u32 instance, u64 n);
    void wait_for_its_time(u64 n) const;
    void finish_frames();
    void finish_one(u64 n);
    [[nodiscard]] cell& cell_of(u64 n) { return cells_[n % cells_.size()]; }
    [[nodiscard]] const cell& cell_of(u64 n) const { return cells_[n % cells_.size()]; }
    [[nodiscard]] bool wait_enqueued(u64 n);
    [[nodiscard]] bool wait_finished(u64 n);
    [[nodiscard]] bool wait_for(std::atomic<u64> cell::*what, u64 n);
    void publish(std::atomic<u64> cell::*what, u64 n);
    [[nodiscard]] u64 oldest_beginning(u64 n) const;
    void store_failure();

    thread_world& world_;
    const supervisor::stage_spec& spec_;
    u32 in_flight_;
    std::vector<thread_stage*> inputs_, readers_;
    settings settings_;
    description description_;
    std::vector<std::unique_ptr<stage>> objects_;
    std::vector<std::unique_ptr<surroundings>> surroundings_;
    std::vector<std::shared_ptr<device::queue>> queues_;
    std::vector<std::unique_ptr<device::mapping>> slots_;
    std::vector<cell> cells_;
    std::mutex mutex_;
    std::condition_variable moved_;
    std::vector<std::thread> threads_;
    std::exception_ptr failure_;
    std::atomic<u64> delivered_ = 0;
    mutable std::mutex results_;
    std::vector<f64> latency_ms_;  ///< index: frame
    std::vector<u64> hash_;        ///< index: frame
};

/// Makes and connects the stages in the order of the file. The world must have its device and parameters.
[[nodiscard]] std::vector<std::unique_ptr<thread_stage>> make_stages(thread_world& world,
                                                                     const supervisor::pipeline& p);

}  // namespace carousel::bench
