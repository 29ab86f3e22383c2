#pragma once
// How `carousel debug` suspends the deadlines of a stage: one request and one answer over DIR/control.sock.
// The suspension lasts as long as the connection, so it also ends when the debugger's command is killed.
//   {"type": "debug", "stage": "fragment.1", "run_id": "..."}
//   {"ok": true, "run_id": "...", "stage": "fragment.1", "pid": 4711, "cuda": true}
// or a refusal (request_message.hpp).

#include <string>

#include "core/described.hpp"
#include "core/types.hpp"

namespace carousel::run {

struct debug_request {
    static constexpr const char* type = "debug";
    static constexpr field_rules rules{.sparse = true};
    std::string stage;
    std::string run_id;  ///< "": any run
    i32 pid = 0;         ///< not 0: only this process; its successor is not meant
};
BOOST_DESCRIBE_STRUCT(debug_request, (), (stage, run_id, pid))

struct debug_answer {
    std::string run_id;
    std::string stage;  ///< "fragment", "fragment.1"
    i32 pid = 0;
    bool cuda = false;  ///< the stage computes on a GPU
    bool ok = true;
};
BOOST_DESCRIBE_STRUCT(debug_answer, (), (ok, run_id, stage, pid, cuda))

}  // namespace carousel::run
