#pragma once
// What may be asked of a run's supervisor over DIR/control.sock: one struct a request, written to JSON and
// read from it here.
//   {"command": "ps"}, {"command": "parameters"}, {"command": "shutdown"}, {"command": "rebuild"}
//   {"command": "stop", "stage": "fragment.1"}      the same with cont, restart, down and up
//   {"command": "down"}                             as "shutdown"
//   {"command": "shutdown", "as_interrupt": true}   counts as Ctrl-C: the second one ends the run at once
//   {"command": "kill", "stage": "fragment", "signal": 9}
//   {"command": "inject", "stage": "fragment", "fault": "hang"}
//   {"command": "set", "values": {"spin": 0.5}}, {"command": "set", "reset": true}
//   {"command": "trace", "lease_ms": 3000, "since": 17}
//   {"command": "trace_file", "host": "b"}          begins one there; the others bear its number
//   {"command": "trace_file", "host": "b", "id": 7, "stop": true, "at": 65536}
// Each may bear "run_id", the run that is meant: another run at that path refuses. Keys that a request does
// not know are passed over. Any process, any thread.

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "core/json.hpp"
#include "shm/injected_fault.hpp"

namespace carousel::run {

/// How the run and its stages are: ps_answer.
struct ps_request {};
/// What may be set: parameter_state.
struct parameters_request {};
/// Sets parameters: parameter_state with a message.
struct set_request {
    nlohmann::json values = nlohmann::json::object();  ///< by name; checked by who knows the schema
    bool reset = false;                                ///< first all values as the run was started with
};
/// Has the stages stamp for so long, and tells what befell them: trace_answer.
struct trace_request {
    u64 lease_ms = 3000;
    u64 since = 0;  ///< number of the last note that is known
};
/// A trace of another host of the pipeline, as a file there, which comes over in parts: trace_file_answer.
struct trace_file_request {
    std::string host;   ///< "": whose supervisor is asked
    u64 id = 0;         ///< 0: begins one
    bool stop = false;  ///< it is to be written; again and again is as good as once
    u64 at = 0;         ///< of a written one: the part that begins there; behind its end: it is removed
};
/// Ends the run; what is begun is delivered.
struct end_request {
    bool as_interrupt = false;  ///< counts as Ctrl-C: the second one ends the run at once
};
/// Memory and words are made anew: what the death of an owner of ring memory does, for tests where there is
/// no GPU.
struct rebuild_request {};

enum class seat_order : u8 { stop, cont, restart, down, up };
[[nodiscard]] const char* name_of(seat_order o) noexcept;
/// Nothing: no such order.
[[nodiscard]] std::optional<seat_order> seat_order_named(std::string_view name) noexcept;

/// `stage`: "fragment", all its instances, or "fragment.1".
struct seat_request {
    seat_order order = seat_order::stop;
    std::string stage;
};
struct kill_request {
    std::string stage;
    int signal = 9;
};
struct inject_request {
    std::string stage;
    shm::injected_fault fault = shm::injected_fault::nothing;
};

using request = std::variant<ps_request, parameters_request, set_request, trace_request, trace_file_request,
                             end_request, rebuild_request, seat_request, kill_request, inject_request>;

/// Its command, as it is written.
[[nodiscard]] const char* command_of(const request& r) noexcept;
[[nodiscard]] nlohmann::json to_json(const request& r);
/// The same of another stage; what is asked of no stage stays as it is.
[[nodiscard]] request of_stage(request r, const std::string& stage);

/// What every request has: read first, since another run refuses whatever is asked.
struct heading {
    std::string command;
    std::optional<std::string> run_id;  ///< the run that is meant; nothing: the one that is there
};
/// Throws config_error: it can't be read.
[[nodiscard]] heading read_heading(const nlohmann::json& message);
/// Throws config_error: it can't be read, or names no command or no fault that is known.
[[nodiscard]] request read_request(const nlohmann::json& message);
/// The sentence of such a refusal.
[[nodiscard]] std::string unreadable_request(const std::exception& why);

}  // namespace carousel::run
