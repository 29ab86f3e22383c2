#pragma once
// The events of a process. Each event is received here and forwarded; process_events.cpp lists all of them.

#include <string>

#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

/// Watches a process that was started or adopted, for its exit and its log.
void watch_process(process_table& t, seat& s, process& p);
void watch_log(process_table& t, seat& s, process& p);
void watch_exit(process_table& t, seat& s, process& p);
/// Watches the tool that has started the process; the tool is only reaped.
void watch_tool(process_table& t, process& p);
/// The pidfd of the process, or its substitute, reports that the process has ended.
void process_exited(process_table& t, seat& s, process& p);

void connection_closed(process_table& t, int connection);
void stage_is_ready(process_table& t, int connection);
/// To be called when the process is LIVE, or is a standby that is ready. Records the start time that the
/// process has written into its entry; from now on the entry is checked against the recorded value. A port's
/// program is never identified by its start time.
void mark_ready(process& p);
/// A stage whose RETURN was accepted has begun to write into its new pipe.
void stage_returned(process_table& t, int connection);
/// The program at a port has unmapped all memory of the run; its process continues.
void port_left(process_table& t, int connection);
/// Checks the locks of adopted port programs, because their exit can be detected only by the lock.
void poll_ports(process_table& t, seat& s);

/// Reads the last note of a dying process before the kernel reports its end, which takes about 90 ms for a
/// process with a GPU context.
void read_exit_note(const process_table& t, process& p) noexcept;
/// To be called when the process on the seat has missed a deadline, which `what` describes: replaces the
/// process.
void deadline_missed(process_table& t, seat& s, const std::string& what);

// Describes the target of a wild write, based on the data that the dying process has stored in its entry
// (ring/exit_notes.hpp).

/// Returns, for example, "a write into its input ring vertex, frame 12, plane color, offset 4096" or "an
/// overrun of its slot in the ring fragment, frame 12, after plane color, offset 3686400". Returns "" if the
/// process's entry records no wild write, or if the process was ended together with its MPS domain. To be
/// called before the frames of the process are requeued: until then the slot's header still belongs to that
/// frame. A number that matches nothing in the run is ignored.
[[nodiscard]] std::string wild_write_text(const process_table& t, const process& p);

/// Returns "plane color, offset 4096": the place of `offset` in a slot of that format.
[[nodiscard]] std::string place_in_slot(const nlohmann::json& format, u64 offset);

}  // namespace carousel::supervisor
