#pragma once
// Everything the engine needs to know before the first process starts: the pipeline as it was read, described
// and placed on devices. Plain data, written by run.cpp, read by all the rest of the supervisor.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "device/backend.hpp"
#include "ring/topology.hpp"
#include "spec/parameters.hpp"
#include "spec/pipeline_file.hpp"

namespace carousel::supervisor {

struct asset_setup {
    std::string name;
    u64 bytes = 0;
    u32 maker = 0;           ///< stage
    std::vector<u32> users;  ///< stages, the maker among them
};

struct stage_device {
    device::device_id id;
    std::string name;  ///< "cuda:0"
};

/// A stage as its file describes it, and what was decided behind that.
struct stage_setup {
    stage_spec spec;        ///< what the file says
    link_spec link;         ///< of the ring behind it
    std::string program;    ///< path
    nlohmann::json format;  ///< of the output; null: none
    u64 slot_bytes = 0;
    device::device_id device;                               ///< of a list: the first
    std::string device_name;                                ///< "cpu", "cuda:0"; of a list: "cuda:0+cuda:1"
    std::vector<stage_device> devices;                      ///< of a list, as it stands there; else empty
    device::memory_kind memory = device::memory_kind::vmm;  ///< wish for the ring behind it
    bool deep_on_cpu = false;  ///< for tests: its depth is planned and chosen as on a GPU
    u32 lanes = 0;   ///< what in_flight came to (depth_plan.hpp); 0: not chosen, a number of the file or 3
    u32 window = 0;  ///< what the window of the ring behind it came to; 0: not chosen, the file's or derived
    bool owner_commits = false;
    bool ends = false;             ///< a source that may end its stream
    bool writable_inputs = false;  ///< it asks for inputs that it can write to
    bool read_only_host = false;   ///< its GPUs page-lock host memory for reading alone
    bool mps = false;  ///< a client of the run's MPS domain (mps_domain.hpp): it was asked for, and it
                       ///< computes on a GPU
    [[nodiscard]] bool has_output() const noexcept { return !format.is_null(); }
    [[nodiscard]] bool reads(u32 stage) const noexcept;
    /// Of an instance: those of a list go round.
    [[nodiscard]] const device::device_id& device_of(u32 instance) const noexcept {
        return devices.empty() ? device : devices[instance % devices.size()].id;
    }
    [[nodiscard]] const std::string& device_name_of(u32 instance) const noexcept {
        return devices.empty() ? device_name : devices[instance % devices.size()].name;
    }
    /// How many instances lie on a device of that uuid.
    [[nodiscard]] u32 instances_on(const std::string& uuid) const noexcept;
};

/// The keys of [pipeline], and what was decided behind them.
struct run_setup : pipeline_spec {
    std::string file, directory;  ///< directory: of the run, see run/directory.hpp
    std::string folder;           ///< of the pipeline file, absolute
    std::string device_name;      ///< what `device` came to: "cpu", "cuda:0"
    u64 start_timeout_ns = 30'000'000'000, stop_timeout_ns = 5'000'000'000;
    u64 end = ring::end_unknown;    ///< `frames`, where there is an end
    ring::first_counters counters;  ///< where those of the words begin
    /// of each sink's ledger, the newest; older ones are folded (telemetry/ledger_fold.hpp)
    u64 kept_records = 100'000;
    u64 kill_delay_ns = 0;            ///< for tests: the unwanted live on so long (test_hooks.hpp)
    bool overruns_anywhere = false;   ///< for tests: overrun-output is taken where nothing guards
    bool scribbles_anywhere = false;  ///< for tests: so is scribble-control
    bool depth_lowered = false;       ///< memory or limits have not let it be what was wished for
    std::string depth_reason;         ///< how in_flight and window were chosen, a clause; "": none was
    parameter_plan parameters;        ///< what may be set, and the values at the start
    std::vector<stage_setup> stages;  ///< producers before consumers
    std::vector<asset_setup> assets;
    std::string pictures;     ///< folder of the pictures, for the closing lines; "": none
    std::string report_path;  ///< --report FILE; "": none
    std::string http;         ///< --http ADDR:PORT; "": no page
    bool color = false, terminal = false, quiet = false;
    [[nodiscard]] bool has_mps() const noexcept;  ///< some stage is a client of an MPS domain
};

/// What the ring library makes a control block from.
[[nodiscard]] ring::plan plan_of(const run_setup& s);

}  // namespace carousel::supervisor
