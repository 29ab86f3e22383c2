#pragma once
// Chooses by measuring how far a stage runs ahead of its readers, and how it accesses rings on another GPU.

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "telemetry/depth.hpp"

namespace carousel::stages {

// Chooses how many of its lanes a stage process uses and how far it runs ahead of its readers. At the start
// the plan determines the maximum from the memory and the limits (pipelines/supervisor/plan/depth_plan.hpp).
// The choice made here is a soft bound below this maximum and is stored only in process-local memory. A
// successor begins with the plan's values.
// The model: d frames take d * work + overhead, so the share of the time that is work is
// d * work / (d * work + overhead).
//   turns   contexts take turns on one GPU. A turn ends when its process has nothing more queued, and each
//           change of turns costs `switch_ns`. While d frames pass through all these stages, every context
//           gets one turn: so `work` is the sum over these stages, and the overhead is one switch per
//           context. All contexts read the same figures and therefore choose the same depth.
//   hops    a stage that uses the GPU alone, or concurrently with the others (MPS): the overhead is
//           `hop_ns`, the time that a frame takes from one process to the next; further frames in flight hide
//           this time.
// `balanced` chooses the smallest depth that achieves 95 % of what all lanes would achieve.
// Hysteresis: a depth that achieves between 93 and 97 % is kept, and a new depth must be preferred in three
// consecutive updates.

enum class latency_request : u8 { low, balanced, throughput };
enum class device_sharing : u8 {
    cpu,
    alone,    ///< the only context of the run on its GPU
    turns,    ///< several contexts of the run share the GPU
    overlap,  ///< in an MPS domain
};

/// Depth settings of a stage, from the plan.
struct depth_rule {
    latency_request latency = latency_request::balanced;
    device_sharing sharing = device_sharing::cpu;
    bool lanes_given = true, window_given = true;  ///< true if the value is set in the pipeline file and
                                                   ///< therefore fixed
    bool finish_pool = false;      ///< several threads run finish(), and device measurements exclude its time
    u32 contexts = 1;              ///< number of contexts that take turns, including this one
    u32 token = shm::none;         ///< turn token of the stage's GPU; none: the stage takes no turns
    u32 turn_frames = 0;           ///< frames per turn, from the pipeline file; 0: chosen during the run
    std::vector<u32> turn_stages;  ///< stages whose work takes turns with that of this stage, including this
                                   ///< stage
};

class depth_governor {
public:
    /// `lanes`, `window`: the maximum of each; `window` 0: no output.
    depth_governor(const depth_rule& rule, u32 lanes, u32 window);
    /// Called about four times per second. `work_ns`: time per frame on the device, measured since the last
    /// call: if several stages take turns, the sum over these stages; if not, the time of this stage; 0:
    /// unknown. Returns true when it has chosen a depth; the first choice may equal the planned depth.
    bool update(u64 work_ns);
    [[nodiscard]] const telemetry::depth_view& now() const noexcept { return now_; }
    /// True if update() can change anything.
    [[nodiscard]] bool chooses() const noexcept { return chooses_; }

private:
    [[nodiscard]] u32 smallest_for(f64 share, f64 work_ns) const;
    void take(u32 lanes, telemetry::depth_reason why, u64 work_ns);

    u32 lanes_, window_;
    bool chooses_, window_moves_;
    telemetry::depth_reason when_measured_;
    f64 overhead_ns_;
    u32 wanted_updates_ = 0;  ///< number of consecutive updates that have preferred another depth
    telemetry::depth_view now_;
};

// Measures the time per frame on the device, as observed by the stage's waiting thread: from the time when
// the frame is submitted and has become the oldest one until it completes. If contexts take turns, the
// measured time of the first frame of a turn includes the wait for the other contexts' frames. So the 40 %
// quantile of the last 64 frames is used instead of the mean: if several frames are in flight, only few of
// them are the first of a turn. If the thread wakes late, it finds the next frames already complete and
// measures too little work for them. The stage then chooses a larger depth than needed, which is harmless.

class work_meter {
public:
    /// Adds one frame. Times in ns of CLOCK_MONOTONIC: when the frame was submitted, when the thread began to
    /// wait for it, and when it was complete.
    void add(u64 submitted, u64 wait_began, u64 complete) noexcept {
        const u64 began = std::max(submitted, wait_began);
        spans_[count_++ % spans_.size()] = complete > began ? complete - began : 1;
    }
    /// True if enough frames were added since the last read(), or if at least one was added and enough time
    /// has passed since then.
    [[nodiscard]] bool due(u64 now) const noexcept {
        return count_ - read_ >= spans_.size() || (count_ > read_ && now - read_ns_ >= period_ns);
    }
    /// Returns ns per frame; 0: no frame yet.
    [[nodiscard]] u64 read(u64 now) noexcept {
        read_ = count_;
        read_ns_ = now;
        const std::size_t n = std::min<u64>(count_, spans_.size());
        if (n == 0) return 0;
        std::array<u64, 64> sorted = spans_;
        const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((n - 1) * 2 / 5);
        std::nth_element(sorted.begin(), middle, sorted.begin() + static_cast<std::ptrdiff_t>(n));
        return *middle;
    }

private:
    static constexpr u64 period_ns = 250'000'000;
    std::array<u64, 64> spans_{};
    u64 count_ = 0, read_ = 0, read_ns_ = 0;
};

// How a stage accesses rings on another GPU. Either its kernels read and write the mapped slot over the link,
// or the slot is copied to the stage's own GPU before the kernels and copied back after them. Which way is
// faster depends on the kernels: the mapping is faster for kernels that read each byte once, and the copy is
// faster for kernels that read a byte often. So both ways are measured with the stage's own frames, at the
// start of each process: mapping, copy, mapping, copy, each for some frames. The copy is kept if its best
// round is faster by 3 % than the best round of the mapping; otherwise the mapping is kept. Threads: next()
// and state() are called on the main thread, the other functions on the thread that waits for the device.

class reach_choice {
public:
    enum class way : u8 { mapping, copy };
    static constexpr u32 rounds = 4, frames_a_round = 48, passed_over = 16;

    /// `peer`: true if both ways are possible, so that a choice must be made; if false, the mapping is always
    /// used.
    explicit reach_choice(bool peer) : peer_(peer), trial_(peer) {}
    /// Returns the way for the frame that begins now.
    [[nodiscard]] way next() const noexcept { return now_.load(std::memory_order_relaxed); }
    [[nodiscard]] telemetry::reach_state state() const noexcept;
    /// Adds the measurement of one frame: whether the slot was copied, and the frame's time on the device.
    /// Returns true if this call has made the choice.
    bool add(bool by_copy, u64 span_ns);
    /// The choice as text.
    [[nodiscard]] std::string report() const;

private:
    [[nodiscard]] way of_round() const noexcept { return round_ % 2 == 0 ? way::mapping : way::copy; }

    const bool peer_;
    std::atomic<bool> trial_;
    std::atomic<way> now_{way::mapping};
    u32 round_ = 0, passed_ = 0;
    std::vector<u64> spans_;
    std::array<u64, 2> best_{~u64{0}, ~u64{0}};  ///< ns per frame, for each way
};

}  // namespace carousel::stages
