// engine: single words that are damaged by one bit, looked for in each tick. What follows from the other
// words and from what this process knows is written back, behind a second look; the run goes on, and nobody
// but the log has noticed. A supervisor that dies in between leaves the word as it was found. Parts that are
// written once are held against the copy.
#include <fmt/format.h>

#include <algorithm>

#include "ring/static_repair.hpp"
#include "supervisor/engine/engine.hpp"

namespace carousel::supervisor {

// True: some word is damaged still, or the block is about to be made anew.
bool engine::mend_words() {
    shm::control_block& c = segment_->block();
    const std::vector<ring::damaged_word> damaged = ring::damaged_words(c, *made_);
    std::vector<waiting_mend> waits;
    const ring::known_run known = damaged.empty() ? ring::known_run{} : what_is_known();
    u32 looks = 0;
    for (const ring::damaged_word& w : damaged) {
        waiting_mend m{w, ring::repaired_value(c, *made_, known, w), 1};
        const auto before = std::find_if(waiting_mends_.begin(), waiting_mends_.end(),
                                         [&](const waiting_mend& other) { return other.word.at == w.at; });
        if (before != waiting_mends_.end()) {
            m.looks = before->looks + 1;
            if (m.value && m.value == before->value && ring::write_back(c, *made_, w, *m.value)) {
                ++mends_.words;
                seats_->say(fmt::format("{} was wrong by one bit ({:#x}): mended, it is {:#x}",
                                        ring::name_of(*made_, w.at), w.raw, *m.value));
                continue;
            }
        }
        looks = std::max(looks, m.looks);
        waits.push_back(m);
    }
    waiting_mends_ = std::move(waits);
    if (looks < waiting_mend::most_looks) return !waiting_mends_.empty();
    const std::vector<ring::finding> found = ring::check_parity(c, *made_);
    waiting_mends_.clear();
    ++mends_.damaged;
    mend(fmt::format("the control block is damaged ({}), and nothing says what was there",
                     found.empty() ? "" : found.front().text()),
         found);
    return true;
}

// Parts that nobody acts on. One look is enough: the copy is certain, and nobody else writes there.
void engine::mend_statics() {
    const std::vector<std::string> mended = ring::repair_static(segment_->block(), *made_, what_is_known());
    if (mended.empty()) return;
    mends_.words += mended.size();
    seats_->say(
        fmt::format("{}{} not as it was made, and nobody has acted on it: mended", mended.front(),
                    mended.size() == 1 ? " was" : fmt::format(" and {} more were", mended.size() - 1)));
}

}  // namespace carousel::supervisor
