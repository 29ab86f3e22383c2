#pragma once
// The camera's path: where the eye is in frame n, from the settings and n alone, so that a restarted source repeats it bit for bit.

#include "core/sine_cosine.hpp"
#include "shm/scene_state.hpp"

namespace carousel::ring {

/// The scene as frame `sequence` is drawn: camera.eye turned about the vertical (y) through camera.target by orbit * sequence. Whoever
/// moves the eye meanwhile (the viewer's mouse) moves the path's start, and the orbit goes on from there.
[[nodiscard]] inline shm::scene_state scene_at(shm::scene_state scene, u64 sequence) noexcept {
    if (scene.orbit == 0.0F) return scene;
    const sine_cosine turn = sincos_(static_cast<f64>(sequence) * scene.orbit);
    shm::camera_state& c = scene.camera;
    const f64 x = f64{c.eye[0]} - c.target[0], z = f64{c.eye[2]} - c.target[2];
    c.eye[0] = static_cast<f32>(c.target[0] + (x * turn.cosine + z * turn.sine));
    c.eye[2] = static_cast<f32>(c.target[2] + (z * turn.cosine - x * turn.sine));
    return scene;
}

}  // namespace carousel::ring
