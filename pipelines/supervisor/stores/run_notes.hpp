#pragma once
// Events of the stages of a run, kept for later requests (`carousel trace`): the newest ones, numbered from
// 1. One thread.

#include <deque>
#include <string>

#include "control/trace_message.hpp"
#include "core/types.hpp"

namespace carousel::supervisor {

struct run_note {
    u64 id = 0, time_ns = 0;
    const char* kind = "";  ///< started, ready, died, quarantined, freed, given up, held, goes on
    u32 seat = 0, epoch = 0;
    i32 pid = 0;
    std::string text;  ///< to be printed after the stage's name
};

class run_notes {
public:
    void add(run_note n);
    /// Returns the notes with a number above `id`, oldest first, as many as fit into one reply. The caller
    /// fills in the other fields of the reply.
    [[nodiscard]] run::trace_answer since(u64 id) const;

private:
    std::deque<run_note> notes_;
    u64 last_ = 0;
};

}  // namespace carousel::supervisor
