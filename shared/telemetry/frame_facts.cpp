#include "telemetry/frame_facts.hpp"

#include <algorithm>

#include "core/json.hpp"
#include "frame/metadata.hpp"
#include "ring/words.hpp"

namespace carousel::telemetry {
namespace {

ring::frame_facts facts_of(const shm::control_block& c, const shm::frame_header& h) {
    ring::frame_facts out;
    ring::copy_facts(h, c.parameters.bytes, out);
    return out;
}

u32 slots_of(const shm::control_block& c, u32 link) {
    return link < std::min(c.links, shm::max_links) ? std::min(c.link[link].slots, shm::max_slots) : 0;
}

}  // namespace

// The slot word is READY with the same generation before and after the read, so no process has written the
// header in between (READY is acquired first; the fence keeps the reads of the header before the second
// load).
std::optional<ring::frame_facts> facts_in_passing(const shm::control_block& c, u32 link, u32 slot) {
    if (slot >= slots_of(c, link)) return std::nullopt;
    const u64 before = ring::load(c.link[link].slot[slot]);
    if (ring::slot_word::of(before).state != ring::slot_state::ready) return std::nullopt;
    ring::frame_facts out = facts_of(c, c.frames[link].header[slot]);
    std::atomic_thread_fence(std::memory_order_acquire);
    return ring::load(c.link[link].slot[slot]) == before ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<ring::frame_facts> last_facts(const shm::control_block& c, u32 link) {
    if (slots_of(c, link) == 0) return std::nullopt;
    const u64 tail = ring::load(c.link[link].tail);  // frames from the tail on were begun, but not delivered
    const shm::frame_header* last = nullptr;
    for (u32 k = 0; k < slots_of(c, link); ++k) {
        const shm::frame_header& h = c.frames[link].header[k];
        const u64 ring_sequence = h.ring_sequence.load(std::memory_order_relaxed);
        if (h.epoch == 0 || ring_sequence >= tail) continue;
        if (last == nullptr || ring_sequence > last->ring_sequence.load(std::memory_order_relaxed)) last = &h;
    }
    return last != nullptr ? std::optional(facts_of(c, *last)) : std::nullopt;
}

nlohmann::json metadata_json(std::span<const std::byte> metadata) {
    nlohmann::json out = nlohmann::json::object();
    ring::metadata_reader entries(metadata);
    for (ring::metadata_entry e; entries.next(e);) {
        const std::string key(e.key);
        std::visit(
            [&](const auto& value) {
                using kind = std::decay_t<decltype(value)>;
                if constexpr (std::is_same_v<kind, std::string_view>)
                    out[key] = std::string(value);
                else if constexpr (std::is_same_v<kind, std::span<const std::byte>>)
                    out[key] = {{"bytes", value.size()}};
                else
                    out[key] = value;
            },
            e.value);
    }
    return out;
}

nlohmann::json used_json(const ring::frame_format& f, const shm::used_extents& used) {
    nlohmann::json out = nlohmann::json::object();
    for (std::size_t k = 0; k < f.planes.size(); ++k) {
        if (!ring::is_used_in_part(used, k)) continue;
        nlohmann::json extents = nlohmann::json::array();
        for (u32 d = 0; d < f.planes[k].shape.size(); ++d)
            extents.push_back(ring::used_extent(f.planes[k], k, d, used));
        out[f.planes[k].name] = extents;
    }
    return out;
}

}  // namespace carousel::telemetry
