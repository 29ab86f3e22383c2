#pragma once
// The device that a test executable runs its cases on: the CPU, or (CAROUSEL_TEST_CUDA=1) the first GPU, or
// nothing.

#include <cstdlib>

#include "core/errors.hpp"
#include "kernels/chain.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skip.hpp"

namespace carousel::kernels::testing {

struct backend {
    std::unique_ptr<device::context> context;
    std::unique_ptr<device::queue> queue;
};

/// Null members when there is no such device.
inline backend open_backend(device::device_kind kind, unsigned threads = 0) {
    backend b;
    try {
        b.context = device::open({kind, "", 0}, threads);
        b.queue = b.context->make_queue();
    } catch (const device_error& e) {
        std::printf("no device: %s\n", e.what());
        b.context.reset();
    }
    return b;
}

/// Stays open for the whole process: a CUDA context costs 200 ms.
inline backend& tested() {
    static backend b =
        open_backend(CAROUSEL_TEST_CUDA ? device::device_kind::cuda : device::device_kind::cpu);
    return b;
}

inline constexpr mesh_shape shapes[] = {mesh_shape::bumpy_sphere,  mesh_shape::fractal_terrain,
                                        mesh_shape::torus_knots,   mesh_shape::quad_stack,
                                        mesh_shape::triangle_soup, mesh_shape::long_slivers};
inline constexpr raster_path all_paths[] = {raster_path::automatic, raster_path::small, raster_path::medium,
                                            raster_path::large};

/// Under a sanitizer, where a picture takes ten times as long, cases draw fewer triangles and repeat less:
/// every path is still taken, and builds without one tell whether the pictures are right.
#ifdef CAROUSEL_SANITIZED
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif
inline constexpr u32 many_triangles = sanitized ? 3'000 : 20'000;

/// Scratch memory as a device context would give it: aligned.
class scratch_memory {
public:
    explicit scratch_memory(u64 bytes) : lines_((bytes + sizeof(line) - 1) / sizeof(line)), bytes_(bytes) {}
    [[nodiscard]] std::byte* data() { return lines_.data()->bytes; }
    [[nodiscard]] u64 size() const { return bytes_; }

private:
    struct alignas(block_alignment) line {
        std::byte bytes[block_alignment];
    };
    std::vector<line> lines_;
    u64 bytes_;
};

}  // namespace carousel::kernels::testing

#define CAROUSEL_NEEDS_DEVICE()                      \
    auto& on = carousel::kernels::testing::tested(); \
    if (!on.context) CAROUSEL_SKIP("this machine has no usable GPU")
