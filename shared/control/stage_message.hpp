#pragma once
// Messages that a supervisor receives over DIR/control.sock from a stage, from a port's program, or from the
// process that owns `ipc` memory; "type" names the struct (control_message.hpp). A hello is answered with an
// attach_message; a return message and an owner message are each answered with a welcome_message. Each of
// them may be refused instead (request_message.hpp), with "later": true if a retry can succeed. A program
// that sends a hello for a port sends its own pidfd, too: SO_PEERCRED reports pid 0 for a process in another
// pid namespace.

#include <optional>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/described.hpp"
#include "device/described.hpp"
#include "ring/participants.hpp"

namespace carousel {

BOOST_DESCRIBE_STRUCT(clock_identity, (), (time_namespace, offset_ns, realtime_ns))
namespace ring {
BOOST_DESCRIBE_STRUCT(incarnation_id, (), (seat, entry, epoch))
}

}  // namespace carousel

namespace carousel::run {

/// The first message of a process that starts.
struct hello_message {
    static constexpr const char* type = "hello";
    std::string stage;
    ring::incarnation_id incarnation;  ///< empty: started by hand
    i32 pid = 0;
    bool port = false, writes = false;  ///< port: the process is a port's program; writes: that program
                                        ///< writes frames
    /// Start time of the process; 0: not reported. On a kernel without SO_PEERPIDFD the supervisor needs it,
    /// in addition to the pid, to identify the process (shm/process_id.hpp).
    u64 start_time = 0;
    clock_identity clock = {};  ///< the supervisor refuses a process that reads another clock
    static constexpr field_rules rules{.sparse = true};
};
BOOST_DESCRIBE_STRUCT(hello_message, (), (stage, incarnation, pid, port, writes, start_time, clock))

/// The process is LIVE; readiness is always reported, never guessed.
struct ready_message {
    static constexpr const char* type = "ready";
};
BOOST_DESCRIBE_STRUCT(ready_message, (), ())

/// Sent by a stage to a second supervisor, with the fds of all memory of the run.
struct return_message {
    static constexpr const char* type = "return";
    std::string run_id, stage;
    ring::incarnation_id incarnation;  ///< a standby has epoch 0 until it is promoted
    bool ready = false;
    nlohmann::json memory = nlohmann::json::array();  ///< descriptions of the memory, as sent by the first
                                                      ///< supervisor: attach_message::kept
    u64 start_time = 0;                               ///< as in hello_message
    static constexpr field_rules rules{.sparse = true};
};
BOOST_DESCRIBE_STRUCT(return_message, (), (run_id, stage, incarnation, ready, memory, start_time))

/// The process has completed the file of the log lines that it wrote while there was no supervisor.
struct back_message {
    static constexpr const char* type = "back";
};
BOOST_DESCRIBE_STRUCT(back_message, (), ())

/// Sent to a standby when the run is rebuilt: it detaches, reports that, and waits on the same connection for
/// an attach_message with another entry.
struct start_over_message {
    static constexpr const char* type = "start_over";
};
BOOST_DESCRIBE_STRUCT(start_over_message, (), ())
[[nodiscard]] bool is_start_over(const std::string& text);

/// A standby has unmapped the control block and all memory of the run. No work that it has started can reach
/// them.
struct detached_message {
    static constexpr const char* type = "detached";
};
BOOST_DESCRIBE_STRUCT(detached_message, (), ())

/// A port's program has unmapped the run's memory, and keeps running.
struct left_message {
    static constexpr const char* type = "left";
};
BOOST_DESCRIBE_STRUCT(left_message, (), ())

/// Sent by the owner of `ipc` memory to a second supervisor.
struct owner_message {
    static constexpr const char* type = "owner";
    std::string run_id;
    u64 start_time = 0;  ///< as in hello_message
    static constexpr field_rules rules{.sparse = true};
};
BOOST_DESCRIBE_STRUCT(owner_message, (), (run_id, start_time))

/// Answer to a return_message or an owner_message.
struct welcome_message {
    int log = -1;  ///< index of the descriptor of the new pipe for stdout and stderr; -1: none
    bool ok = true;
};
BOOST_DESCRIBE_STRUCT(welcome_message, (), (ok, log))
struct welcome_answer {
    std::optional<welcome_message> welcome;
    std::optional<std::string> refused;
};
/// Accepts any text. If the text is neither a welcome nor a refusal (a message of a later version, for
/// example), both members are empty.
[[nodiscard]] welcome_answer read_welcome(const std::string& text);

// The supervisor's answer to a stage's hello or to its detached_message: everything that the stage needs to
// start, with the descriptors of its memory. This file describes and reads it.
//   {ok, run_id, runtime_directory, output_directory, stage, incarnation {seat, entry, epoch}, standby,
//    width, height, supervisor_grace_s, settings {...}, graphs, asked_device, folder, device {kind, uuid,
//    ordinal}, inputs [{stage, format}], sampled [{stage, format, described}], outputs [{name, format}],
//    parameters (schema, or null), depth {latency, sharing, lanes_given, window_given, contexts, token,
//    turn_frames, turn_stages} (or null), checkpoint_folder, checkpoint_every, checkpoint, links [{link,
//    MEMORY}], assets [{index, name, MEMORY}], kept
//    [{asset, index, MEMORY}]}
// MEMORY: memory_message.hpp. "control" and "pid" are for a port's program: the index of the control block's
// descriptor, and the pid with which the program claims its entry. "kept" is all memory of the run, including
// memory that this stage never maps: the stage holds those descriptors open until it exits, so that any one
// surviving stage can return all memory to a second supervisor.

struct attach_message {
    struct input {
        std::string stage;      ///< STAGE, or STAGE.OUTPUT
        nlohmann::json format;  ///< frame/frame_format.hpp
    };
    struct output {
        std::string name;  ///< "": unnamed
        nlohmann::json format;
    };
    struct sampled_input {
        std::string stage;  ///< the stage's name in the pipeline file
        nlohmann::json format;
        bool described = true;  ///< configure() gets the format; false if the sampled stage is downstream
    };
    std::string run_id, runtime_directory, output_directory, stage;
    ring::incarnation_id incarnation;
    bool standby = false;
    u32 width = 0, height = 0;
    f64 supervisor_grace_s = 5;
    nlohmann::json settings = nlohmann::json::object();
    bool graphs = false;                        ///< identical work of every frame is launched as CUDA graphs
    std::string asked_device = "auto", folder;  ///< as passed to configure()
    device::device_id device;
    std::vector<input> inputs;
    std::vector<sampled_input> sampled;
    std::vector<output> outputs;    ///< in the order of the stage's rings
    nlohmann::json parameters;      ///< parameters/parameter_schema.hpp; null: none
    nlohmann::json depth;           ///< limits of the frames in flight; null: the limits in the control block
                                    ///< apply
    int control = -1;               ///< for a port's program: index of the control block's descriptor
    i32 pid = 0;                    ///< for a port's program: the pid in the program's entry
    std::string checkpoint_folder;  ///< run/checkpoint.hpp
    u64 checkpoint_every = 0;       ///< in frames; 0: no checkpoints
    u64 checkpoint = 0;             ///< the block begins with the states of that one; 0: with none
    bool ok = true;
    nlohmann::json links = nlohmann::json::array(), assets = nlohmann::json::array(),
                   kept = nlohmann::json::array();
};
BOOST_DESCRIBE_STRUCT(attach_message::input, (), (stage, format))
BOOST_DESCRIBE_STRUCT(attach_message::output, (), (name, format))
BOOST_DESCRIBE_STRUCT(attach_message::sampled_input, (), (stage, format, described))
BOOST_DESCRIBE_STRUCT(attach_message, (),
                      (ok, run_id, runtime_directory, output_directory, stage, incarnation, standby, width,
                       height, supervisor_grace_s, settings, graphs, asked_device, folder, device, inputs,
                       sampled, outputs, parameters, depth, control, pid, checkpoint_folder, checkpoint_every,
                       checkpoint, links, assets, kept))

/// Throws config_error for a refusal, shm_error for a seat, entry or count out of range, json::exception for
/// an answer of another version.
[[nodiscard]] attach_message read_attach(const nlohmann::json& answer);

}  // namespace carousel::run
