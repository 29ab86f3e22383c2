#pragma once
// Messages of a stage, or of the process that owns `ipc` memory, to a supervisor over DIR/control.sock, and
// the replies. This file writes and reads them; attach_message.hpp has the answer to a hello.
//   {"hello": {"stage", "seat", "entry", "epoch", "pid", "start_time"}}    without a seat: started by hand.
//                       start_time, as in "return" and "owner", identifies the process of that pid for a
//                       supervisor on a kernel without SO_PEERPIDFD (shm/peer_process.hpp).
//                       Each hello has a "clock", {"time_namespace", "offset_ns", "realtime_ns"}
//                       (core/clock_identity.hpp): the supervisor refuses a process that reads another clock.
//   {"hello": {"stage", "port": true, "writes", "pid"}}    a port's program (stages/sdk/port_frames.hpp); it
//                       sends its own pidfd: SO_PEERCRED reports pid 0 for another pid namespace
//   {"left": true}      a port's program has unmapped the run's memory, and keeps running
//   {"ready": true}     the process is LIVE; readiness is always reported, never guessed
//   {"return": {"run_id", "stage", "seat", "entry", "epoch", "ready", "memory": [...]}}    to a second
//                       supervisor, with the fds of all memory of the run; a standby has epoch 0 until it is
//                       promoted
//   {"back": true}      the log lines that it wrote to a file without a supervisor are complete
//   {"owner": {"run_id"}}    from the owner of `ipc` memory, to a second supervisor
//   <- {"welcome": {"log": fd index or -1}}    or {"refused": "why", "again": true if a retry can succeed}

#include <optional>
#include <string>

#include "core/clock_identity.hpp"
#include "core/described.hpp"
#include "ring/participants.hpp"

namespace carousel {

BOOST_DESCRIBE_STRUCT(clock_identity, (), (time_namespace, offset_ns, realtime_ns))
namespace ring {
BOOST_DESCRIBE_STRUCT(incarnation_id, (), (seat, entry, epoch))
}

}  // namespace carousel

namespace carousel::run {

struct hello_message {
    std::string stage;
    ring::incarnation_id incarnation;  ///< empty: started by hand
    i32 pid = 0;
    bool port = false, writes = false;  ///< a port's program, and whether it writes frames
    u64 start_time = 0;                 ///< of the process (shm/process_id.hpp); 0: not reported
    clock_identity clock = {};          ///< of the process; empty: not reported
    static constexpr field_rules rules{.sparse = true};
};
BOOST_DESCRIBE_STRUCT(hello_message, (), (stage, pid, port, writes, start_time, clock))
struct return_message {
    std::string run_id, stage;
    ring::incarnation_id incarnation;
    bool ready = false;
    nlohmann::json memory =
        nlohmann::json::array();  ///< as the first supervisor sent it: attach_message::kept
    u64 start_time = 0;           ///< as in hello_message
    static constexpr field_rules rules{.missing_is_default = true};
};
BOOST_DESCRIBE_STRUCT(return_message, (), (run_id, stage, ready, memory, start_time))
struct owner_message {
    std::string run_id;
    u64 start_time = 0;  ///< as in hello_message
    static constexpr field_rules rules{.missing_is_default = true};
};
BOOST_DESCRIBE_STRUCT(owner_message, (), (run_id, start_time))
struct welcome_message {
    int log = -1;  ///< index of the descriptor of the new pipe for stdout and stderr; -1: none
};
BOOST_DESCRIBE_STRUCT(welcome_message, (), (log))
/// Reply to a stage or an owner; both empty: a message of a later version, to be ignored.
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

// Each reads a message that has its key. Throws json::exception: a value has another type.
[[nodiscard]] hello_message read_hello(const nlohmann::json& message);
[[nodiscard]] return_message read_return(const nlohmann::json& message);
[[nodiscard]] owner_message read_owner(const nlohmann::json& message);
/// Accepts any text; both are empty if it is not a JSON object.
[[nodiscard]] welcome_answer read_welcome(const std::string& text);

}  // namespace carousel::run
