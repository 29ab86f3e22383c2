#pragma once
// Requests to a run's supervisor, and its answers.

#include <optional>
#include <string>
#include <variant>

#include "core/described.hpp"
#include "core/errors.hpp"
#include "core/types.hpp"
#include "parameters/parameter_schema.hpp"
#include "shm/injected_fault.hpp"

namespace carousel::shm {

// Requests of a client to a run's supervisor over DIR/control.sock: one struct per request, whose type is
// "type" in its JSON.
//   {"type": "ps"}, {"type": "parameters"}, {"type": "shutdown"}, {"type": "rebuild"}
//   {"type": "seat", "order": "stop", "stage": "fragment.1"}     also cont, restart, down and up
//   {"type": "shutdown", "as_interrupt": true}   counts as Ctrl-C: a second Ctrl-C ends the run at once
//   {"type": "kill", "stage": "fragment", "signal": 9}
//   {"type": "inject", "stage": "fragment", "fault": "hang"}
//   {"type": "set", "values": {"spin": 0.5}}, {"type": "set", "reset": true}
//   {"type": "reload", "text": "[pipeline]...", "programs": "/usr/bin", "replies": {...}}
//   {"type": "continue", "successor": "/opt/carousel/bin/carousel"}
//   {"type": "trace", "lease_ms": 3000, "since": 17}
//   {"type": "trace_file", "host": "b"}          starts a trace on host b; later requests carry its id
//   {"type": "trace_file", "host": "b", "id": 7, "stop": true, "at": 65536}
// Each may carry "run_id", the id of the intended run: another run at that path refuses the request. Unknown
// keys are ignored. Any process, any thread.

void to_json(nlohmann::json& j, injected_fault fault);
/// Throws config_error, which lists the known faults.
void from_json(const nlohmann::json& j, injected_fault& fault);

}  // namespace carousel::shm

