#pragma once
// The resources that a stage process has after it has attached: the control block, its device, its mapped
// rings and assets, its events. Created at set-up by the main thread; exists until the process ends, or
// starts over.

#include <carousel/stage.hpp>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "ring/worker.hpp"
#include "shm/block_guard.hpp"
#include "shm/doorbell.hpp"
#include "shm/segment.hpp"
#include "stages/runner/attach.hpp"
#include "stages/runner/delivered.hpp"
#include "stages/runner/supervisor_link.hpp"
#include "stages/sdk/configuration.hpp"

namespace carousel::stages {

// The test hooks that are enabled in a stage's process. The process's main() reads them once; code that acts
// on them receives them as an argument.

struct test_hooks {
    /// CAROUSEL_TEST_TEAR=N: the runner overwrites the status word of sequence N's input between its two
    /// checks
    std::optional<u64> tear_at;
    /// CAROUSEL_TEST_HOLD_LEASE=N: a latest reader stops itself (SIGSTOP) while it holds its first lease of
    /// frame N or later
    std::optional<u64> hold_lease_at;
    /// CAROUSEL_TEST_PEER_RINGS: rings are treated as those of another GPU, on a machine with one device
    bool peer_rings = false;
    /// CAROUSEL_TEST_BLOCK_GUARD=off | pages | emulated, instead of keys. Threads of one process that act as
    /// several stages have no such hooks.
    shm::block_guard block_guard = shm::block_guard::off;
    /// CAROUSEL_TEST_INPUTS_WRITABLE: inputs are mapped for writing, as if the stage had requested it
    bool inputs_writable = false;

    [[nodiscard]] static test_hooks of_environment();
};

/// Where a runtime gets its control block and its device. Tests that run several stages as threads of one
/// process pass their own control block and device.
struct runtime_sources {
    /// Mapped until the process ends, because an exit note may be written after the runtime is gone.
    std::function<shm::control_block&(const std::string& run_id)> control = join_run;
    std::function<std::unique_ptr<device::context>(const device::device_id& id, unsigned cpu_threads)>
        device = device::open;
    test_hooks hooks = {};
    /// The device that this process has opened before it started over; null: it is opened.
    std::shared_ptr<device::context> opened = nullptr;
};

/// Bytes at the start of a slot, for the status word.
inline constexpr u64 before_payload = ring::plane_alignment;

class runtime final : public environment {
public:
    /// Attaches, claims the entry (before any device call), configures the stage and checks its outputs
    /// against the rings', opens the device, maps the rings, creates and publishes the events. Throws
    /// carousel::error before the claim; an error after the claim ends the process.
    runtime(attachment a, stage& s, const runtime_sources& from = {});

    // environment
    [[nodiscard]] device::context& context() override { return *context_; }
    [[nodiscard]] device::queue& queue() override { return *queue_; }
    [[nodiscard]] std::span<const std::byte> asset(std::string_view name) override;
    [[nodiscard]] std::string runtime_directory() const override { return attachment_.runtime_directory; }
    [[nodiscard]] std::string output_directory() const override {
        return make_output_directory(attachment_.output_directory);
    }
    [[nodiscard]] u32 instance() const override;
    [[nodiscard]] u32 epoch() const override { return attachment_.incarnation.epoch; }
    [[nodiscard]] std::string run_id() const override { return attachment_.run_id; }
    [[nodiscard]] u64 first_frame() const override { return control().first_ring_sequence; }
    [[nodiscard]] u64 delivered_below() override { return delivered_.releasable(); }
    void wake() noexcept override { shm::ring(stage_block().doorbell); }
    [[nodiscard]] u32 in_flight() const override { return stage_block().in_flight; }
    [[nodiscard]] const parameter_schema& parameters() const override { return attachment_.parameters; }

    /// Loads the assets that this stage makes, unless they are already loaded.
    void load_assets(stage& s);
    /// Throws config_error unless configure() has named parameters of that type and size.
    void require_parameters(std::string_view type, std::size_t bytes) const;
    void go_live();
    [[nodiscard]] bool is_standby() const noexcept { return attachment_.standby; }
    /// The generation of the MPS domain that this process is a client of; 0: it has its own GPU context.
    [[nodiscard]] u32 domain() const noexcept { return domain_; }
    /// Reports to the supervisor that this standby is ready, and waits. Returns true when it has become the
    /// LIVE holder of its seat, false when it is to start over.
    [[nodiscard]] bool stand_by();
    /// Wakes a thread that waits in stand_by().
    void wake_standby() noexcept;
    [[nodiscard]] const std::shared_ptr<device::context>& shared_context() const noexcept { return context_; }

