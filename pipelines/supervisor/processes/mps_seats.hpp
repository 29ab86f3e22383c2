#pragma once
// Stages that share an MPS domain: carrying out the rules of mps_policy.hpp.

#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

/// Before anything is started or taken over. Null: every stage has a GPU context of its own.
void use_domain(process_table& t, mps_domain* domain);
/// Is this stage to be a client?
[[nodiscard]] bool wants_domain(const process_table& t, const seat& s) noexcept;
[[nodiscard]] bool may_start(const process_table& t, const seat& s) noexcept;
[[nodiscard]] bool death_breaks_domain(const process_table& t, const seat& s, const process& p) noexcept;
/// Nothing of a process that has ended writes any more.
[[nodiscard]] bool fence_is_known(const process_table& t, const process& p) noexcept;
/// Of an innocent one nothing is held against it.
void excuse_process(const process_table& t, process& p) noexcept;
/// Is it to be ended by terminate_client rather than by a signal?
[[nodiscard]] bool can_terminate_client(const process_table& t, const process& p) noexcept;
/// Its words are aborted. A stopped process can't be ended by the server: it goes on, and finds itself
/// revoked.
void end_client(process_table& t, const process& p);
/// The death of `p` ends the domain.
void domain_breaks(process_table& t, seat& s, process& p);
/// Condemns all clients; the daemon follows when their words are taken (work::renew_domain).
void renew_domain(process_table& t, const std::string& why);
void renew_daemon(process_table& t);
/// The verdict on `p` is known: does it end a trial (mps_trial.hpp)?
void update_trial(process_table& t, const seat& s, const process& p);
/// For whoever asks which deaths belong together, and which of them is nobody's own (`carousel chaos`).
void report_end(process_table& t, const seat& s, const process& p);
/// Of each tick.
void watch_domain(process_table& t);

}  // namespace carousel::supervisor
