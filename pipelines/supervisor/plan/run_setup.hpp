#pragma once
// Everything the engine needs to know before the first process starts: the pipeline as it was read, described and placed on
// devices. Plain data, written by run.cpp, read by all the rest of the supervisor.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "device/backend.hpp"
#include "ring/topology.hpp"
#include "spec/parameters.hpp"
#include "spec/restart_policy.hpp"

namespace carousel::supervisor {

struct asset_setup {
    std::string name;
    u64 bytes = 0;
    u32 maker = 0;           ///< stage
    std::vector<u32> users;  ///< stages, the maker among them
};

struct stage_setup {
    std::string name;
    std::string program;              ///< path
    std::vector<std::string> prefix;  ///< words in front of it: a debugger, a profiler
    std::vector<u32> inputs;          ///< stages
    nlohmann::json settings = nlohmann::json::object();
    nlohmann::json format;  ///< of the output; null: none
    u64 slot_bytes = 0;
    device::device_id device;
    std::string device_name;                                ///< "cpu", "cuda:0"
    device::memory_kind memory = device::memory_kind::vmm;  ///< wish for the ring behind it
    restart_policy restart = restart_policy::always;
    u32 instances = 1, in_flight = 3, max_attempts = 3, window = 0;
    u64 frame_timeout_ns = 2'000'000'000;  ///< 0: none
    bool optional = false, latest = false, owner_commits = false, standby = false;
    bool ends = false;  ///< a source that may end its stream
    bool mps = false;  ///< a client of the run's MPS domain (mps_domain.hpp), if it computes on a GPU
    [[nodiscard]] bool has_output() const noexcept { return !format.is_null(); }
};

struct run_setup {
    std::string name, file, directory;  ///< directory: of the run, see run/directory.hpp
    u32 width = 0, height = 0;
    f64 fps = 0;
    std::string device_name;  ///< as asked for, resolved: "cpu", "cuda:0"
    u64 frame_timeout_ns = 2'000'000'000, latest_lease_ns = 250'000'000;
    u64 stall_timeout_ns = 5'000'000'000;  ///< nothing moves and nobody says why: the words are made anew; 0: never
    u64 start_timeout_ns = 30'000'000'000, stop_timeout_ns = 5'000'000'000;
    f64 supervisor_grace_s = 5;           ///< so long stages go on without a supervisor
    u64 end = ring::end_unknown;      ///< --frames N
    ring::first_counters counters;    ///< where those of the words begin
    u64 allow_dead_letters = 0;       ///< frames given up beyond so many: exit_code::given_up
    u64 kept_records = 100'000;       ///< of each sink's ledger, the newest; older ones are folded (telemetry/ledger_fold.hpp)
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