namespace carousel::run {

/// Requests the state of the run and its stages; the answer is a ps_answer.
struct ps_request {
    static constexpr const char* type = "ps";
};
BOOST_DESCRIBE_STRUCT(ps_request, (), ())
/// Requests the parameters that can be set; the answer is a parameter_state.
struct parameters_request {
    static constexpr const char* type = "parameters";
};
BOOST_DESCRIBE_STRUCT(parameters_request, (), ())
/// Sets parameters; the answer is a parameter_state with a message.
struct set_request {
    static constexpr const char* type = "set";
    static constexpr field_rules rules{.sparse = true};
    /// values by parameter name; the receiver checks them against the schema
    nlohmann::json values = nlohmann::json::object();
    bool reset = false;  ///< first resets all values to those at the start of the run
};
BOOST_DESCRIBE_STRUCT(set_request, (), (values, reset))
/// Makes the stages write timestamps for `lease_ms`, and requests the notes about the stages; the answer is a
/// trace_answer.
struct trace_request {
    static constexpr const char* type = "trace";
    static constexpr field_rules rules{.sparse = true};
    u64 lease_ms = 3000;
    u64 since = 0;  ///< number of the last note that the caller has
};
BOOST_DESCRIBE_STRUCT(trace_request, (), (lease_ms, since))
/// Traces another host of the pipeline: the trace is written to a file on that host, and the file is
/// transferred in parts; the answer is a trace_file_answer.
struct trace_file_request {
    static constexpr const char* type = "trace_file";
    static constexpr field_rules rules{.sparse = true};
    std::string host;   ///< "": the host whose supervisor gets the request
    u64 id = 0;         ///< 0: starts a trace
    bool stop = false;  ///< requests that the trace ends and the file is written; may be sent again
    u64 at = 0;  ///< byte offset of the requested part; if the offset is at or past the end of the file, the
                 ///< file is removed
};
BOOST_DESCRIBE_STRUCT(trace_file_request, (), (host, id, stop, at))
/// Ends the run; frames in flight are delivered.
struct end_request {
    static constexpr const char* type = "shutdown";
    static constexpr field_rules rules{.sparse = true};
    bool as_interrupt = false;  ///< counts as Ctrl-C: a second Ctrl-C ends the run at once
};
BOOST_DESCRIBE_STRUCT(end_request, (), (as_interrupt))
/// Rebuilds memory and words as if a process that owns ring memory had died; for tests without a GPU.
struct rebuild_request {
    static constexpr const char* type = "rebuild";
};
BOOST_DESCRIBE_STRUCT(rebuild_request, (), ())

/// Moves stages between their configured GPU and the CPU (supervisor/engine/device_switch.hpp).
struct device_request {
    static constexpr const char* type = "device";
    static constexpr field_rules rules{.missing_is_default = true};
    std::string device;  ///< "cpu", or the configured device
    std::string stage;   ///< "": every stage that can move
    /// output of carousel-probe, which the client has run, because the supervisor never waits for a driver;
    /// null: the GPUs are as at the run's start
    nlohmann::json probe;
};
BOOST_DESCRIBE_STRUCT(device_request, (), (device, stage, probe))

enum class seat_order : u8 { stop, cont, restart, down, up };
BOOST_DESCRIBE_ENUM(seat_order, stop, cont, restart, down, up)

/// `stage`: "fragment" for all its instances, or "fragment.1".
struct seat_request {
    static constexpr const char* type = "seat";
    seat_order order = seat_order::stop;
    std::string stage;
};
BOOST_DESCRIBE_STRUCT(seat_request, (), (order, stage))
struct kill_request {
    static constexpr const char* type = "kill";
    static constexpr field_rules rules{.missing_is_default = true};
    std::string stage;
    int signal = 9;
};
BOOST_DESCRIBE_STRUCT(kill_request, (), (stage, signal))
struct inject_request {
    static constexpr const char* type = "inject";
    std::string stage;
    shm::injected_fault fault = shm::injected_fault::nothing;
};
BOOST_DESCRIBE_STRUCT(inject_request, (), (stage, fault))

/// Applies a changed pipeline file to the running pipeline. The answer is a reload_answer, which is sent
/// after the last stage has been restarted. Without a text: waits for the end of the reload in progress.
struct reload_request {
    static constexpr const char* type = "reload";
    static constexpr field_rules rules{.sparse = true};
    std::string text;      ///< of the pipeline file
    std::string programs;  ///< folder of Carousel's own programs
    /// replies of the stages' programs (spec/describe.hpp)
    nlohmann::json replies = nlohmann::json::object();
    /// also restarts the stages whose keys have not changed
    bool restart_all = false;
    std::string successor;  ///< program that replaces the supervisor's program after the reload; "": none
};
BOOST_DESCRIBE_STRUCT(reload_request, (), (text, programs, replies, restart_all, successor))
/// Delivers the frames in flight, and then continues as a new run of the program `successor` at the next
/// frame. The answer is a verdict.
struct continue_request {
    static constexpr const char* type = "continue";
    std::string successor;
};
BOOST_DESCRIBE_STRUCT(continue_request, (), (successor))

using request = std::variant<ps_request, parameters_request, set_request, trace_request, trace_file_request,
                             end_request, rebuild_request, seat_request, kill_request, inject_request,
                             reload_request, continue_request, device_request>;

/// The name of the request's command: "ps", "stop".
[[nodiscard]] const char* command_of(const request& r) noexcept;
[[nodiscard]] nlohmann::json to_json(const request& r);
/// Returns the request with `stage` as its stage; a request that names no stage is returned unchanged.
[[nodiscard]] request of_stage(request r, const std::string& stage);

/// Throws config_error if the message cannot be read, or names an unknown command or fault.
[[nodiscard]] request read_request(const nlohmann::json& message);
/// Returns the text of the refusal for an exception that read_request() has thrown.
[[nodiscard]] std::string unreadable_request(const std::exception& why);

// The supervisor's answer to a request: the request was carried out, or it was refused, with the reason. This
// file writes and reads it.
//   {"ok": true, "message": "..."}
//   {"ok": false, "code": 2, "message": "..."}      "code": an exit code
// With "later": true the request can be repeated. Answers with more content (parameters, ps_message.hpp,
// trace_message.hpp) also have "ok": true; every refusal has the form above. Any process, any thread.

struct verdict {
    bool ok = false;
    std::optional<std::string> message;
    std::optional<i64> code;  ///< set only in a refusal: an exit code
    bool later = false;       ///< refused because of a temporary state: a later attempt can succeed
};
BOOST_DESCRIBE_STRUCT(verdict, (), (ok, message, code, later))

[[nodiscard]] verdict carried_out(std::string message);
[[nodiscard]] verdict refused(int code, std::string message);
/// A refusal without an exit code, as sent to a stage or a viewer.
[[nodiscard]] verdict refused(std::string message);

[[nodiscard]] nlohmann::json to_json(const verdict& v);
/// Never throws: a field that is missing or has another type stays empty; an answer without "ok": true is a
/// refusal.
[[nodiscard]] verdict read_verdict(const nlohmann::json& answer);

/// Refused because of a temporary state: a later attempt can succeed.
class refused_for_now : public config_error {
public:
    using config_error::config_error;
};

// The supervisor's answers to {"type": "parameters"} and {"type": "set"}. This
// file writes and reads them.
//   {"type": "parameters"}     -> {"ok": true, "schema": {...}, "values": {...}, "number": 3, "from": 120}
//   {"type": "set", "values": {"spin": 0.5}}  -> the same, and "message": "spin is 0.5 from frame 120 on"
//   {"type": "set", "reset": true}            -> the same: all values as at the start of the run
// A refusal has changed nothing. If a request is refused with "later": true because too many changes already
// wait for future frames, it can be retried.

struct parameter_state {
    ring::parameter_schema schema;                     ///< empty: this pipeline has no parameters
    nlohmann::json values = nlohmann::json::object();  ///< values of future frames, by parameter name
    u64 number = 0;                                    ///< changes since the start
    u64 from = 0;                                      ///< first frame to which the newest values apply
    std::string message = {};                          ///< result of "set"; "" in the answer to "parameters"
};

// The supervisor's answer to {"type": "reload"}. A refusal has the form of a verdict; a refused request has
// changed nothing.

/// A changed key of the pipeline file; the run now uses the new value.
struct reloaded_key {
    std::string stage;  ///< "": the key belongs to [pipeline] or [parameters]
    std::string key;
    nlohmann::json from, to;
    bool live = false;  ///< false: the change required a restart of the stage
};
BOOST_DESCRIBE_STRUCT(reloaded_key, (), (stage, key, from, to, live))
struct restarted_stage {
    std::string stage;   ///< "fragment.1"
    i32 old_pid = 0;     ///< 0: the stage had no process
    i32 pid = 0;         ///< 0: the stage has no process, because it is down, is done or has failed
    std::string state;   ///< as in `ps`
    bool ready = false;  ///< false: its process failed at the start, and the later stages were not restarted
};
BOOST_DESCRIBE_STRUCT(restarted_stage, (), (stage, old_pid, pid, state, ready))
struct reload_answer {
    std::vector<reloaded_key> keys;
    std::vector<restarted_stage> restarted;
    /// stages that keep their old process, because an earlier stage failed to restart
    std::vector<std::string> pending;
    bool ok = true;
    std::string message;
};
BOOST_DESCRIBE_STRUCT(reload_answer, (), (ok, message, keys, restarted, pending))

[[nodiscard]] nlohmann::json to_json(const parameter_state& s);
/// Throws config_error for an answer of another version.
[[nodiscard]] parameter_state parameters_from(const nlohmann::json& answer);

}  // namespace carousel::run
