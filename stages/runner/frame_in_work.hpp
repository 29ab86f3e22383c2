#pragma once
// The frame that a stage's own code receives: a job of the ring with its mapped payloads. One object per
// lane, reused for every frame.

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>

#include "device/canary.hpp"
#include "device/same_work.hpp"
#include "frame/metadata.hpp"
#include "ledger/ledger.hpp"
#include "ring/worker.hpp"
#include "stages/runner/runtime.hpp"

namespace carousel::stages {

class finish_pool;
struct sampled_copy;
class external_pause;

class frame_in_work final : public frame {
public:
    frame_in_work(runtime& r, u32 lane) : runtime_(&r), lane_(lane) {}

    /// Written by the runner before process(); valid until the lane is released.
    ring::job job;
    device::event* event = nullptr;  ///< event that is recorded after all of the job's work
    finish_pool* pool = nullptr;     ///< null unless the stage finishes several frames concurrently
    external_pause* outside = nullptr;
    bool waits_for_link = false;  ///< used by the thread that finishes the frame
    bool finished = false;        ///< guarded by the pool's mutex
    u64 complete_ns = 0;          ///< the time when the device completed the frame; 0: not traced
    bool traced = false;          ///< `carousel trace` was on when the frame was claimed
    std::optional<u64> hash;      ///< set by finish()
    std::string hash_name;        ///< what the hash covers
    bool in_process = false;      ///< process() of this frame is running
    device::canary_check* canaries = nullptr;  ///< results of the canary checks of the frame's outputs,
                                               ///< followed by those of its inputs; null: no canaries
    bool ended = false;                        ///< end_stream() was called: the stream ends before this frame
    /// The copies of sampled inputs that the frame uses; null: the frame has none yet. Set by the main thread
    /// when it takes the lane.
    std::array<const sampled_copy*, shm::max_sampled_inputs> sampled_input{};
    bool by_copy = false;  ///< rings on another GPU are accessed through a slot on this GPU
    std::unique_ptr<device::same_work> alike;  ///< null: the frame's launches are enqueued one by one
    bool has_graph = false;                    ///< `alike` has enqueued a frame

    [[nodiscard]] const shm::frame_meta& meta() const noexcept override { return job; }
    [[nodiscard]] u64 ring_sequence() const noexcept override { return job.ring_sequence; }
    [[nodiscard]] std::span<const std::byte> parameter_values(std::string_view type,
                                                              std::size_t bytes) const override {
        runtime_->require_parameters(type, bytes);
        return std::span(job.parameters).first(bytes);
    }
    [[nodiscard]] std::span<const std::byte> parameter_bytes() const noexcept override;
    [[nodiscard]] frame_metadata metadata() noexcept override;
    [[nodiscard]] frame_metadata input_metadata(std::size_t i) noexcept override {
        return frame_metadata(carried_.at(i).entries());
    }
    void set_capture_ns(u64 ns) override;
    /// Copies the data in the inputs' headers into process-local memory before process(), so that the
    /// comparison of the headers before SUBMITTED also covers all data that is read later, including in
    /// finish().
    void take_carried();
    [[nodiscard]] device::queue& queue() noexcept override { return runtime_->queue(); }
    [[nodiscard]] input_payload input(std::size_t i) const noexcept override {
        mapped_link& in = runtime_->input(i);
        std::byte* const at = by_copy && in.staging ? in.staging->data() : in.slot(job.input[i].index);
        return {at, &runtime_->input_format(i), used_of_input(i)};
    }
    using frame::sampled;
    [[nodiscard]] sampled_frame sampled(std::size_t i) const override;
    [[nodiscard]] std::size_t sampled_index(std::string_view name) const override;
    [[nodiscard]] std::span<const u64> input_sampled(std::size_t i) const noexcept override {
        const carried_input& c = carried_.at(i);
        return std::span(c.sampled_input).first(c.sampled_inputs);
    }
    [[nodiscard]] output_payload output(std::size_t k) const noexcept override {
        if (k >= runtime_->outputs() - (runtime_->states() != nullptr ? 1 : 0)) return {};
        mapped_link& out = *runtime_->output(k);
        std::byte* const at = by_copy && out.staging ? out.staging->data() : out.slot(job.output[k].index);
        return {at, &runtime_->output_format(k), in_process ? &own_header(k).used : nullptr};
    }
    [[nodiscard]] std::size_t output_index(std::string_view name) const override;
    [[nodiscard]] frame_state state() const override;
    [[nodiscard]] u32 lane() const noexcept override { return lane_; }
    [[nodiscard]] std::string_view tombstone_reason() const noexcept override { return tombstone_text_; }

