#pragma once
// Scene settings in the control block. A writer fills a copy that the published word doesn't name, then publishes its index by
// one CAS; a reader copies and reads the word again. A writer that dies half-way has changed nothing that anybody reads.

#include <cstring>

#include "ring/words.hpp"

namespace carousel::ring {

[[nodiscard]] inline shm::scene_state read_scene(const shm::scene_box& box) noexcept {
    shm::scene_state out;
    for (;;) {
        const u64 before = load(box.current);
        std::memcpy(&out, &box.copy[before & 7U], sizeof out);
        std::atomic_thread_fence(std::memory_order_acquire);
        if (load(box.current) == before) return out;
    }
}

/// Publishes new settings. `writer` (0..3) has two copies of its own: concurrent writers never share one.
inline bool write_scene(shm::scene_box& box, u32 writer, const shm::scene_state& scene) noexcept {
    const u64 before = load(box.current);
    u64 mine = (writer & 3U) * 2;
    if ((before & 7U) == mine) ++mine;
    std::memcpy(&box.copy[mine], &scene, sizeof scene);
    return cas(box.current, before, ((before >> 3U) + 1) << 3U | mine);
}

}  // namespace carousel::ring
