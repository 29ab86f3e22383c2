#include "supervisor/kept_figures.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "ring/scene.hpp"

namespace carousel::supervisor {
namespace {

/// No counter grows by more between two looks: 137 s in nanoseconds, and far more frames than there are.
constexpr u64 longest_step = u64{1} << 37U;

void look(shm::stage_counters& kept, const shm::stage_counters& now) {
    static_assert(sizeof(shm::stage_counters) % sizeof(shm::word) == 0);
    const auto* from = reinterpret_cast<const shm::word*>(&now);
    auto* to = reinterpret_cast<shm::word*>(&kept);
    for (std::size_t k = 0; k < sizeof kept / sizeof(shm::word); ++k) {
        const u64 value = from[k].load(std::memory_order_relaxed), before = to[k].load(std::memory_order_relaxed);
        if (value >= before && value - before < longest_step) to[k].store(value, std::memory_order_relaxed);
    }
}

void copy(shm::stage_counters& to, const shm::stage_counters& from) {
    std::memcpy(static_cast<void*>(&to), static_cast<const void*>(&from), sizeof to);
}

}  // namespace

void kept_figures::sample(const shm::control_block& c, u32 stages) {
    const bool first = !kept_;
    if (first) kept_ = std::make_unique<shm::stage_counters[]>(shm::max_stages);
    for (u32 k = 0; k < std::min(stages, shm::max_stages); ++k) {
        if (first)
            copy(kept_[k], c.stage[k].counters);
        else
            look(kept_[k], c.stage[k].counters);
    }
}

void kept_figures::believe(const shm::control_block& c, u32 stages) noexcept {
    for (u32 k = 0; k < std::min(stages, shm::max_stages); ++k) torn_[k] = ring::load(c.stage[k].counters.torn);
}

void kept_figures::restore(shm::control_block& fresh, const shm::control_block& old, const shm::scene_state& first_scene,
                           u32 stages, bool doubted) {
    sample(old, stages);
    for (u32 k = 0; k < std::min(stages, shm::max_stages); ++k) copy(fresh.stage[k].counters, kept_[k]);
    for (u32 k = 0; doubted && k < std::min(stages, shm::max_stages); ++k)
        fresh.stage[k].counters.torn.store(torn_[k], std::memory_order_relaxed);
    shm::scene_state scene = first_scene;
    if (ring::load(old.scene.current) != 0)  // 0: nobody has changed it since the start
        if (const shm::scene_state set = ring::read_scene(old.scene); is_possible(set)) scene = set;
    for (shm::scene_state& s : fresh.scene.copy) s = scene;
}

bool is_possible(const shm::scene_state& s) noexcept {
    const auto finite = [](const auto& values) {
        return std::all_of(std::begin(values), std::end(values), [](f32 v) { return std::isfinite(v); });
    };
    const f32 single[] = {s.ambient, s.spin, s.exposure, s.orbit};
    const shm::camera_state& c = s.camera;
    return finite(c.eye) && finite(c.target) && finite(c.up) && finite(s.light) && finite(single) && c.fov_y > 0 &&
           c.fov_y < std::numbers::pi_v<f32> && c.near > 0 && c.near < c.far && s.shading <= 3 && s.wireframe <= 1;
}

}  // namespace carousel::supervisor
