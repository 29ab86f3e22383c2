#pragma once
// What a supervisor answers to {"command": "trace"}: what befell the stages, a part at a time. Written and
// read here.
//   {"ok": true, "run_id": "...", "created_ns": 7, "state": "running", "next": 17, "last": 40,
//    "notes": [{"time_ns": 5, "kind": "died", "seat": 2, "epoch": 1, "pid": 77, "text": "died: ..."}]}

#include <string>
#include <vector>

#include "core/json.hpp"
#include "core/types.hpp"

namespace carousel::run {

struct trace_note {
    u64 time_ns = 0;
    std::string kind;  ///< started, ready, died, quarantined, freed, given up, held, goes on
    u32 seat = 0, epoch = 0;
    i32 pid = 0;
    std::string text;  ///< to be read behind the stage's name
};

struct trace_answer {
    std::string run_id;
    u64 created_ns = 0;  ///< of the control block that the run has now
    std::string state;   ///< of the run
    std::vector<trace_note> notes;
    u64 next = 0;  ///< number of the last of these; to be sent as trace_request::since
    u64 last = 0;  ///< number of the newest that there is
};

/// What it answers to {"command": "trace_file"}.
///   {"ok": true, "id": 7}                                   it starts
///   {"ok": true, "id": 7, "records": true}                  it records, or writes
///   {"ok": true, "id": 7, "bytes": 90000, "text": "..."}    it is written: a part of it
/// Part k holds the characters whose first byte is one of the trace_part from k * trace_part on.
inline constexpr u64 trace_part = 64 * 1024;  // as text in JSON twice as long: a message has 200 KiB
struct trace_file_answer {
    u64 id = 0;
    bool records = false;
    u64 bytes = 0;  ///< of the file; 0: it is not written yet
    std::string text;
};

[[nodiscard]] nlohmann::json to_json(const trace_answer& a);
[[nodiscard]] nlohmann::json to_json(const trace_file_answer& a);
/// Throws config_error for an answer of another version, without a number.
[[nodiscard]] trace_file_answer read_trace_file(const nlohmann::json& answer);
/// Throws config_error for an answer of another version: without a run's name or notes, or with anything of
/// another type.
[[nodiscard]] trace_answer read_trace(const nlohmann::json& answer);

}  // namespace carousel::run
