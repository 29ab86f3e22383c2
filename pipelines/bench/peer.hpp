#pragma once
// Another renderer that draws the same scene as ours: the same mesh, matrices, light, texture, culling and
// depth test, in the way that is natural to it (a static mesh in its own memory, hardware sRGB), so that the
// comparison is fair to it. One thread makes and uses it. It owns its mesh and targets. Setting up throws
// device_error with the reason and what to do.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/kernels.hpp"

namespace carousel::bench {

struct peer_options {
    bool gpu = false;  ///< the GPU with the CUDA ordinal below; else a renderer on the CPU
    int ordinal = 0;
    u32 threads = 0;  ///< of a renderer on the CPU; 0: its own choice
    /// Filters the texture's sRGB values as ours does, and converts in the shader. Slower than hardware sRGB,
    /// which filters linear values: for comparing pictures, not for timing.
    bool same_filter = false;
};

struct peer_time {
    f64 ms = 0;      ///< as timing() says
    f64 cpu_ms = 0;  ///< CPU time of all threads of this process
};

class peer {
public:
    virtual ~peer() = default;
    /// as it calls itself, e.g. "llvmpipe (LLVM 15.0.6, 256 bits)"
    [[nodiscard]] virtual std::string renderer() const = 0;
    [[nodiscard]] virtual std::string version() const = 0;
    /// How draw() measures: "wall" (until glFinish returns) or "device" (timestamp queries around the frame's
    /// commands).
    [[nodiscard]] virtual std::string timing() const = 0;
    /// Uploads a mesh block (mesh_layout.hpp) that lies in host memory; it may be freed afterwards.
    virtual void load(const kernels::mesh_layout& layout, std::span<const std::byte> block) = 0;
    /// Targets of width x height pixels: RGBA8 and 24 bits of depth. Throws device_error when GL refuses.
    virtual void resize(u32 width, u32 height) = 0;
    /// Clears and draws one lit picture, complete when it returns. `models` f32[instances][16] as
    /// animate_instances() makes them.
    virtual peer_time draw(const kernels::scene_state& scene, std::span<const f32> models) = 0;
    /// The last picture as ours would lie: u32[height][width] RGBA, top row first.
    [[nodiscard]] virtual std::vector<u32> picture() = 0;
    /// Draws the scene once more as triangle ids: u32[height][width], top row first, ~0 where nothing is.
    [[nodiscard]] virtual std::vector<u32> ids(const kernels::scene_state& scene,
                                               std::span<const f32> models) = 0;
};

/// OpenGL 3.3 through EGL without a display.
[[nodiscard]] std::unique_ptr<peer> open_opengl(const peer_options& options);

}  // namespace carousel::bench
