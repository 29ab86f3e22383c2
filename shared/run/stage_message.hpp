#pragma once
// What a stage, and the process that owns `ipc` memory, say to a supervisor over DIR/control.sock, and what
// they hear. Written and read here; attach_message.hpp has the answer to a hello.
//   {"hello": {"stage", "seat", "entry", "epoch", "pid", "start_time"}}    without a seat: started by hand.
//                       start_time, as in "return" and "owner", tells a supervisor on a kernel without
//                       SO_PEERPIDFD which process of that pid it is (shm/peer_process.hpp)
//                       Each hello has a "clock", {"time_namespace", "offset_ns", "realtime_ns"}, as
//                       core/clock_identity.hpp describes it: the supervisor refuses a process that reads
//                       another clock
//   {"hello": {"stage", "port": true, "writes", "pid"}}    a port's program (stages/sdk/port_frames.hpp),
//   with
//                       its own pidfd: SO_PEERCRED says pid 0 of another pid namespace
//   {"left": true}      of a port's program: it has unmapped the run's memory, and goes on living
//   {"ready": true}     once it is LIVE: readiness is told, never guessed
//   {"return": {"run_id", "stage", "seat", "entry", "epoch", "ready", "memory": [...]}}    to a second
//   supervisor, with
//                       the fds of all memory of the run; a standby bears epoch 0 until it is promoted
//   {"back": true}      what it wrote to a file in the meantime is whole
//   {"owner": {"run_id"}}    of `ipc` memory, to a second supervisor
//   <- {"welcome": {"log": fd index or -1}}    or {"refused": "why", "again": true where it may be tried
//   again}

#include <optional>
#include <string>

#include "core/clock_identity.hpp"
#include "core/json.hpp"
#include "ring/participants.hpp"

namespace carousel::run {

struct hello_message {
    std::string stage;
    ring::incarnation_id incarnation;  ///< empty: started by hand
    i32 pid = 0;
    bool port = false, writes = false;  ///< a port's program, and which way its frames go
    u64 start_time = 0;                 ///< of the process (shm/process_id.hpp); 0: not reported
    clock_identity clock = {};          ///< of the process; empty: not reported
};
struct return_message {
    std::string run_id, stage;
    ring::incarnation_id incarnation;
    bool ready = false;
    nlohmann::json memory =
        nlohmann::json::array();  ///< as the first supervisor put it: attach_message::kept
    u64 start_time = 0;           ///< as in hello_message
};
struct owner_message {
    std::string run_id;
    u64 start_time = 0;  ///< as in hello_message
};
struct welcome_message {
    int log = -1;  ///< which descriptor is the new pipe for stdout and stderr; -1: none came
};
/// What a stage or an owner hears; neither of them: of a later version, to be passed over.
struct welcome_answer {
    std::optional<welcome_message> welcome;
    std::optional<std::string> refused;
};

[[nodiscard]] nlohmann::json to_json(const hello_message& m);
[[nodiscard]] nlohmann::json to_json(const return_message& m);
[[nodiscard]] nlohmann::json to_json(const owner_message& m);
[[nodiscard]] nlohmann::json to_json(const welcome_message& m);
[[nodiscard]] nlohmann::json ready_message();
[[nodiscard]] nlohmann::json back_message();
[[nodiscard]] nlohmann::json left_message();
[[nodiscard]] nlohmann::json refusal(const std::string& why, bool again = false);

// Each reads a message that has its key. Throws json::exception: of another type.
[[nodiscard]] hello_message read_hello(const nlohmann::json& message);
[[nodiscard]] return_message read_return(const nlohmann::json& message);
[[nodiscard]] owner_message read_owner(const nlohmann::json& message);
/// Of any text; what is no JSON object is neither of the two.
[[nodiscard]] welcome_answer read_welcome(const std::string& text);

}  // namespace carousel::run
