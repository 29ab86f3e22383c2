#pragma once
// All data that the engine needs before the first process starts: the pipeline as it was read, described and
// placed on devices. Plain data, written by setup_from() and run.cpp, read by the rest of the supervisor.

#include <string>
#include <vector>

#include "core/json.hpp"
#include "core/types.hpp"
#include "device/backend.hpp"
#include "ring/topology.hpp"
#include "spec/describe.hpp"
#include "spec/pipeline_file.hpp"
#include "supervisor/plan/device_choice.hpp"

namespace carousel::supervisor {

struct run_options;

struct asset_setup {
    std::string name;
    u64 bytes = 0;
    u32 maker = 0;           ///< index of a stage
    std::vector<u32> users;  ///< indices of the stages that use the asset, including its maker
};

/// True for a GPU, also for one that the CPU backend simulates (device/device_failure.hpp).
[[nodiscard]] inline bool is_gpu(const device::device_id& d) noexcept {
    return d.kind == device::device_kind::cuda || !d.uuid.empty();
}

struct stage_device {
    device::device_id id;
    std::string name;  ///< "cuda:0"
};

/// An output of a stage, and the ring that it writes.
struct ring_setup {
    std::string output;     ///< name of the output; "": the output has no name
    link_spec link;         ///< the ring's keys in the file
    nlohmann::json format;  ///< format of the frames; null: there is no output
    u64 slot_bytes = 0;
    device::memory_kind memory = device::memory_kind::vmm;  ///< requested for the ring
    /// the window chosen by depth_plan.hpp; 0: not chosen, so the file's window applies or, if the file has
    /// none, the derived window
    u32 window = 0;
};

/// A stage as described by the file and by its program, with the values that were decided for it. The
/// inherited members are those of its first output.
struct stage_setup : ring_setup {
    stage_spec spec;               ///< the stage's keys in the file
    std::vector<ring_setup> more;  ///< outputs after the first
    /// for each input: index of the output that the input reads; no entry: the first output
    std::vector<u32> input_outputs;
    std::vector<u32> sampled_outputs;  ///< for each sampled input: index of the output that the input reads
    std::string program;               ///< path
    std::string python;                ///< path of the interpreter that the key `python` names; "": no key
    std::string remote_program;        ///< of spec.remote
    device::device_id device;          ///< the stage's device; the first device if the file has a list
    std::string device_name;           ///< "cpu", "cuda:0"; for a list: "cuda:0+cuda:1"
    /// the devices of the list, in its order; empty if the file has no list
    std::vector<stage_device> devices;
    /// the file lets the stage leave its GPU (device_fallback.hpp), and `gpu_name` is that GPU
    bool may_leave_gpu = false;
    bool left_gpu = false;     ///< it is on the CPU because of that
    std::string gpu_name;      ///< "cuda:0"; "": the file places the stage on the CPU
    bool deep_on_cpu = false;  ///< for tests: the stage's depth is planned and chosen as on a GPU
    /// in_flight as chosen by depth_plan.hpp; 0: not chosen, so the file's number applies or, if the file has
    /// none, 3
    u32 lanes = 0;
    bool owner_commits = false;
    bool ends = false;  ///< the stage is a source that may end its stream
    /// the stage forwards frames of other stages; if `ends` is also true, it receives them from another host
    bool forwards_frames = false;
    bool writable_inputs = false;   ///< the stage requests inputs that it can write to
    bool state = false;             ///< the last output is the ring of the stage's states
    bool read_only_host = false;    ///< the stage's GPUs page-lock host memory read-only
    bool same_host_address = true;  ///< page-locked host memory has the same addresses as on the CPU,
                                    ///< including its gaps
    /// the stage is a client of the run's MPS domain (mps_domain.hpp), because isolation = "mps" was
    /// requested and the stage is on a GPU
    bool mps = false;
    bool one_server = false;  ///< one of its GPUs admits only one process, or one MPS server
    [[nodiscard]] bool has_output() const noexcept { return !format.is_null(); }
    /// True if frames leave the run here: no ring but that of the stage's states leaves it.
    [[nodiscard]] bool is_sink() const noexcept { return !has_output() || (state && more.empty()); }
    /// True if the stage listens for another host.
    [[nodiscard]] bool receives() const noexcept { return ends && forwards_frames; }
    [[nodiscard]] u32 outputs() const noexcept {
        return has_output() ? 1 + static_cast<u32>(more.size()) : 0;
    }
    [[nodiscard]] const ring_setup& ring(u32 output) const {
        return output == 0 ? static_cast<const ring_setup&>(*this) : more.at(output - 1);
    }
    [[nodiscard]] ring_setup& ring(u32 output) {
        return output == 0 ? static_cast<ring_setup&>(*this) : more.at(output - 1);
    }
    /// Returns "fork" for the first output, and "fork.square" for another output with the name "square", or
    /// for the states of a sink.
    [[nodiscard]] std::string ring_name(u32 output) const {
        return output == 0 && !(has_output() && is_sink()) ? spec.name
                                                           : spec.name + "." + ring(output).output;
    }
    [[nodiscard]] bool reads(u32 stage) const noexcept;  ///< true if this stage reads any output of stage
                                                         ///< number `stage`
    [[nodiscard]] bool reads(u32 stage, u32 output) const noexcept;
    /// True if the stage reads that output as a sampled input.
    [[nodiscard]] bool samples(u32 stage, u32 output) const noexcept;
    [[nodiscard]] bool maps(u32 stage, u32 output) const noexcept {
        return reads(stage, output) || samples(stage, output);
    }
    [[nodiscard]] u32 output_of_sampled(std::size_t sampled) const noexcept {
        return sampled < sampled_outputs.size() ? sampled_outputs[sampled] : 0;
    }
    [[nodiscard]] u32 output_of_input(std::size_t input) const noexcept {
        return input < input_outputs.size() ? input_outputs[input] : 0;
    }
    /// Returns the program of an instance; the last instance may represent instances on another host.
    [[nodiscard]] const std::string& program_of(u32 instance) const noexcept {
        return spec.is_remote(instance) ? remote_program : program;
    }
    [[nodiscard]] const nlohmann::json& settings_of(u32 instance) const noexcept {
        return spec.is_remote(instance) ? spec.remote->settings : spec.settings;
    }
    /// Returns the device of an instance; the devices of a list are assigned round robin.
    [[nodiscard]] const device::device_id& device_of(u32 instance) const noexcept {
        return devices.empty() ? device : devices[instance % devices.size()].id;
    }
    [[nodiscard]] const std::string& device_name_of(u32 instance) const noexcept {
        return devices.empty() ? device_name : devices[instance % devices.size()].name;
    }
    /// Number of instances on the device with that uuid.
    [[nodiscard]] u32 instances_on(const std::string& uuid) const noexcept;
};

/// Identifies a ring of the run, namely the ring that stage number `stage` writes as its output number
/// `output`.
struct ring_place {
    u32 stage = 0, output = 0;
};

/// The keys of [pipeline], and the values that follow from them.
struct run_setup : pipeline_spec {
    std::string file, directory;  ///< directory: the runtime directory, see run/directory.hpp
    std::string folder;           ///< folder of the pipeline file, absolute
    std::string device_name;      ///< the device chosen for `device`: "cpu", "cuda:0"
    u64 start_timeout_ns = 30'000'000'000, stop_timeout_ns = 5'000'000'000;
    u64 end = ring::end_unknown;    ///< value of `frames`, if the file has that key
    ring::first_counters counters;  ///< initial values of the counters in the words
    /// newest records kept in each sink's ledger; older ones are folded (ledger/ledger_fold.hpp)
    u64 kept_records = 100'000;
    u64 kill_delay_ns = 0;           ///< for tests: delays the kill of unwanted processes (run_options.hpp)
    bool overruns_anywhere = false;  ///< for tests: overrun-output is accepted even if no guard covers the
                                     ///< target
    /// for tests: scribble-control and scribble-input are accepted even if no guard covers the target
    bool scribbles_anywhere = false;
    bool audits_at_deaths_alone = false;  ///< for tests: words are audited only at deaths, not every second
    std::vector<std::string> inexact_stages;  ///< fallback_check.hpp
    /// the depth is lower than requested, because memory or limits required this
    bool depth_lowered = false;
    /// a clause that states how in_flight and window were chosen; "": neither was chosen
    std::string depth_reason;
    /// why standby = "auto" has chosen no standbys; "": it has, or no stage asks for it
    std::string standby_reason;
    parameter_plan parameters;        ///< the parameters that may be set, and their initial values
    std::vector<stage_setup> stages;  ///< producers before consumers
    std::vector<asset_setup> assets;
    /// the directory that environment::output_directory() returns in the run's stages; "": none
    std::string output_directory;
    std::string checkpoint_folder;  ///< absolute
    std::string pictures;           ///< folder of the pictures, for the closing lines; "": none
    std::string report_path;        ///< --report FILE; "": none
    bool color = false, terminal = false, quiet = false;
    [[nodiscard]] bool has_state() const noexcept;  ///< at least one stage has a state
    /// at least one stage is a client of an MPS domain, or will be when it returns to its GPU
    [[nodiscard]] bool has_mps() const noexcept;
    /// Returns the reason why two runs of this setup may produce different pictures, so that their hashes
    /// cannot be compared; "": the hashes can be compared.
    [[nodiscard]] std::string why_not_comparable() const;
    /// All rings, in the order of the control block's links.
    [[nodiscard]] std::vector<ring_place> rings() const;
};

/// The folder of the run's checkpoints, absolute.
[[nodiscard]] std::string checkpoint_folder_of(const pipeline& p);

/// The plan from which the ring library makes a control block.
[[nodiscard]] ring::plan plan_of(const run_setup& s);

// The stages of a ring, or the instances of a stage, may be on several GPUs. The functions below check
// whether each GPU can access the memory of the rings and assets that its stages use. Each process measures
// whether a mapping or a copy is faster (stages/runner/depth_governor.hpp).

/// Throws device_error if an instance of a stage is on a GPU that cannot access one of the stage's rings or
/// assets on another GPU. The error names the place of the stage's `device` in the file. Access that the
/// probe has not reported is assumed to work.
void require_reach(const run_setup& s, const machine_offer& machine);

// Determines the run's output directory and the paths of the pictures. Each run has its own output directory,
// ./runs/NAME-TIME/. An absolute pattern is used unchanged. A relative pattern of the pipeline file is placed
// in the output directory; a relative --out PATTERN is placed in the working directory. A film (.mp4) uses
// the pipeline's frame rate.

/// "20260131-235959", local time.
[[nodiscard]] std::string now_stamp();
/// Sets run_setup::output_directory, the displays' `out` and run_setup::pictures; creates the directories of
/// the pictures. Throws output_error if one of them cannot be written.
void prepare_outputs(run_setup& s, const std::string& stamp);
/// Returns the output directory if a stage has created it; otherwise "".
[[nodiscard]] std::string created_output_directory(const run_setup& s);
/// Creates DIR/logs. Throws output_error.
void make_log_folder(const std::string& directory);

// Makes the engine's setup from the pipeline file's values and the stages' descriptions.

/// Probes for GPUs only if a stage may use one.
[[nodiscard]] machine_offer probe_for(const pipeline& p);
/// Throws device_error (with the place in the file) for a device that does not exist, and config_error for
/// assets that do not match.
/// `on_cpu`: names of stages that run on the CPU instead of their GPU (device_fallback.hpp).
[[nodiscard]] run_setup setup_from(const pipeline& p, const run_options& o, const machine_offer& machine,
                                   const std::vector<std::string>& on_cpu = {});

}  // namespace carousel::supervisor
