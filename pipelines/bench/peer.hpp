#pragma once
// A reference renderer that draws the same scene as our renderer: the same mesh, matrices, light, texture,
// culling and depth test, each done in the way that is natural for that renderer (a static mesh in its own
// memory, hardware sRGB), so that the comparison is fair. Must be created and used by one thread. Owns its
// mesh and targets. Set-up throws device_error with the reason and a remedy.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/kernels.hpp"

namespace carousel::bench {

struct peer_options {
    bool gpu = false;  ///< true: render on the GPU with the CUDA ordinal below; false: render on the CPU
    int ordinal = 0;
    u32 threads = 0;  ///< number of threads of a renderer on the CPU; 0: the renderer's default
    /// Filters the texture's sRGB values as our renderer does, and converts in the shader. This is slower
    /// than hardware sRGB, which filters linear values. It is meant for comparing pictures, not for timing.
    bool same_filter = false;
};

struct peer_time {
    f64 ms = 0;      ///< measured as timing() describes
    f64 cpu_ms = 0;  ///< CPU time of all threads of this process
};

class peer {
public:
    virtual ~peer() = default;
    /// The renderer's own name, e.g. "llvmpipe (LLVM 15.0.6, 256 bits)".
    [[nodiscard]] virtual std::string renderer() const = 0;
    [[nodiscard]] virtual std::string version() const = 0;
    /// How draw() measures: "wall" (until glFinish returns) or "device" (timestamp queries around the frame's
    /// commands).
    [[nodiscard]] virtual std::string timing() const = 0;
    /// Uploads a mesh block (mesh_layout.hpp) from host memory; the block may be freed afterwards.
    virtual void load(const kernels::mesh_layout& layout, std::span<const std::byte> block) = 0;
    /// Makes targets of width x height pixels: RGBA8 and 24 bits of depth. Throws device_error if GL refuses.
    virtual void resize(u32 width, u32 height) = 0;
    /// Clears and draws one lit picture, and returns when it is complete. `models`: f32[instances][16] as
    /// animate_instances() computes them.
    virtual peer_time draw(const kernels::scene_state& scene, std::span<const f32> models) = 0;
    /// Returns the last picture in our layout: u32[height][width] RGBA, top row first.
    [[nodiscard]] virtual std::vector<u32> picture() = 0;
    /// Draws the scene again as triangle ids: u32[height][width], top row first, ~0 for the background.
    [[nodiscard]] virtual std::vector<u32> ids(const kernels::scene_state& scene,
                                               std::span<const f32> models) = 0;
};

/// Opens OpenGL 3.3 through EGL without a display. Throws device_error.
[[nodiscard]] std::unique_ptr<peer> open_opengl(const peer_options& options);

}  // namespace carousel::bench
