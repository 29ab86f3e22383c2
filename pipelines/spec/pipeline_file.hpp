#pragma once
// A pipeline file, read and checked: plain values, each with its source position, so that a later check (of a
// stage's own keys, or of a device's name) can still report file:line:col.
// Called by the `carousel` program before anything is started. Uses no CUDA and no device, and creates
// nothing. Errors: config_error (exit code 2), "file:line:col: what is wrong; what was expected". For a value
// from the command line, the message names the option instead of a place.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"
#include "core/types.hpp"
#include "device/backend.hpp"
#include "spec/words.hpp"

namespace carousel::ring {
struct stage_plan;
}

namespace carousel::supervisor {

/// The place of a key or a value.
struct source_position {
    std::string file;
    u32 line = 0, column = 0;  ///< counted from 1; 0: the whole file
    std::string option;        ///< not empty: from the command line, e.g. "--set size=[0,0]"
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
/// How the supervisor of a host is started: by this command itself (the host is this one), by a user, by ssh,
/// or by Slurm's srun.
enum class launcher_kind : u8 { here, none, ssh, slurm };
/// When a frame that is sent to another host is released here: after the remote ring has received it, or
/// after the files of the remote sinks contain it.
enum class release_kind : u8 { committed, durable };
/// Compression of frames that are sent to another host, applied only to frames that become smaller.
enum class packing_kind : u8 { none, lz4, zstd };
/// How a frame on a GPU is sent to another host: through the CPU's memory, or directly from the GPU's memory,
/// which UCX reads.
enum class leaving_kind : u8 { staged, direct };
enum class latency_kind : u8 { low, balanced, throughput };
/// Where a stage runs after its GPU has failed (plan/device_fallback.hpp).
enum class fallback_kind : u8 { none, cpu };
/// The area that follows each slot of a ring (guard_plan.hpp).
enum class guard_request : u8 { automatic, gap, canary, off };

// The words that the file uses.
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
inline constexpr word_table<fallback_kind, 2> fallback_words{
    {{"none", fallback_kind::none}, {"cpu", fallback_kind::cpu}}};
inline constexpr word_table<guard_request, 4> guard_words{{{"auto", guard_request::automatic},
                                                           {"gap", guard_request::gap},
                                                           {"canary", guard_request::canary},
                                                           {"off", guard_request::off}}};
/// Memory kinds that may be requested for a ring in GPU memory; a ring with an end on the CPU is always a
/// memfd (memory_plan.hpp).
inline constexpr word_table<device::memory_kind, 2> link_memory_words{
    {{"vmm", device::memory_kind::vmm}, {"ipc", device::memory_kind::ipc}}};

/// A seat that represents the instances of a stage on another host (spec/hosts.hpp). The seat is occupied by
/// another program, which has its own settings.
struct remote_seat {
    std::string host;
    u32 instances = 0;  ///< number of instances on that host
    std::string run;
    nlohmann::json settings;
};

struct stage_spec {
    std::string name;    ///< letters, digits, - and _; at most 47
    std::string run;     ///< program: found next to carousel or in PATH, or a path relative to the pipeline
                         ///< file
    std::string python;  ///< for a stage in Python: the folder of an environment, or an interpreter, as
                         ///< written in the file; "": the default interpreter (programs.hpp)
    std::vector<std::string> inputs;         ///< names of stages, in the file's order
    std::vector<u32> input_indices;          ///< the same as indices into pipeline::stages
    std::vector<std::string> input_outputs;  ///< the name of the output that each input reads; "": the first
                                             ///< output (links.hpp)
    std::vector<std::string>
        sampled_inputs;  ///< key `sampled`: stages whose newest frame this stage takes (links.hpp)
    std::vector<u32> sampled_indices;          ///< as input_indices
    std::vector<std::string> sampled_outputs;  ///< as input_outputs
    bool has_output = false;                   ///< at least one other stage reads the output
    std::string device = "auto";       ///< auto | cpu | cuda:N; the pipeline's device unless the stage has
                                       ///< its own
    std::vector<std::string> devices;  ///< if device is a list, its devices, which are assigned to the
                                       ///< instances round robin; otherwise empty
    /// cpu: the stage moves to the CPU alone, after GPU errors of its own processes
    fallback_kind fallback = fallback_kind::none;
    std::optional<u32> in_flight;  ///< frames in flight in one instance; empty: auto (depth_plan.hpp)
    u32 instances = 1;
    u32 every = 1;              ///< N: the stage takes each N-th frame, beginning with frame 0; the frames in
                                ///< between do not wait for the stage
    bool standby = false;       ///< keeps a warm standby per instance; the default for a stage in Python
    bool standby_auto = false;  ///< "auto": `standby` is chosen for the machine (plan/standby_plan.hpp)
    restart_policy restart = restart_policy::always;
    u32 max_attempts = 3;         ///< number of processes that may die while they work on one frame; after
                                  ///< that, the frame is passed on as a tombstone
    u32 frame_timeout_ms = 2000;  ///< the pipeline's value unless the stage has its own; 0: no limit
    /// for a process's first frame, which may initialise a framework; a value below frame_timeout_ms has no
    /// effect
    u32 first_frame_timeout_ms = 0;
    bool optional = false;
    /// In a partition of a file for several hosts: all frames that the stage receives originate from sources
    /// on this host, so its END is the END of those sources.
    bool returns = false;
    std::string host;                ///< the section [hosts.NAME] of the host where the stage runs; "": the
                                     ///< coordinator
    std::vector<std::string> hosts;  ///< if host is a list, its hosts, which are assigned to the instances
                                     ///< round robin; otherwise empty
    /// set only in a partition of a file in which host is a list: the seat that represents the instances on
    /// the other host; this seat is the stage's last instance
    std::optional<remote_seat> remote;
    group_kind group = group_kind::blocking;
    /// the pipeline's value unless the stage has its own; no effect on the CPU
    isolation_kind isolation = isolation_kind::process;
    /// words of a tool, e.g. {"gdb", "--args"}; a stage with a prefix has no deadline
    std::vector<std::string> prefix;
    nlohmann::json settings = nlohmann::json::object();  ///< all other keys, which the stage itself
                                                         ///< interprets
    source_position at;                                  ///< of the [[stage]] header
    std::map<std::string, source_position> key_at;       ///< places of every key, including the stage's own
                                                         ///< settings
    /// True for a port, which is a place for an external program (special_stages.hpp).
    [[nodiscard]] bool is_port() const noexcept { return run == "port"; }
    [[nodiscard]] bool latest() const noexcept { return group == group_kind::latest; }
    [[nodiscard]] bool is_remote(u32 instance) const noexcept { return remote && instance + 1 == instances; }
    /// True for a port that frames bypass while no program is attached: vacant = "skip".
    [[nodiscard]] bool skips() const;
    /// True for a reader that is configured to miss frames: a frame that it has missed does not count as
    /// lost.
    [[nodiscard]] bool may_miss() const { return latest() || skips(); }
    [[nodiscard]] u64 frame_timeout_ns() const noexcept { return frame_timeout_ms * ns_per_ms; }
    [[nodiscard]] u64 first_frame_timeout_ns() const noexcept {
        const bool longer = frame_timeout_ms != 0 && first_frame_timeout_ms > frame_timeout_ms;
        return longer ? first_frame_timeout_ms * ns_per_ms : frame_timeout_ns();
    }
    /// Returns the place of a key or, if the stage has no such key, the place of the stage.
    [[nodiscard]] const source_position& position_of(const std::string& key) const;
};

/// The keys of one ring, which belongs to a stage's first output, or to the output that STAGE.OUTPUT names.
struct link_spec {
    std::optional<u32> window;  ///< maximum number of frames after the oldest undelivered frame; empty: auto
                                ///< (depth_plan.hpp)
    device::memory_kind memory = device::memory_kind::vmm;
    guard_request guard = guard_request::automatic;
    std::optional<u32> latest_lease_ms;  ///< lease time of this ring's latest readers; empty: the pipeline's
                                         ///< value applies
    bool record = false;  ///< its frames are written to the run's recording (special_stages.hpp)
    source_position at;
    std::map<std::string, source_position> key_at;
    /// Returns 0 if the pipeline's value applies.
    [[nodiscard]] u64 latest_lease_ns() const { return latest_lease_ms.value_or(0) * ns_per_ms; }
};

/// A machine that stages run on: [hosts.NAME] (hosts.hpp).
struct host_spec {
    std::string name;
    std::string address;  ///< numeric IPv4, in the network between the hosts; "": not given
    u32 port = 47100;     ///< the port at which its supervisor listens; each link takes 65 ports above it
    launcher_kind launcher = launcher_kind::ssh;
    std::string login;    ///< ssh: [user@]host (default: the address); slurm: the node (default: the name)
    std::string program;  ///< path of `carousel` on that host (default: the same path as here)
    std::string file;     ///< path of the pipeline file on that host (default: the same path as here)
    bool insecure = false;
    // Applies to the links to this host; a link from this host is described in the section of the link's
    // destination.
    release_kind release = release_kind::committed;
    bool sync = false;  ///< durable: the host calls sync(2) before it reports
    packing_kind compress = packing_kind::none;
    leaving_kind memory = leaving_kind::staged;
    source_position at;
    std::map<std::string, source_position> key_at;
    [[nodiscard]] bool durable() const noexcept { return release == release_kind::durable; }
};

/// The keys of [pipeline].
struct pipeline_spec {
    std::string name;    ///< default: the file's name without its extension
    std::string folder;  ///< as in the file; see folder_of()
    std::string device = "auto";
    /// cpu: after GPU errors all stages on a GPU move to the CPU together
    fallback_kind fallback = fallback_kind::none;
    u32 fallback_after = 3;  ///< number of GPU errors within fallback_window_s
    f64 fallback_window_s = 60;
    bool fallback_inexact = false;  ///< also for stages that do not declare bit_equal
    u32 width = 1280, height = 720;
    u32 frame_timeout_ms = 2000;  ///< limit while a stage computes one frame (clocks.hpp); 0: no limit
    /// if no frame advances for this time and no stage reports a reason, the control block is rebuilt; 0:
    /// never
    u32 stall_timeout_ms = 5000;
    u32 latest_lease_ms = 250;  ///< time after which a latest reader's lease may be revoked
    /// time for which stages outlive a killed supervisor; during this time `carousel run FILE` can take them
    /// over
    f64 supervisor_grace_s = 5;
    u32 space_mib = 64;  ///< size of the space that the run offers to other programs; allocated when a
                         ///< program opens the space
    isolation_kind isolation =
        isolation_kind::process;  ///< process: a GPU context per stage; mps: one MPS domain for all
    latency_kind latency = latency_kind::balanced;  ///< how many frames "auto" keeps in flight
    /// length in frames of a stage's turn on a GPU that the stage shares with other contexts; 0: no turns;
    /// empty: chosen by the run
    std::optional<u32> turn_frames;
    bool graphs = true;  ///< stages whose work is the same for every frame run it as CUDA graphs
    f64 fps = 0;         ///< frames per second, as time base and pace; 0: as fast as possible
    /// number of frames that may be abandoned without an effect on the exit code; all ones: any number
    u64 allow_dead_letters = 0;
    u64 checkpoint_every = 0;       ///< in frames, the distance of the checkpoints of the states; 0: none
    std::string checkpoint_to;      ///< their folder; "": NAME.checkpoints next to the file
    bool allow_state_loss = false;  ///< a state that is lost has no effect on the exit code
    u64 frames = 0;                 ///< ends after this number of frames; 0: ends on request
    std::string record_to;  ///< the file into which the rings with record = true are recorded; "": NAME.mcap
                            ///< next to the file
    std::string compression;     ///< compression of the recording; "": the recorder's choice
    bool record_images = false;  ///< the recording has small JPEG pictures in addition
    [[nodiscard]] u64 frame_timeout_ns() const noexcept { return frame_timeout_ms * ns_per_ms; }
    [[nodiscard]] u64 stall_timeout_ns() const noexcept { return stall_timeout_ms * ns_per_ms; }
    [[nodiscard]] u64 latest_lease_ns() const noexcept { return latest_lease_ms * ns_per_ms; }
};

/// A value for a key from the command line; set before anything is checked.
struct key_override {
    enum class scope : u8 { path, sources, displays, hosts };
    std::string option;  ///< as the user wrote it, for messages
    std::string path;    ///< "size", "pipeline.size", "geometry.triangles", "link.fragment.window"
    nlohmann::json value;
    /// With scope::path, only the key that the member `path` names is set. With the other scopes, this key is
    /// set in each source, in each sink that runs carousel-display, or in each section [hosts.NAME].
    scope where = scope::path;
};

struct pipeline : pipeline_spec {
    std::string file;                                ///< as it was given
    std::map<std::string, placed_value> parameters;  ///< [parameters], the initial values; checked after the
                                                     ///< stages have named their parameters (describe.hpp)
    source_position parameters_at;
    std::vector<stage_spec> stages;                 ///< producers precede consumers; apart from that, in the
                                                    ///< file's order
    std::map<std::string, link_spec> links;         ///< one for each stage with an output, whether or not the
                                                    ///< file has a section for it
    std::vector<host_spec> hosts;                   ///< sorted by name
    std::map<std::string, source_position> key_at;  ///< keys of [pipeline]
    std::string text;                               ///< text of the file; "": a partition for one host
    std::vector<key_override> overrides;            ///< the overrides that were applied to the text
    std::string programs;  ///< folder of Carousel's own programs; "": the folder of the running program
    [[nodiscard]] const stage_spec* find(const std::string& stage) const noexcept;
    /// True if at least one stage runs on a host other than the coordinator.
    [[nodiscard]] bool is_spread() const noexcept;
};

/// Returns the folder that relative paths of the pipeline file refer to, as an absolute path: the folder of
/// the file, unless the file's key `folder` names another folder.
[[nodiscard]] std::string folder_of(const pipeline& p);

/// Overrides as JSON, for a program that reads the same text later. The second throws json::exception.
[[nodiscard]] nlohmann::json to_json(const std::vector<key_override>& overrides);
[[nodiscard]] std::vector<key_override> overrides_from(const nlohmann::json& saved);

/// Returns the text of a pipeline file. Throws config_error.
[[nodiscard]] std::string read_pipeline_text(const std::string& file);

/// Reads, overrides, checks. Throws config_error.
[[nodiscard]] pipeline read_pipeline(const std::string& file,
                                     const std::vector<key_override>& overrides = {});
/// The same for a text instead of a file; `file` is used for messages and relative paths.
[[nodiscard]] pipeline parse_pipeline(const std::string& text, const std::string& file,
                                      const std::vector<key_override>& overrides = {});

// Only this function copies keys of a pipeline file into the plan from which a control block is made.

/// Does not set the values that depend on the stage's description: the size of its buffers, and the
/// committer.
[[nodiscard]] ring::stage_plan stage_plan_of(const stage_spec& s, const link_spec& output);

}  // namespace carousel::supervisor
