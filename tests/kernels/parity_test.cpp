// CPU = GPU, bit for bit: meshes, pictures of every shape, size and shading mode, sharpening. Needs a GPU.
#include <array>

#include "tests/kernels/backend.hpp"
#include "tests/kernels/mapped_mesh.hpp"
#include "tests/kernels/reference.hpp"

using namespace carousel;
using namespace carousel::kernels;
using namespace carousel::kernels::testing;

namespace {

u32 triangles_for(mesh_shape shape, u32 requested) {
    return shape == mesh_shape::quad_stack ? 40 : requested;
}

backend& cpu_backend() {
    static backend b = open_backend(device::device_kind::cpu);
    return b;
}

void require_equal_pictures(const chain_options& options, const kernels::scene_state& scene,
                            u64 frame_number) {
    auto& on = tested();
    auto& host = cpu_backend();
    chain gpu(*on.context, *on.queue, options), cpu(*host.context, *host.queue, options);
    gpu.scene = cpu.scene = scene;
    REQUIRE(gpu.mesh_bytes() == cpu.mesh_bytes());
    for (const u32 mode : {0U, 1U, 2U, 3U, 4U, 5U}) {  // 4 and 5: the first two as wireframes
        gpu.scene.shading = cpu.scene.shading = mode % 4;
        gpu.scene.wireframe = cpu.scene.wireframe = mode / 4;
        CAPTURE(mode, static_cast<int>(options.shape), options.width, options.height, options.triangles);
        const std::vector<u32> expected = cpu.render(frame_number);
        REQUIRE(differences(gpu.render(frame_number), expected) == 0);
        const triangle_counters a = gpu.counters(), b = cpu.counters();
        REQUIRE(std::memcmp(&a, &b, sizeof a) == 0);
        for (const raster_path path : all_paths)
            REQUIRE(differences(gpu.render(frame_number, path), expected) == 0);
    }
}

}  // namespace

