#pragma once
// Requests to a run's supervisor over DIR/control.sock: one struct per request. This file writes and reads
// them as JSON.
//   {"command": "ps"}, {"command": "parameters"}, {"command": "shutdown"}, {"command": "rebuild"}
//   {"command": "stop", "stage": "fragment.1"}      also with cont, restart, down and up
//   {"command": "down"}                             without a stage: as "shutdown"
//   {"command": "shutdown", "as_interrupt": true}   counts as Ctrl-C: the second one ends the run at once
//   {"command": "kill", "stage": "fragment", "signal": 9}
//   {"command": "inject", "stage": "fragment", "fault": "hang"}
//   {"command": "set", "values": {"spin": 0.5}}, {"command": "set", "reset": true}
//   {"command": "trace", "lease_ms": 3000, "since": 17}
//   {"command": "trace_file", "host": "b"}          starts a trace on host b; later requests carry its id
//   {"command": "trace_file", "host": "b", "id": 7, "stop": true, "at": 65536}
// Each may carry "run_id", the id of the intended run: another run at that path refuses the request. Unknown
// keys are ignored. Any process, any thread.

#include <optional>
#include <string>
#include <variant>

#include "core/described.hpp"
#include "shm/injected_fault.hpp"

namespace carousel::shm {

void to_json(nlohmann::json& j, injected_fault fault);
/// Throws config_error, which lists the known faults.
void from_json(const nlohmann::json& j, injected_fault& fault);

}  // namespace carousel::shm

namespace carousel::run {

/// State of the run and its stages: ps_answer.
struct ps_request {
    static constexpr const char* command = "ps";
};
BOOST_DESCRIBE_STRUCT(ps_request, (), ())
/// Parameters that can be set: parameter_state.
struct parameters_request {
    static constexpr const char* command = "parameters";
};
BOOST_DESCRIBE_STRUCT(parameters_request, (), ())
/// Sets parameters: parameter_state with a message.
struct set_request {
    static constexpr const char* command = "set";
    static constexpr field_rules rules{.sparse = true};
    nlohmann::json values = nlohmann::json::object();  ///< by name; the receiver checks them by the schema
    bool reset = false;  ///< first resets all values to those at the start of the run
};
BOOST_DESCRIBE_STRUCT(set_request, (), (values, reset))
/// Makes the stages write timestamps for `lease_ms`, and returns the notes about them: trace_answer.
struct trace_request {
    static constexpr const char* command = "trace";
    static constexpr field_rules rules{.sparse = true};
    u64 lease_ms = 3000;
    u64 since = 0;  ///< number of the last note that the caller has
};
BOOST_DESCRIBE_STRUCT(trace_request, (), (lease_ms, since))
/// Trace of another host of the pipeline, as a file there, transferred in parts: trace_file_answer.
struct trace_file_request {
    static constexpr const char* command = "trace_file";
    static constexpr field_rules rules{.sparse = true};
    std::string host;   ///< "": the host whose supervisor gets the request
    u64 id = 0;         ///< 0: starts a trace
    bool stop = false;  ///< finish and write the file; idempotent
    u64 at = 0;         ///< byte offset of the requested part; at or past the end of the file: removes it
};
BOOST_DESCRIBE_STRUCT(trace_file_request, (), (host, id, stop, at))
/// Ends the run; frames in flight are delivered.
struct end_request {
    static constexpr const char* command = "shutdown";
    static constexpr field_rules rules{.sparse = true};
    bool as_interrupt = false;  ///< counts as Ctrl-C: the second one ends the run at once
};
BOOST_DESCRIBE_STRUCT(end_request, (), (as_interrupt))
/// Rebuilds memory and words, as after the death of an owner of ring memory; for tests without a GPU.
struct rebuild_request {
    static constexpr const char* command = "rebuild";
};
BOOST_DESCRIBE_STRUCT(rebuild_request, (), ())

enum class seat_order : u8 { stop, cont, restart, down, up };
BOOST_DESCRIBE_ENUM(seat_order, stop, cont, restart, down, up)

/// `stage`: "fragment" for all its instances, or "fragment.1".
struct seat_request {
    static constexpr field_rules rules{.sparse = true};
    seat_order order = seat_order::stop;
    std::string stage;
};
BOOST_DESCRIBE_STRUCT(seat_request, (), (stage))
struct kill_request {
    static constexpr const char* command = "kill";
    static constexpr field_rules rules{.missing_is_default = true};
    std::string stage;
    int signal = 9;
};
BOOST_DESCRIBE_STRUCT(kill_request, (), (stage, signal))
struct inject_request {
    static constexpr const char* command = "inject";
    std::string stage;
    shm::injected_fault fault = shm::injected_fault::nothing;
};
BOOST_DESCRIBE_STRUCT(inject_request, (), (stage, fault))

using request = std::variant<ps_request, parameters_request, set_request, trace_request, trace_file_request,
                             end_request, rebuild_request, seat_request, kill_request, inject_request>;

/// The "command" of its JSON.
[[nodiscard]] const char* command_of(const request& r) noexcept;
[[nodiscard]] nlohmann::json to_json(const request& r);
/// The same request for another stage; a request without a stage is returned unchanged.
[[nodiscard]] request of_stage(request r, const std::string& stage);

/// Common part of every request. It is read first, since another run refuses every request.
struct heading {
    std::string command;
    std::optional<std::string> run_id;  ///< the intended run; empty: any run at that path
};
/// Throws config_error: it cannot be read.
[[nodiscard]] heading read_heading(const nlohmann::json& message);
/// Throws config_error: it cannot be read, or names an unknown command or fault.
[[nodiscard]] request read_request(const nlohmann::json& message);
/// Text of such a refusal.
[[nodiscard]] std::string unreadable_request(const std::exception& why);

}  // namespace carousel::run