    [[nodiscard]] bool is_owned() const noexcept override {
        (void)ring::await_repair(runtime_->control().job[job.index]);
        const u64 raw = ring::load(runtime_->control().job[job.index]);
        const ring::job_word submitted{job.version, runtime_->epoch(), ring::job_state::submitted};
        // the job's word may already be COMMITTED, because a consumer may have committed the job
        // (ring/helper.hpp)
        return raw == submitted.pack() || raw == submitted.with(ring::job_state::committed).pack();
    }
    using frame::set_hash;
    void set_hash(u64 of_it, std::string_view name) noexcept override { hash = of_it, hash_name = name; }
    [[nodiscard]] telemetry::frame_hash for_ledger() const {
        return hash ? telemetry::frame_hash(*hash, hash_name) : telemetry::frame_hash(std::nullopt);
    }
    void in_parts(u32 parts, const std::function<void(u32 part)>& body) override;
    void wait_for_link(bool waits) override;
    void carry(std::span<const std::byte> metadata, const shm::used_extents& used) override;
    void stamp(const frame_stamp& with) override;
    void pass_tombstone() override;
    void end_stream() override;

    /// Called before the stage's code runs: determines whether the job is a tombstone. tombstone_reason()
    /// returns the result.
    void read_tombstone();
    /// True for a tombstone that the stage's code does not receive. False for a frame that the stage itself
    /// has turned into a tombstone in process(): finish() is called for each frame for which process() was
    /// called.
    [[nodiscard]] bool is_hidden_from_stage() const noexcept {
        return !tombstone_text_.empty() && !runtime_->wants_tombstones();
    }
    using frame::clear_local;

private:
    /// The stage writes into the first output's header. At SUBMITTED the worker copies these values to the
    /// headers of the other outputs, except the used extents of the planes.
    [[nodiscard]] shm::frame_header& own_header(std::size_t k = 0) const noexcept {
        return runtime_->control().frames[runtime_->output(k)->index].header[job.output[k].index];
    }
    [[nodiscard]] const shm::frame_header& header_of_input(std::size_t i) const noexcept {
        return runtime_->control().frames[runtime_->input(i).index].header[job.input[i].index];
    }
    [[nodiscard]] const shm::used_extents* used_of_input(std::size_t i) const noexcept {
        const shm::used_extents& used = carried_[i].used;
        return used.planes != 0 ? &used : nullptr;
    }
    void require_source_at_work(const char* what) const;

    runtime* runtime_;
    u32 lane_;
    std::string tombstone_text_;
    struct carried_input {
        u32 metadata_bytes = 0, sampled_inputs = 0;
        shm::used_extents used{};
        std::array<u64, shm::max_sampled_inputs> sampled_input{};
        std::array<std::byte, shm::max_metadata_bytes> metadata;
        [[nodiscard]] std::span<const std::byte> entries() const noexcept {
            return std::span(metadata).first(metadata_bytes);
        }
    };
    std::array<carried_input, shm::max_inputs> carried_;
    // Only for a stage without an output, whose frames have no header of their own.
    u32 metadata_bytes_ = 0;
    std::array<std::byte, shm::max_metadata_bytes> metadata_;
};

}  // namespace carousel::stages
