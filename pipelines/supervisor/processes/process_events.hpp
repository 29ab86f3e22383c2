#pragma once
// The events of a process. Each is received here and passed on; process_events.cpp lists them.

#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

/// Watches a process that was started or adopted: its exit, and its log.
void watch_process(process_table& t, seat& s, process& p);
void watch_log(process_table& t, seat& s, process& p);
void watch_exit(process_table& t, seat& s, process& p);
/// Watches the tool that has started the process; it is only reaped.
void watch_tool(process_table& t, process& p);
/// Its pidfd, or what stands for it, reports that the process has ended.
void process_exited(process_table& t, seat& s, process& p);

void connection_closed(process_table& t, int connection);
void stage_is_ready(process_table& t, int connection);
/// The process is LIVE, or could take over: its entry has the time since when it runs, which is checked from
/// now on against the value recorded here. A port's program is never found by it.
void mark_ready(process& p);
/// A stage whose RETURN was accepted now writes into its new pipe.
void stage_returned(process_table& t, int connection);
/// The program at a port has unmapped all memory of the run; its process continues.
void port_left(process_table& t, int connection);
/// The exit of an adopted port program can be detected only by its lock.
void poll_ports(process_table& t, seat& s);

/// Reads the last note of the dying process before the kernel reports its end, which takes about 90 ms with a
/// GPU context.
void read_exit_note(const process_table& t, process& p) noexcept;
/// The process on the seat is late, as `what` states: it is replaced.
void deadline_missed(process_table& t, seat& s, const std::string& what);

}  // namespace carousel::supervisor
