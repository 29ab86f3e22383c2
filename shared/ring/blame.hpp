#pragma once
// The words that lease a frame to one stage are found by the frame's ring sequence. If the supervisor learns
// only later that a process died by its own fault, an attempt is added to these words.

#include <algorithm>
#include <functional>

#include "ring/words.hpp"

namespace carousel::ring {

/// Calls fn(word, raw, generation) for each word by which the stage leases the frame `ring_sequence`: the
/// words at its inputs and, for a source, the word of the number. The word is read only once, and `raw` is
/// the value read. A caller that changes the word must CAS from exactly `raw`, because a CAS from any other
/// value could overwrite a change that a successor has made in the meantime. If the generation in the word is
/// older than the frame's `generation`, the word means WAIT (see lease_word::seen_at).
template <typename F>
void for_each_lease_of(shm::control_block& c, u32 stage, u64 ring_sequence, F&& fn) {
    const shm::stage_block& b = c.stage[std::min(stage, shm::max_stages - 1)];
    if (b.source < shm::max_sources) {
        const u64 n =
            std::clamp(c.link[std::min(b.output_link[0], shm::max_links - 1)].window, 1U, shm::max_window);
        shm::word& at = c.source[b.source].sequence_lease[ring_sequence % n];
        const u64 raw = load(at);
        const u32 lap = lap_of(c.source[b.source], ring_sequence, n);
        if (lease_word::of(raw).generation == lap) fn(at, raw, lap);
    }
    for (u32 i = 0; i < std::min(b.inputs, shm::max_inputs); ++i) {
        if (b.input_link[i] >= shm::max_links || b.input_group[i] >= shm::max_groups) continue;
        shm::link_block& l = c.link[b.input_link[i]];
        for (u32 k = 0; k < std::min(l.slots, shm::max_slots); ++k) {
            const slot_word slot = slot_word::of(load(l.slot[k]));
            if (slot.state != slot_state::ready ||
                load(c.frames[b.input_link[i]].header[k].ring_sequence) != ring_sequence)
                continue;
            shm::word& at = l.group[k][b.input_group[i]];
            fn(at, load(at), slot.generation);
        }
    }
}

/// Does nothing if another process has leased the frame since the death. If no process has, and the frame was
/// the only one in flight (`single`), adds an attempt to it; if several frames were in flight, marks this
/// frame to be leased alone. A frame that a successor has leased is not changed. `between` is for tests and
/// is called between the read of a word and its change.
void blame_waiting(shm::control_block& c, u32 stage, u64 ring_sequence, bool single,
                   const std::function<void()>& between = {});

}  // namespace carousel::ring