    [[nodiscard]] shm::control_block& control() const noexcept { return *control_; }
    [[nodiscard]] shm::incarnation& entry() const noexcept {
        return control().entry[attachment_.incarnation.entry];
    }
    [[nodiscard]] shm::stage_block& stage_block() const noexcept;
    [[nodiscard]] const ring::incarnation_id& incarnation() const noexcept { return attachment_.incarnation; }
    [[nodiscard]] const attachment& attached() const noexcept { return attachment_; }
    [[nodiscard]] mapped_link& input(std::size_t i) { return inputs_[i]; }
    [[nodiscard]] u32 sampled_inputs() const noexcept { return static_cast<u32>(sampled_inputs_.size()); }
    [[nodiscard]] mapped_link& sampled_input(std::size_t i) { return sampled_inputs_[i]; }
    [[nodiscard]] const ring::frame_format& sampled_input_format(std::size_t i) const {
        return attachment_.sampled[i].format;
    }
    [[nodiscard]] std::span<const mapped_link> input_links() const noexcept { return inputs_; }
    [[nodiscard]] std::span<const mapped_link> output_links() const noexcept { return outputs_; }
    [[nodiscard]] std::size_t outputs() const noexcept { return outputs_.size(); }
    /// Null if there is no output k.
    [[nodiscard]] mapped_link* output(std::size_t k = 0) {
        return k < outputs_.size() ? &outputs_[k] : nullptr;
    }
    /// The ring of the stage's states, which is its last output; null: the stage has none.
    [[nodiscard]] mapped_link* states() noexcept {
        const bool has = !outputs_.empty() && (stage_block().flags & shm::stage_flag::state) != 0;
        return has ? &outputs_.back() : nullptr;
    }
    /// The state before the frame of that job: a slot of states(), or zeros of that size.
    [[nodiscard]] const std::byte* previous_state(const ring::job& j) noexcept {
        if (!j.previous) return no_state_->data();
        return (previous_states_ ? *previous_states_ : *states()).slot(j.previous.index);
    }
    /// The state that the job makes, after its status word; of state_bytes() bytes.
    [[nodiscard]] const std::byte* state_of(const ring::job& j) noexcept;
    [[nodiscard]] std::size_t state_bytes() noexcept;
    [[nodiscard]] u64 state_layout() const;
    /// True if the state before that frame comes from a checkpoint.
    [[nodiscard]] bool is_restored(u64 ring_sequence) const noexcept {
        return restored_at_ && *restored_at_ == ring_sequence;
    }
    [[nodiscard]] const ring::frame_format& input_format(std::size_t i) const {
        return attachment_.inputs[i].format;
    }
    [[nodiscard]] const ring::frame_format& output_format(std::size_t k) const {
        return attachment_.outputs[k];
    }
    /// True if an output ring of this stage has canaries.
    [[nodiscard]] bool plants_canaries() const noexcept;
    /// True if the work of this stage is the same for every frame and runs as graphs.
    [[nodiscard]] bool plays_graphs() const noexcept { return same_work_ && attachment_.graphs; }
    /// True if a ring of this stage is on another GPU and can be accessed by copies.
    [[nodiscard]] bool reaches_peer_memory() const noexcept;
    /// Returns the number of threads for finish() that configure() has requested (0: one thread per usable
    /// core).
    [[nodiscard]] u32 finish_threads() const noexcept { return finish_threads_; }
    /// True if finish() of this stage receives tombstone frames.
    [[nodiscard]] bool wants_tombstones() const noexcept { return wants_tombstones_; }
    /// Returns the event of a job: the event of the job's slot at the first output, or, for a sink, of the
    /// job's lane.
    [[nodiscard]] device::event& event_of(u32 output_slot, u32 lane);
    [[nodiscard]] supervisor_link& supervisor() noexcept { return supervisor_; }
    [[nodiscard]] const test_hooks& hooks() const noexcept { return hooks_; }

private:
    void set_up(stage& s, const runtime_sources& from);
    void check_output(const description& d) const;
    void check_parameters(const description& d) const;
    void check_device(const description& d) const;
    void check_ends(const description& d) const;
    [[nodiscard]] device::access access_to_inputs(const description& d) const;
    void close_block();
    void map_links();
    void map_headers();
    void map_previous_states(u32 link);
    void load_checkpoint();
    [[nodiscard]] bool has_newer_state();
    void make_events();
    [[nodiscard]] mapped_link map_link(u32 link, device::access wanted);
    [[nodiscard]] const attached_block& asset_block(std::string_view name) const;
    void publish_guard();
    void guard_asset(std::string_view name, const device::mapping& m);
    [[nodiscard]] std::span<std::byte> map_for_loading(const attached_block& block);
    [[nodiscard]] std::span<const std::byte> map_for_reading(const attached_block& block);

    attachment attachment_;
    supervisor_link supervisor_;
    test_hooks hooks_;
    u32 domain_;  ///< see domain()
    shm::control_block* control_;
    delivered delivered_;
    std::shared_ptr<device::context> context_;
    std::unique_ptr<device::queue> queue_;
    std::vector<mapped_link> inputs_;
    std::vector<mapped_link> sampled_inputs_;     ///< rings of the sampled inputs (sampled_inputs.hpp)
    std::vector<mapped_link> outputs_;            ///< one element per output format of the attachment
    std::optional<mapped_link> previous_states_;  ///< the ring of states, mapped for reading
    /// The state before the first frame of the control block: zeros, or that of a checkpoint.
    std::unique_ptr<device::mapping> no_state_;
    std::optional<u64> restored_at_;  ///< the frame that continues from a checkpoint
    std::vector<std::unique_ptr<device::event>> events_;
    u32 finish_threads_ = 1;
    bool same_work_ = false, maps_peer_rings_ = false, wants_tombstones_ = false;
    shm::block_guard guard_ = shm::block_guard::off;   ///< of the control block
    std::vector<std::string> makes_;                   ///< assets that this program fills
    device::access of_others_ = device::access::read;  ///< the access with which inputs and other stages'
                                                       ///< assets are mapped
    std::string parameter_type_;  ///< as named by configure(); "": configure() has named no type
    u32 parameter_bytes_ = 0;     ///< likewise; the pipeline's parameters may have more
    std::map<std::string, std::unique_ptr<device::mapping>, std::less<>> assets_;
};

}  // namespace carousel::stages