TEST_CASE("CPU and GPU: every mesh gives the same bytes and the same pictures") {
    CAROUSEL_NEEDS_DEVICE();
    for (const mesh_shape shape : shapes) {
        require_equal_pictures({shape, triangles_for(shape, 20'000), 640, 360, 1}, {}, 7);
    }
}

TEST_CASE("CPU and GPU: odd sizes, 4K and instances") {
    CAROUSEL_NEEDS_DEVICE();
    for (const auto& [w, h] : {std::array{1U, 1U}, {7U, 5U}, {65U, 33U}, {1921U, 1079U}}) {
        require_equal_pictures({mesh_shape::bumpy_sphere, 10'000, w, h, 1}, {}, 1);
    }
    kernels::scene_state high;
    high.camera.eye[1] = 3.0F;
    high.camera.eye[2] = 8.0F;
    require_equal_pictures({mesh_shape::torus_knots, 5'000, 320, 240, 9}, high, 3);
}

TEST_CASE("CPU and GPU: a million triangles in 4K") {
    CAROUSEL_NEEDS_DEVICE();
    auto& host = cpu_backend();
    const chain_options options{mesh_shape::bumpy_sphere, 1'000'000, 3840, 2160, 1};
    chain gpu(*on.context, *on.queue, options), cpu(*host.context, *host.queue, options);
    const std::vector<u32> expected = cpu.render(5);
    for (u32 repeat = 0; repeat < 3; ++repeat) REQUIRE(differences(gpu.render(5), expected) == 0);
}

TEST_CASE("CPU and GPU: the camera inside the mesh, clipping everywhere") {
    CAROUSEL_NEEDS_DEVICE();
    kernels::scene_state inside;
    inside.camera.eye[0] = 0.2F;
    inside.camera.eye[2] = 0.95F;
    inside.camera.near = 0.2F;
    for (const mesh_shape shape : shapes)
        require_equal_pictures({shape, triangles_for(shape, 4'000), 320, 200, 1}, inside, 2);
}

TEST_CASE("CPU and GPU: more large triangles than the tiles' store holds") {
    CAROUSEL_NEEDS_DEVICE();
    auto& host = cpu_backend();
    const chain_options options{mesh_shape::quad_stack, 300'000, 24, 24, 1};
    chain gpu(*on.context, *on.queue, options), cpu(*host.context, *host.queue, options);
    const std::vector<u32> expected = cpu.render(0);
    REQUIRE(differences(gpu.render(0, raster_path::large), expected) == 0);
    REQUIRE(differences(gpu.render(0), expected) == 0);
}

TEST_CASE("CPU and GPU: slivers and one triangle over the whole picture, next to each size class") {
    CAROUSEL_NEEDS_DEVICE();
    auto& host = cpu_backend();
    for (const auto& [w, h] : {std::array{1U, 1U}, {130U, 70U}, {3840U, 2160U}}) {
        triangle_set set;
        const i32 right = static_cast<i32>(w) * 256, bottom = static_cast<i32>(h) * 256;
        const u32 corner = set.vertex(-900, -700, 0.2F);
        set.triangle(corner, set.vertex(-900, 2 * bottom + 2000, 0.3F),
                     set.vertex(2 * right + 2000, -700, 0.4F));
        std::mt19937 random(w);
        for (u32 i = 0; i < 300; ++i) {  // from one side to the other, at most three pixels wide
            const i32 y = random_in(random, 0, bottom), end = random_in(random, 0, bottom),
                      x = random_in(random, 0, right);
            const bool upright = (i & 1U) != 0;
            const u32 a = upright ? set.vertex(x, 0, 0.5F) : set.vertex(0, y, 0.5F);
            const u32 b = upright ? set.vertex(x + random_in(random, -9000, 9000), bottom, 0.9F)
                                  : set.vertex(right, end, 0.9F);
            triangle_set::vertex_spec c = set.vertices[a];
            (upright ? c.x : c.y) += random_in(random, -700, 700);
            const u32 third = set.vertex(c.x, c.y, 0.7F);
            set.triangle(a, b, third), set.triangle(a, third, b);
        }
        for (const u32 mode : {2U, 3U}) {
            screen_chain gpu(*on.context, *on.queue, set, w, h, mode),
                cpu(*host.context, *host.queue, set, w, h, mode);
            const std::vector<u32> expected = cpu.draw_all();
            for (const raster_path path : all_paths) {
                CAPTURE(w, h, mode, static_cast<int>(path));
                REQUIRE(differences(gpu.draw_all(path), expected) == 0);
            }
        }
    }
}

TEST_CASE("CPU and GPU: several textures with mip levels, and each level of one") {
    CAROUSEL_NEEDS_DEVICE();
    auto& host = cpu_backend();
    for (const u32 side : {0U, 64U, 1000U, 4096U}) {
        const mapped_mesh m = side == 0 ? soup_with_textures(3000) : square_with_levels(side);
        const chain_options options{mesh_shape::bumpy_sphere, m.layout.counts.triangle_count, 333, 201, 1};
        chain gpu(*on.context, *on.queue, options, m.layout),
            cpu(*host.context, *host.queue, options, m.layout);
        gpu.set_mesh(m.block);
        cpu.set_mesh(m.block);
        for (const u64 frame : {0U, 40U, 150U})
            REQUIRE(differences(gpu.render(frame), cpu.render(frame)) == 0);
    }
}

TEST_CASE("CPU and GPU: a field of instances") {
    CAROUSEL_NEEDS_DEVICE();
    auto& host = cpu_backend();
    const u32 count = 500;
    const auto models_on = [&](backend& b, u64 frame) {
        const auto draw = b.context->allocate(sizeof(draw_record)), models = b.context->allocate(count * 64);
        animate_instances(*b.queue, {frame,
                                     {},
                                     count,
                                     2.4F,
                                     reinterpret_cast<draw_record*>(draw->data()),
                                     reinterpret_cast<f32*>(models->data()),
                                     arrangement::field});
        const auto staging = b.context->allocate_host(count * 64);
        b.queue->copy(staging->data(), models->data(), count * 64);
        b.queue->drain();
        return std::vector<std::byte>(staging->data(), staging->data() + count * 64);
    };
    for (const u64 frame : {0U, 1U, 1234567U}) REQUIRE(models_on(on, frame) == models_on(host, frame));
}

TEST_CASE("CPU and GPU: sharpening") {
    CAROUSEL_NEEDS_DEVICE();
    auto& host = cpu_backend();
    const u32 w = 641, h = 359;
    std::mt19937 random(3);
    const auto staging = on.context->allocate_host(w * h * 4);
    for (u32 i = 0; i < w * h; ++i) reinterpret_cast<u32*>(staging->data())[i] = static_cast<u32>(random());
    const auto a = host.context->allocate(w * h * 4), b = host.context->allocate(w * h * 4);
    std::memcpy(a->data(), staging->data(), w * h * 4);
    sharpen(*host.queue,
            {reinterpret_cast<const u8*>(a->data()), reinterpret_cast<u8*>(b->data()), w, h, 300});
    host.queue->drain();
    const auto in = on.context->allocate(w * h * 4), out = on.context->allocate(w * h * 4);
    on.queue->copy(in->data(), staging->data(), w * h * 4);
    sharpen(*on.queue,
            {reinterpret_cast<const u8*>(in->data()), reinterpret_cast<u8*>(out->data()), w, h, 300});
    on.queue->copy(staging->data(), out->data(), w * h * 4);
    on.queue->drain();
    REQUIRE(std::memcmp(staging->data(), b->data(), w * h * 4) == 0);
}

TEST_CASE("CPU and GPU: a picture's hash, of every size") {
    CAROUSEL_NEEDS_DEVICE();
    auto& host = cpu_backend();
    for (const auto& [width, height] :
         {std::array{1U, 1U}, {7U, 5U}, {1280U, 720U}, {1921U, 1079U}, {3840U, 2160U}}) {
        const u64 bytes = u64{width} * height * 4, wanted = hash_scratch_bytes(on.queue->kind());
        const auto picture = on.context->allocate_host(bytes), copy = on.context->allocate(bytes),
                   scratch = on.context->allocate(wanted + 1);
        const auto out = on.context->allocate_host(16);
        for (u64 k = 0; k < bytes; ++k) picture->host_data()[k] = static_cast<std::byte>(k * k >> 5U);
        on.queue->copy(copy->data(), picture->data(), bytes);
        hash_plane(*on.queue, {copy->data(), u64{width} * 4, height, u64{width} * 4, scratch->data(), wanted,
                               reinterpret_cast<u64*>(out->data())});
        on.queue->drain();
        hash_plane(*host.queue, {picture->host_data(), u64{width} * 4, height, u64{width} * 4, nullptr, 0,
                                 reinterpret_cast<u64*>(out->host_data()) + 1});
        host.queue->drain();
        CAPTURE(width, height);
        CHECK(std::memcmp(out->host_data(), out->host_data() + 8, 8) == 0);
    }
}
