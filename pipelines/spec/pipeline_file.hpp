#pragma once
// A pipeline file, read and checked: plain values, every one with the place it came from, so that whoever
// finds fault with one later (a stage with its own keys, the device with its name) can still say
// file:line:col.
//
// Who may call: the `carousel` program, before anything is started. No CUDA, no device, nothing left behind.
// Errors: config_error (exit code 2), "file:line:col: what is wrong; what was expected". A value that came
// from the command line is named by its option instead.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"
#include "core/types.hpp"
#include "device/backend.hpp"
#include "spec/restart_policy.hpp"
#include "spec/words.hpp"

namespace carousel::supervisor {

/// Where a key or value stands.
struct source_position {
    std::string file;
    u32 line = 0, column = 0;  ///< from 1; 0: the file as a whole
    std::string option;        ///< not empty: it came from the command line, e.g. "--set size=[0,0]"
    /// "pipelines/demo.toml:3:8", or the option.
    [[nodiscard]] std::string text() const;
};

/// A key's value as it was written.
struct placed_value {
    nlohmann::json value;
    source_position key_at, value_at;
};

/// Throws config_error "PLACE: MESSAGE".
[[noreturn]] void refuse(const source_position& at, const std::string& message);

enum class group_kind : u8 { blocking, latest };
enum class isolation_kind : u8 { process, mps };
/// Who starts the supervisor of another host: nobody has to (it is this one), a person, ssh, or Slurm's srun.
enum class launcher_kind : u8 { here, none, ssh, slurm };
/// Until when a frame that goes to another host is kept here: until its ring has it, or its sinks' files
/// have.
enum class release_kind : u8 { committed, durable };
/// How a frame that becomes smaller by it goes to another host.
enum class packing_kind : u8 { none, lz4, zstd };
/// Through what memory a frame on a GPU goes to another host: the CPU's, or UCX reads it where it is.
enum class leaving_kind : u8 { staged, direct };
enum class latency_kind : u8 { low, balanced, throughput };
/// What lies behind each slot of a ring (slot_guard.hpp).
enum class guard_request : u8 { automatic, gap, canary, off };

// As the file spells them.
inline constexpr word_table<group_kind, 2> group_words{
    {{"blocking", group_kind::blocking}, {"latest", group_kind::latest}}};
inline constexpr word_table<isolation_kind, 2> isolation_words{
    {{"process", isolation_kind::process}, {"mps", isolation_kind::mps}}};
inline constexpr word_table<launcher_kind, 4> launcher_words{{{"here", launcher_kind::here},
                                                              {"none", launcher_kind::none},
                                                              {"ssh", launcher_kind::ssh},
                                                              {"slurm", launcher_kind::slurm}}};
inline constexpr word_table<release_kind, 2> release_words{
    {{"committed", release_kind::committed}, {"durable", release_kind::durable}}};
inline constexpr word_table<packing_kind, 3> packing_words{
    {{"none", packing_kind::none}, {"lz4", packing_kind::lz4}, {"zstd", packing_kind::zstd}}};
inline constexpr word_table<leaving_kind, 2> leaving_words{
    {{"staged", leaving_kind::staged}, {"direct", leaving_kind::direct}}};
inline constexpr word_table<latency_kind, 3> latency_words{{{"low", latency_kind::low},
                                                            {"balanced", latency_kind::balanced},
                                                            {"throughput", latency_kind::throughput}}};
inline constexpr word_table<guard_request, 4> guard_words{{{"auto", guard_request::automatic},
                                                           {"gap", guard_request::gap},
                                                           {"canary", guard_request::canary},
                                                           {"off", guard_request::off}}};
/// What a ring of GPU memory may be asked for; a ring with an end on the CPU is a memfd in any case
/// (memory_plan.hpp).
inline constexpr word_table<device::memory_kind, 2> link_memory_words{
    {{"vmm", device::memory_kind::vmm}, {"ipc", device::memory_kind::ipc}}};

/// A seat of a stage that stands for its instances on another host (spec/workers.hpp): another program sits
/// on it, with settings of its own.
struct remote_seat {
    std::string host;
    u32 instances = 0;  ///< there
    std::string run;
    nlohmann::json settings;
};

struct stage_spec {
    std::string name;  ///< letters, digits, - and _; at most 47
    std::string run;   ///< program: found beside carousel or in PATH, or a path relative to the pipeline file
    std::vector<std::string> inputs;         ///< names of stages, in the file's order
    std::vector<u32> input_indices;          ///< the same as indices into pipeline::stages
    std::vector<std::string> input_outputs;  ///< which output of each, by name; "": the first (outputs.hpp)
    std::vector<std::string>
        sampled_inputs;  ///< the key `sampled`: whose newest frame it takes (sampled_inputs.hpp)
    std::vector<u32> sampled_indices;          ///< as input_indices
    std::vector<std::string> sampled_outputs;  ///< as input_outputs
    bool has_output = false;                   ///< some other stage reads it
    std::string device = "auto";       ///< auto | cpu | cuda:N; the pipeline's unless the stage has its own
    std::vector<std::string> devices;  ///< where device is a list: of its instances, round robin; else empty
    std::optional<u32> in_flight;      ///< frames under way in one instance; empty: auto (depth_plan.hpp)
    u32 instances = 1;
    bool standby =
        false;  ///< a warm standby behind each instance; of a stage in Python unless the file says no
    restart_policy restart = restart_policy::always;
    u32 max_attempts = 3;         ///< deaths over one frame before it is passed on void
    u32 frame_timeout_ms = 2000;  ///< the pipeline's unless the stage has its own; 0: none
    /// of a process's first frame, which may warm a framework up; no shorter than frame_timeout_ms counts
    u32 first_frame_timeout_ms = 0;
    bool optional = false;
    /// Receives, in a part of a file over several hosts, what all comes from sources here: its END is theirs.
    bool returns = false;
    std::string host;                ///< where it runs, a section [hosts.NAME]; "": where `carousel run` is
    std::vector<std::string> hosts;  ///< where host is a list: of its instances, round robin; else empty
    std::optional<remote_seat> remote;  ///< its last instance, of a part of a file with such a list
    group_kind group = group_kind::blocking;
    /// the pipeline's unless the stage has its own; says nothing on the CPU
    isolation_kind isolation = isolation_kind::process;
    /// a tool's words, e.g. {"gdb", "--args"}; no deadline runs when there are any
    std::vector<std::string> prefix;
    nlohmann::json settings = nlohmann::json::object();  ///< all other keys: the stage's own
    source_position at;                                  ///< of the [[stage]] header
    std::map<std::string, source_position> key_at;       ///< of every key, own settings included
    /// A place for a program that nobody here starts: port_stage.hpp.
    [[nodiscard]] bool is_port() const noexcept { return run == "port"; }
    [[nodiscard]] bool latest() const noexcept { return group == group_kind::latest; }
    [[nodiscard]] bool is_remote(u32 instance) const noexcept { return remote && instance + 1 == instances; }
    /// A port that frames pass by while nobody is in it: vacant = "skip".
    [[nodiscard]] bool skips() const;
    /// A reader that frames pass by, by its own rule: what it has missed isn't lost.
    [[nodiscard]] bool may_miss() const { return latest() || skips(); }
    [[nodiscard]] u64 frame_timeout_ns() const noexcept { return frame_timeout_ms * ns_per_ms; }
    [[nodiscard]] u64 first_frame_timeout_ns() const noexcept {
        const bool longer = frame_timeout_ms != 0 && first_frame_timeout_ms > frame_timeout_ms;
        return longer ? first_frame_timeout_ms * ns_per_ms : frame_timeout_ns();
    }
    /// Place of a key, or of the stage when it has no such key.
    [[nodiscard]] const source_position& position_of(const std::string& key) const;
};

/// The ring behind the stage of that name, or behind its output of that name (STAGE.OUTPUT).
struct link_spec {
    std::optional<u32> window;  ///< frames beyond the oldest undelivered one; empty: auto (depth_plan.hpp)
    device::memory_kind memory = device::memory_kind::vmm;
    guard_request guard = guard_request::automatic;
    bool record = false;  ///< its frames go into the run's recording (recorder_stage.hpp)
    source_position at;
    std::map<std::string, source_position> key_at;
};

/// A machine that stages run on: [hosts.NAME] (hosts.hpp).
struct host_spec {
    std::string name;
    std::string address;  ///< numeric IPv4, of the network between the hosts; "": not said
    u32 port = 47100;     ///< its supervisor listens there; links take 65 ports each behind it
    launcher_kind launcher = launcher_kind::ssh;
    std::string login;    ///< ssh: [user@]host [the address]; slurm: the node [the name]
    std::string program;  ///< `carousel` there [the same path as here]
    std::string file;     ///< the pipeline file there [the same path as here]
    bool insecure = false;
    // Of the links that lead to it; what leads away from it says where it leads to.
    release_kind release = release_kind::committed;
    bool sync = false;  ///< durable: it calls sync(2) before it tells
    packing_kind compress = packing_kind::none;
    leaving_kind memory = leaving_kind::staged;
    source_position at;
    std::map<std::string, source_position> key_at;
    [[nodiscard]] bool durable() const noexcept { return release == release_kind::durable; }
};

/// The keys of [pipeline].
struct pipeline_spec {
    std::string name;  ///< [the file's name without its ending]
    std::string device = "auto";
    u32 width = 1280, height = 720;
    u32 frame_timeout_ms = 2000;  ///< while a stage computes on one frame (clocks.hpp); 0: none
    /// nothing moves and no stage says why: the control block is made anew; 0: never
    u32 stall_timeout_ms = 5000;
    u32 latest_lease_ms = 250;  ///< a latest reader's lease may be revoked after so long
    /// stages outlive a killed supervisor by so long; within it `carousel run FILE` takes them over
    f64 supervisor_grace_s = 5;
    u32 space_mib = 64;  ///< of the space that the run is for other programs, made when one opens it
    isolation_kind isolation =
        isolation_kind::process;  ///< process: a GPU context a stage; mps: one MPS domain for all
    latency_kind latency = latency_kind::balanced;  ///< how many frames "auto" keeps under way
    /// of a stage's turn on a GPU that it shares with other contexts; 0: no turns; empty: chosen by the run
    std::optional<u32> turn_frames;
    bool graphs = true;  ///< stages whose work is alike for every frame play it as CUDA graphs
    f64 fps = 0;         ///< frames a second of time and pace; 0: as fast as it goes
    /// frames that may be given up without an exit code of its own; all ones: any number
    u64 allow_dead_letters = 0;
    u64 frames = 0;  ///< ends after so many; 0: until it is told to
    std::string
        record_to;  ///< the recording of the rings that have record = true; "": NAME.mcap beside the file
    std::string compression;  ///< of it; "": the recorder's choice
    [[nodiscard]] u64 frame_timeout_ns() const noexcept { return frame_timeout_ms * ns_per_ms; }
    [[nodiscard]] u64 stall_timeout_ns() const noexcept { return stall_timeout_ms * ns_per_ms; }
    [[nodiscard]] u64 latest_lease_ns() const noexcept { return latest_lease_ms * ns_per_ms; }
};

struct pipeline : pipeline_spec {
    std::string file;                                ///< as it was given
    std::map<std::string, placed_value> parameters;  ///< of [parameters]: at the start; checked when the
                                                     ///< stages have named theirs (parameters.hpp)
    source_position parameters_at;
    std::vector<stage_spec> stages;                 ///< producers before consumers, else in the file's order
    std::map<std::string, link_spec> links;         ///< one for each stage with an output, named or not
    std::vector<host_spec> hosts;                   ///< as they stand in the file, by name
    std::map<std::string, source_position> key_at;  ///< keys of [pipeline]
    [[nodiscard]] const stage_spec* find(const std::string& stage) const noexcept;
    /// Some stage has a host that is not the one of `carousel run`.
    [[nodiscard]] bool is_spread() const noexcept;
};

/// A value for a key from the command line; put in before anything is checked.
struct key_override {
    enum class scope : u8 { path, sources, displays, hosts };
    std::string option;  ///< as the user wrote it, for messages
    std::string path;    ///< "size", "pipeline.size", "geometry.triangles", "link.fragment.window"
    nlohmann::json value;
    scope where = scope::path;  ///< sources, displays, hosts: `path` is a key of each source, of each sink
                                ///< that runs carousel-display, of each section [hosts.NAME]
};

/// Reads, overrides, checks. Throws config_error.
[[nodiscard]] pipeline read_pipeline(const std::string& file,
                                     const std::vector<key_override>& overrides = {});
/// The same from a text; `file` is for messages and relative paths.
[[nodiscard]] pipeline parse_pipeline(const std::string& text, const std::string& file,
                                      const std::vector<key_override>& overrides = {});

}  // namespace carousel::supervisor
