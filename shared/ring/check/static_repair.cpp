#include "ring/check/static_repair.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "ring/names.hpp"
#include "ring/parameter_box.hpp"

namespace carousel::ring {
namespace {

class static_repairer {
public:
    template <typename T>
    void same(T& now, const T& then, const std::string& object, const char* field) {
        static_assert(std::is_trivially_copyable_v<T>);
        if (std::memcmp(&now, &then, sizeof then) == 0) return;
        auto* const to = reinterpret_cast<std::byte*>(&now);
        const auto* const from = reinterpret_cast<const std::byte*>(&then);
        for (std::size_t k = 0; k < sizeof then; ++k)
            if (to[k] != from[k]) to[k] = from[k];
        record(fmt::format("{}: {}", object, field));
    }
    void record(std::string word) { repaired_.push_back(std::move(word)); }
    [[nodiscard]] std::vector<std::string> take() { return std::move(repaired_); }

private:
    std::vector<std::string> repaired_;
};

// A process that attaches checks version, bytes and uid and refuses the block while these are wrong, so no
// process acts on a wrong value. The magic is stored last, by the block's maker, and read by a process that
// attaches.
void repair_head(static_repairer& m, shm::control_block& c, const shm::control_block& made) {
    const std::string object = "the block's head";
    if (load(c.magic) != shm::control_magic) {
        c.magic.store(shm::control_magic, std::memory_order_release);
        m.record(object + ": magic");
    }
    m.same(c.version, made.version, object, "version");
    m.same(c.uid, made.uid, object, "uid");
    m.same(c.bytes, made.bytes, object, "bytes");
    m.same(c.run_id, made.run_id, object, "run_id");
    m.same(c.pipeline, made.pipeline, object, "pipeline");
    m.same(c.created_ns, made.created_ns, object, "created_ns");
    m.same(c.width, made.width, object, "width");
    m.same(c.height, made.height, object, "height");
    m.same(c.frame_timeout_ns, made.frame_timeout_ns, object, "frame_timeout_ns");
}

u64 oldest_frame(const shm::control_block& made, const known_run& known) noexcept {
    u64 oldest = ~u64{0};
    for (u32 k = 0; k < std::min(made.sources, shm::max_sources); ++k) {
        const u32 link = made.source[k].link;
        oldest = std::min(oldest, link < known.tails.size() ? known.tails[link] : made.first_ring_sequence);
    }
    return oldest;
}

void repair_sets(static_repairer& m, shm::parameter_box& now, const shm::parameter_box& then, u64 oldest) {
    const u64 raw = load(then.state);
    if (!intact(raw)) return;  // the supervisor itself does not know which of the sets are valid
    const u32 newest = parameter_state::of(raw).sets, used = sets_in_use(then, oldest);
    for (u32 back = used; back < shm::max_parameter_sets; ++back) {
        const u32 k = (newest - back) % shm::max_parameter_sets;
        m.same(now.set[k], then.set[k], "parameters", fmt::format("set {}, which no frame needs", k).c_str());
    }
}

}  // namespace

u32 sets_in_use(const shm::parameter_box& made, u64 oldest) noexcept {
    const u32 newest = parameter_state::of(load(made.state)).sets;
    for (u32 back = 0; back < readable_sets; ++back)
        if (made.set[(newest - back) % shm::max_parameter_sets].from <= oldest) return back + 1;
    return readable_sets;
}

std::vector<std::string> repair_static(shm::control_block& c, const shm::control_block& made,
                                       const known_run& known) {
    static_repairer m;
    repair_head(m, c, made);
    for (u32 k = 0; k < std::min(made.stages, shm::max_stages); ++k) {
        const std::string object = "stage " + stage_name(made, k);
        m.same(c.stage[k].name, made.stage[k].name, object, "name");
        m.same(c.stage[k].frame_timeout_ns, made.stage[k].frame_timeout_ns, object, "frame_timeout_ns");
    }
    for (u32 k = 0; k < std::min(made.links, shm::max_links); ++k) {
        shm::link_block& now = c.link[k];
        const shm::link_block& then = made.link[k];
        const std::string object = "ring of " + std::string(then.name);
        m.same(now.name, then.name, object, "name");
        m.same(now.group_stage, then.group_stage, object, "group_stage");
        m.same(now.memory, then.memory, object, "memory");
        m.same(now.memory_ready, then.memory_ready, object, "memory_ready");
        m.same(now.ipc_handle, then.ipc_handle, object, "ipc_handle");
    }
    for (u32 k = 0; k < std::min(made.seats, shm::max_seats); ++k)
        m.same(c.seat[k].first_epoch, made.seat[k].first_epoch, "seat of " + seat_name(made, k),
               "first_epoch");
    for (u32 k = 0; k < std::min(made.assets, shm::max_assets); ++k) {
        const std::string object = "asset " + std::string(made.asset[k].name);
        m.same(c.asset[k].memory, made.asset[k].memory, object, "memory");
        m.same(c.asset[k].ipc_handle, made.asset[k].ipc_handle, object, "ipc_handle");
    }
    for (u32 k = 0; k < std::min<std::size_t>(made.seats, known.paused.size()); ++k)
        if (const u64 paused = known.paused[k] ? 1 : 0; load(c.seat[k].paused) != paused) {
            c.seat[k].paused.store(paused, std::memory_order_release);
            m.record("seat of " + seat_name(made, k) + ": held");
        }
    repair_sets(m, c.parameters, made.parameters, oldest_frame(made, known));
    std::vector<std::string> all = m.take();
    for (std::string& word : repair_start_times(c, made, known)) all.push_back(std::move(word));
    return all;
}

std::vector<std::string> repair_start_times(shm::control_block& c, const shm::control_block& made,
                                            const known_run& known) {
    std::vector<std::string> repaired;
    for (const known_process& p : known.processes) {
        if (!p.ready || p.start_time == 0 || p.entry >= shm::max_incarnations) continue;
        const entry_word w = entry_word::of(load(c.entry[p.entry].identity));
        const bool is_its = (w.state == entry_state::live || w.state == entry_state::standby ||
                             w.state == entry_state::doomed) &&
                            w.seat == p.seat && w.epoch == p.epoch && w.pid == p.pid;
        if (!is_its || load(c.entry[p.entry].start_time) == p.start_time) continue;
        c.entry[p.entry].start_time.store(p.start_time, std::memory_order_release);
        repaired.push_back(fmt::format("entry {} ({}): start_time", p.entry,
                                       seat_name(made, std::min(p.seat, shm::max_seats - 1))));
    }
    return repaired;
}

}  // namespace carousel::ring
