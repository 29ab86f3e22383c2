#pragma once
// The supervisor's answer to {"type": "trace"}: events of the stages, in parts. This file writes and reads
// it.
//   {"ok": true, "run_id": "...", "created_ns": 7, "state": "running", "next": 17, "last": 40,
//    "notes": [{"time_ns": 5, "kind": "died", "seat": 2, "epoch": 1, "pid": 77, "text": "died: ..."}]}

#include <string>
#include <vector>

#include "core/described.hpp"
#include "core/types.hpp"
#include "shm/control_block.hpp"

namespace carousel::run {

struct trace_note {
    u64 time_ns = 0;
    std::string kind;  ///< started, ready, died, quarantined, freed, given up, held, goes on
    u32 seat = shm::none, epoch = 0;
    i32 pid = 0;
    std::string text;  ///< to be printed after the stage's name
    static constexpr field_rules rules{.missing_is_default = true};
};
BOOST_DESCRIBE_STRUCT(trace_note, (), (time_ns, kind, seat, epoch, pid, text))

struct trace_answer {
    std::string run_id;
    u64 created_ns = 0;  ///< the time when the run's present control block was created
    std::string state;   ///< of the run
    std::vector<trace_note> notes;
    u64 next = 0;  ///< number of the last of these notes; send it as trace_request::since
    u64 last = 0;  ///< number of the newest note
    bool ok = true;
    static constexpr field_rules rules{.missing_is_default = true};
};
BOOST_DESCRIBE_STRUCT(trace_answer, (), (ok, run_id, created_ns, state, notes, next, last))

/// Answer to {"type": "trace_file"}.
///   {"ok": true, "id": 7}                                   it starts
///   {"ok": true, "id": 7, "records": true}                  it records or writes the file
///   {"ok": true, "id": 7, "bytes": 90000, "text": "..."}    the file is written; text: one part of it
/// Part k consists of the characters that begin within bytes k * trace_part to (k + 1) * trace_part - 1 of
/// the file.
// in JSON a part is up to twice as long, and a message has at most 200 KiB
inline constexpr u64 trace_part = 64 * 1024;
struct trace_file_answer {
    u64 id = 0;
    bool records = false;
    u64 bytes = 0;  ///< size of the file; 0: not written yet
    std::string text;
    bool ok = true;
    static constexpr field_rules rules{.missing_is_default = true};
};
BOOST_DESCRIBE_STRUCT(trace_file_answer, (), (ok, id, records, bytes, text))

[[nodiscard]] nlohmann::json to_json(const trace_answer& a);
[[nodiscard]] nlohmann::json to_json(const trace_file_answer& a);
/// Throws config_error for an answer of another version, without an id.
[[nodiscard]] trace_file_answer read_trace_file(const nlohmann::json& answer);
/// Throws config_error for an answer of another version: without a run id or notes, or with a value of
/// another type.
[[nodiscard]] trace_answer read_trace(const nlohmann::json& answer);

}  // namespace carousel::run
