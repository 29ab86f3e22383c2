#pragma once
// Kernels of the stages that follow a G-buffer: shadow map, light, post-processing, comparison of two
// pictures. They are asynchronous, as those of kernels.hpp, and give the same bytes on the CPU and on the
// GPU.

#include "device/backend.hpp"
#include "kernels/environment.hpp"
#include "kernels/motion_layout.hpp"
#include "kernels/punctual_light.hpp"
#include "kernels/scene.hpp"
#include "kernels/surface_planes.hpp"

namespace carousel::kernels {

/// Changes of all materials of a G-buffer, except unlit ones.
struct material_override {
    f32 tint[3] = {1.0F, 1.0F, 1.0F};  ///< factors of the base colour
    f32 roughness = -1.0F;             ///< 0 .. 1 instead of the material's own; negative: its own
    f32 metallic = -1.0F;              ///< likewise
};

/// Shades each pixel of a G-buffer, as scene-referred linear light.
struct light_args {
    surface_planes in;            ///< of `width` x `height` pixels
    const f32* shadow = nullptr;  ///< f32[shadow_side][shadow_side]; null: no shadows
    u32 shadow_side = 0;
    f32 shadow_radius = 2.0F;  ///< world units around the target that the shadow map covers
    const environment* sky = nullptr;
    scene_state scene;  ///< that of the G-buffer
    u32 width = 0, height = 0;
    f32 sun = 3.0F;               ///< irradiance of the directional light
    f32 occlusion_radius = 0.3F;  ///< world units; 0: no ambient occlusion
    f32 fog = 0.0F;               ///< 1 / distance at which e^-1 of a surface's light is left; 0: none
    material_override material;
    const punctual_light* lights = nullptr;  ///< in addition to the directional light
    u32 light_count = 0;                     ///< at most max_lights
    /// What is visible where there is no surface, u32[backdrop_side][backdrop_side] (sky_picture.hpp); null:
    /// the procedural sky.
    const u32* backdrop = nullptr;
    f32* radiance = nullptr;  ///< f32[height][width][4], 16-byte aligned; the fourth value is 1
    u8* scratch = nullptr;    ///< u8[height][width], private to the queue
};
void light(device::queue& q, const light_args& args);

/// How the vertices of a mesh move within it (skins, morph targets). A null block: not at all.
struct vertex_motion {
    motion_layout layout;
    const std::byte* block = nullptr;
    // f32[matrices][12], and f32[weights], or f32[1] without weights
    pose_planes now;     ///< of the scene; is only read
    pose_planes before;  ///< `after` of the frame before, or zeros; is only read
    pose_planes after;
};
/// Where the surfaces of a mesh are and were. A null `triangle`: only the camera moves.
struct mesh_motion {
    const u32* triangle = nullptr;  ///< surface_planes::triangle
    mesh_layout mesh;
    const std::byte* mesh_block = nullptr;  ///< needed only if vertices move
    u32 copies = 0;
    const draw_record* draw = nullptr;  ///< planes of the scene
    const f32* models = nullptr;        ///< f32[copies][16]
    const f32* before = nullptr;        ///< f32[copies][12]: `after` of the frame before, or zeros
    f32* after = nullptr;  ///< the matrices of the copies that this frame has, zeros of all others
    vertex_motion vertices;
};
/// Mixes each frame with those before it: temporal anti-aliasing.
struct taa_args {
    const f32* radiance =
        nullptr;  ///< f32[height][width][4], 16-byte aligned, as are `history`, `out` and `next`
    const f32* depth = nullptr;    ///< f32[height][width], that of the G-buffer
    const f32* history = nullptr;  ///< f32[height][width][4]: `next` of the frame before, or zeros
    const f32* before = nullptr;   ///< f32[12]: `after` of the frame before, or zeros
    f32* out = nullptr;            ///< f32[height][width][4]; the fourth value is 1
    f32* next = nullptr;           ///< the same light; the fourth value is the number of frames in it
    f32* after = nullptr;          ///< the frame's matrix from the world to clip space, without jitter
    mesh_motion motion;
    scene_state scene;  ///< with which the frame was drawn
    u32 width = 0, height = 0;
    u32 frames = 32;  ///< the newest frame has at least this part of what stands still: 1 / frames
};
void taa(device::queue& q, const taa_args& args);

enum class tone_map_name : u8 { linear, neutral, aces };
inline constexpr u32 bloom_levels = 5;
/// Bytes of private memory that post() needs.
[[nodiscard]] u64 post_scratch_bytes(u32 width, u32 height);
/// Exposure by the light of the frames: the mean of the logarithm of the luminance becomes `key`.
struct meter_args {
    const f32* before = nullptr;  ///< f32[2]: `after` of the frame before, or zeros. Null: no such exposure
    f32* after = nullptr;         ///< f32[2]: the exposure, as log2 and as a factor
    f32 frames = 30.0F;           ///< the exposure approaches what a frame asks for by 1 / frames
    f32 key = 0.18F;              ///< luminance of a grey card
    f32 most_stops = 6.0F;        ///< limit of log2 of the exposure, in both directions
};
/// Bloom, exposure, tone mapping, sRGB, anti-aliasing of edges.
struct post_args {
    const f32* radiance = nullptr;  ///< f32[height][width][4], 16-byte aligned
    u8* color = nullptr;            ///< u8[height][width][4]
    u32 width = 0, height = 0;
    f32 exposure = 1.0F;
    meter_args meter;  ///< its exposure multiplies the other one
    f32 bloom =
        0.06F;  ///< part of the light that the lens scatters, 0 .. 1; 0: on the CPU no bloom is computed
    tone_map_name map = tone_map_name::neutral;
    bool smooth_edges = true;  ///< FXAA
    std::byte* scratch = nullptr;
};
void post(device::queue& q, const post_args& args);

/// Compares two pictures: black where they are equal, otherwise the absolute difference, times `gain` and at
/// least 32.
struct compare_args {
    const u8* a = nullptr;
    const u8* b = nullptr;
    u8* color = nullptr;  ///< u8[height][width][4]
    u32* rows = nullptr;  ///< u32[height][2]: sum of the absolute differences of red, green and blue; number
                          ///< of pixels
    u32 width = 0, height = 0;
    u32 gain = 8;
};
void compare(device::queue& q, const compare_args& args);

}  // namespace carousel::kernels
