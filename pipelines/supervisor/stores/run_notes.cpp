#include "supervisor/stores/run_notes.hpp"

#include <utility>

namespace carousel::supervisor {
namespace {
constexpr std::size_t kept = 2000, max_notes_per_reply = 300;
}

void run_notes::add(run_note n) {
    n.id = ++last_;
    notes_.push_back(std::move(n));
    if (notes_.size() > kept) notes_.pop_front();
}

run::trace_answer run_notes::since(u64 id) const {
    run::trace_answer a;
    a.next = last_ < id ? 0 : id;  // this is a number of an earlier supervisor, so counting restarts from 0
    for (const run_note& n : notes_) {
        if (n.id <= a.next || a.notes.size() >= max_notes_per_reply) continue;
        a.notes.push_back({n.time_ns, n.kind, n.seat, n.epoch, n.pid, n.text});
        a.next = n.id;
    }
    a.last = last_;
    return a;
}

}  // namespace carousel::supervisor
