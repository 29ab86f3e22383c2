#pragma once
// Stages that share an MPS domain: acts on the decisions of mps_policy.hpp.

#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

/// To be called before any process is started or taken over. `domain` null: every stage has its own GPU
/// context.
void use_domain(process_table& t, mps_domain* domain);
/// True if this stage should be a client of the domain.
[[nodiscard]] bool wants_domain(const process_table& t, const seat& s) noexcept;
[[nodiscard]] bool may_start(const process_table& t, const seat& s) noexcept;
/// True if every stage of the domain has standbys, which then wait in the spare domain and take over
/// together. Otherwise a standby waits in the serving domain, for a death after which that domain continues.
[[nodiscard]] bool takes_over_jointly(const process_table& t) noexcept;
/// True if a standby of the seat can start: in its domain, or in a GPU context of its own.
[[nodiscard]] bool may_stand_by(const process_table& t, const seat& s) noexcept;
/// The generation of the domain in which a process that starts now becomes a client: the serving one, for a
/// standby the one in which it waits. 0: it has its own GPU context, or there is no such domain.
[[nodiscard]] u32 generation_for(const process_table& t, const seat& s, bool standby) noexcept;
/// True if the seat's standby is where the successor of its holder must be. If the holder's domain ends, that
/// is the spare domain, in which the standbys of all stages take over together.
[[nodiscard]] bool standby_fits(const process_table& t, const seat& s) noexcept;
[[nodiscard]] bool death_breaks_domain(const process_table& t, const seat& s, const process& p) noexcept;
/// For a process that has ended: true if its device work can no longer write either.
[[nodiscard]] bool fence_is_known(const process_table& t, const process& p) noexcept;
/// If the process did not cause its own death, marks the death as caused from outside.
void excuse_process(const process_table& t, process& p) noexcept;
/// True if terminate_client can end the process, so that its domain continues.
[[nodiscard]] bool ends_alone(const process_table& t, const process& p) noexcept;
/// True if the process must be ended by terminate_client instead of by a signal.
[[nodiscard]] bool can_terminate_client(const process_table& t, const process& p) noexcept;
/// Ends a client whose words are aborted. The server cannot end a stopped process, so the process is
/// continued first, and finds that it is revoked.
void end_client(process_table& t, process& p);
/// To be called if the death of `p` ends the domain.
void domain_breaks(process_table& t, seat& s, process& p);
/// Retires the seat's holder, which the supervisor ends. If every stage of its domain has a standby, the
/// domain ends with it: all standbys take over. Returns true in that case.
bool end_client_with_domain(process_table& t, seat& s, const std::string& why);
/// Condemns all clients; the daemon is renewed when their words are revoked (work::renew_domain).
void renew_domain(process_table& t, const std::string& why);
/// Called again by watch_domain() while words are not revoked yet.
void renew_daemon(process_table& t);
/// To be called when the death of `p` has been judged: if the verdict is the result of a trial
/// (mps_policy.hpp), the trial ends.
void update_trial(process_table& t, const seat& s, const process& p);
/// Reports which deaths belong together and which of them are not the process's own fault (for `carousel
/// chaos`).
void report_end(process_table& t, const seat& s, const process& p);
/// Called in each tick.
void watch_domain(process_table& t);

}  // namespace carousel::supervisor
