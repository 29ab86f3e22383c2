#pragma once
// Reads the status words of rings for a supervisor that rebuilds a run, because the supervisor itself has no
// GPU context. Nothing is written into the rings.

namespace carousel::alloc {

/// Answers requests on `socket` (control/status_words_message.hpp) until its other end closes.
/// Returns the exit code. Throws error.
int answer_status_requests(int socket);

}  // namespace carousel::alloc
