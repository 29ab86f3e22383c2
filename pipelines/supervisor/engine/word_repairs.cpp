// engine: single words with one flipped bit, checked in each tick. A value that follows from the other words
// and from what this process knows is written back after a second check; the run continues, and only the log
// shows it. A supervisor that dies in between leaves the word as it was found. Parts that are written once
// are compared with the copy.
#include <fmt/format.h>

#include <algorithm>

#include "ring/check/static_repair.hpp"
#include "supervisor/engine/engine.hpp"

namespace carousel::supervisor {

// True if a word is still damaged, or the block is about to be rebuilt.
bool engine::repair_words() {
    shm::control_block& c = segment_->block();
    const std::vector<ring::damaged_word> damaged = ring::damaged_words(c, *made_);
    std::vector<pending_repair> waits;
    const ring::known_run known = damaged.empty() ? ring::known_run{} : what_is_known();
    u32 checks = 0;
    for (const ring::damaged_word& w : damaged) {
        pending_repair m{w, ring::repaired_value(c, *made_, known, w), 1};
        const auto before = std::find_if(pending_repairs_.begin(), pending_repairs_.end(),
                                         [&](const pending_repair& other) { return other.word.at == w.at; });
        if (before != pending_repairs_.end()) {
            m.checks = before->checks + 1;
            if (m.value && m.value == before->value && ring::write_back(c, *made_, w, *m.value)) {
                ++repairs_.words;
                seats_->log_line(fmt::format("{} was wrong by one bit ({:#x}): repaired to {:#x}",
                                             ring::name_of(*made_, w.at), w.raw, *m.value));
                continue;
            }
        }
        checks = std::max(checks, m.checks);
        waits.push_back(m);
    }
    pending_repairs_ = std::move(waits);
    if (checks < pending_repair::max_checks) return !pending_repairs_.empty();
    const std::vector<ring::finding> found = ring::check_parity(c, *made_);
    pending_repairs_.clear();
    ++repairs_.damaged;
    repair(fmt::format("the control block is damaged ({}), and the original value can't be determined",
                       found.empty() ? "" : found.front().text()),
           found);
    return true;
}

// Parts that no process acts on. One check is enough: the copy is certain, and no other process writes there.
void engine::repair_static_parts() {
    const std::vector<std::string> repaired = ring::repair_static(segment_->block(), *made_, what_is_known());
    if (repaired.empty()) return;
    repairs_.words += repaired.size();
    seats_->log_line(fmt::format(
        "{}{} changed since the start, and no process has acted on it: repaired", repaired.front(),
        repaired.size() == 1 ? " was" : fmt::format(" and {} more were", repaired.size() - 1)));
}

}  // namespace carousel::supervisor
