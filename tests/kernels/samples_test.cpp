// Four samples per pixel: what each sample shows against the reference rasteriser, the light of edges against
// 16 samples per pixel, and transparent layers.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "device/cpu/pool.hpp"
#include "kernels/body/samples.hpp"
#include "kernels/cpu/shade_entries.hpp"
#include "kernels/environment.hpp"
#include "kernels/looks.hpp"
#include "tests/kernels/backend.hpp"
#include "tests/kernels/reference.hpp"

using namespace carousel;
using namespace carousel::kernels;
using namespace carousel::kernels::testing;

namespace {

/// A G-buffer in the test's memory.
struct gbuffer {
    u32 width, height, samples;
    std::vector<u32> albedo, normal, material, further;
    std::vector<f32> depth;
    std::vector<u8> coverage;

    gbuffer(u32 w, u32 h, u32 per_pixel) : width(w), height(h), samples(per_pixel) {
        const u64 pixels = u64{w} * h;
        for (auto* plane : {&albedo, &normal, &material}) plane->resize(pixels);
        depth.resize(pixels), coverage.resize(pixels),
            further.resize(pixels * further_surfaces * layer_words);
    }
    surface_planes planes() {
        surface_planes p{albedo.data(), normal.data(), material.data(), depth.data()};
        if (samples == 4) p.coverage = coverage.data(), p.samples = further.data();
        return p;
    }
    /// Word `word` (0: depth, 1: albedo) of the surface that a sample shows.
    [[nodiscard]] u32 shown(u32 x, u32 y, u32 sample, u32 word) const {
        const u64 at = u64{y} * width + x;
        const u32 number = coverage[at] >> (2 * sample) & 3U;
        if (number != 0) return further[(at * further_surfaces + number - 1) * layer_words + word];
        return word == 0 ? body::bits_of(depth[at]) : albedo[at];
    }
};

/// Rasterises the triangles of a chain.
void draw(chain& from, gbuffer& to, const surface_look& look = {}) {
    fragment_stage_args a;
    a.mesh = from.layout(), a.mesh_block = from.mesh_address();
    a.in = from.buffers(), a.scene = from.scene;
    a.width = to.width, a.height = to.height;
    a.surface = to.planes(), a.look = look, a.samples = to.samples;
    scratch_memory scratch(
        fragment_scratch_bytes(device::device_kind::cpu, to.width, to.height, 0, to.samples));
    a.scratch = scratch.data(), a.scratch_bytes = scratch.size();
    fragment_stage(from.queue(), a);
    from.queue().drain();
}

const environment* procedural_sky() {
    static const std::unique_ptr<environment> made_once = [] {
        auto made = std::make_unique<environment>();
        make_environment(*made);
        return made;
    }();
    return made_once.get();
}

/// The light of a scene without what depends on the size of pixels: no shadow map, no ambient occlusion.
std::vector<f32> lit(backend& on, gbuffer& surface, const scene_state& scene) {
    std::vector<f32> radiance(u64{surface.width} * surface.height * 4);
    const auto out = on.context->allocate(radiance.size() * 4);
    light_args a;
    a.in = surface.planes();
    a.sky = procedural_sky();
    a.scene = scene;
    a.width = surface.width, a.height = surface.height;
    a.occlusion_radius = 0.0F;
    a.radiance = reinterpret_cast<f32*>(out->data());
    light(*on.queue, a);
    on.queue->drain();
    std::memcpy(radiance.data(), out->data(), radiance.size() * 4);
    return radiance;
}

std::vector<f32> lit_scene(backend& on, u32 width, u32 height, u32 samples, std::vector<u8>* edges) {
    chain scene(*on.context, *on.queue,
                {mesh_shape::torus_knots, 3000, width, height, 3, arrangement::grid, 2.4F, samples});
    scene.scene.camera.eye[1] = 1.5F, scene.scene.camera.eye[2] = 6.0F;
    scene.animate(3);
    scene.vertex();
    surface_look look;
    look.material_count = 2;
    look.materials[0].textured = look.materials[1].textured = 0;
    look.materials[0].tint[0] = 0.1F, look.materials[1].roughness = 0.6F;
    look.has_floor = 1, look.floor_material.textured = 0;
    gbuffer surface(width, height, samples);
    draw(scene, surface, look);
    if (edges != nullptr) *edges = surface.coverage;
    return lit(on, surface, scene.scene);
}

}  // namespace

TEST_CASE("each of four samples shows the triangle that exact integer edges give") {
    backend on = open_backend(device::device_kind::cpu, 2);
    constexpr u32 width = 45, height = 37;
    std::mt19937 random(5);
    for (u32 round = 0; round < 6; ++round) {
        triangle_set set;
        const auto between = [&](i32 low, i32 high) {
            return low + static_cast<i32>(random() % static_cast<u32>(high - low));
        };
        // Coordinates of the picture of samples; some corners are shared, and some lie on a sample.
        for (u32 i = 0; i < 10; ++i) {
            i32 x = between(-4000, 2 * i32{width} * 256 + 4000),
                y = between(-4000, 2 * i32{height} * 256 + 4000);
            if (i % 3 == 0) x = (x & ~255) + 128, y = (y & ~255) + 128;
            (void)set.vertex(x, y, 0.2F + 0.1F * static_cast<f32>(i % 5));
        }
        for (u32 t = 0; t < 14; ++t) set.triangle(random() % 10, random() % 10, random() % 10);
        for (u32 a = 0; a < set.count(); ++a)
            for (u32 b = 0; b < a; ++b) REQUIRE(!body::near_bytes(body::shade_id(a), body::shade_id(b), 8));

        chain drawn(*on.context, *on.queue, {mesh_shape::bumpy_sphere, 0, width, height, 1},
                    lay_out_mesh({static_cast<u32>(set.vertices.size()), set.count(), 1, 1}));
        std::vector<std::byte> block(drawn.layout().bytes);
        std::memcpy(block.data() + drawn.layout().indices, set.indices.data(), set.indices.size() * 4);
        for (u32 i = 0; i < set.vertices.size(); ++i) {
            const vec3_position p = set.position(i, 2 * width, 2 * height);
            store_vertex(block.data(), drawn.layout(), i, {{p.x, p.y, p.w}, {}, {}});
        }
        drawn.set_mesh(block);
        drawn.set_instances({triangle_set::identity()});
        drawn.scene.shading = 2;  // the numbers of triangles
        reference exact(2 * width, 2 * height);
        std::vector<u32> list(set.count());
        triangle_counters counters{};
        counters.instance_count = 1;
        for (u32 id = 0; id < set.count(); ++id) {
            const auto at = [&](u32 k) {
                return set.on_screen(set.indices[id * 3 + k], 2 * width, 2 * height);
            };
            exact.draw(id, at(0), at(1), at(2));
            if (body::classify(at(0), at(1), at(2), 2 * i32{width}, 2 * i32{height}) ==
                body::triangle_class::small)
                list[counters.small++] = id;
            else
                list[list.size() - 1 - counters.large++] = id;
        }
        drawn.set_triangles(list, counters);
        gbuffer surface(width, height, 4);
        draw(drawn, surface);
        u32 wrong = 0, edges = 0;
        for (u32 y = 0; y < height; ++y) {
            for (u32 x = 0; x < width; ++x) {
                edges += u32{surface.coverage[y * width + x] != 0};
                for (u32 s = 0; s < 4; ++s) {
                    const u64 key = exact.keys[u64{2 * y + (s >> 1)} * 2 * width + 2 * x + (s & 1U)];
                    const bool empty = key == ~0ULL;
                    const u32 expected = empty ? 0U : body::shade_id(static_cast<u32>(key));
                    wrong += u32{surface.shown(x, y, s, 1) != expected} +
                             u32{(surface.shown(x, y, s, 0) == 0) != empty};
                }
            }
        }
        CAPTURE(round);
        CHECK(wrong == 0);
        CHECK(edges > 50);
    }
}

TEST_CASE("four samples halve the error of edges against sixteen samples") {
    backend on = open_backend(device::device_kind::cpu, 2);
    constexpr u32 width = 160, height = 100;
    std::vector<u8> edges;
    const std::vector<f32> four = lit_scene(on, width, height, 4, &edges),
                           one = lit_scene(on, width, height, 1, nullptr),
                           fine = lit_scene(on, 4 * width, 4 * height, 1, nullptr);
    // On the screen, where light above 1 is white.
    const auto shown = [](f32 light) { return std::clamp(light, 0.0F, 1.0F); };
    f64 of_four = 0, of_one = 0;
    u32 pixels = 0;
    for (u32 y = 0; y < height; ++y) {
        for (u32 x = 0; x < width; ++x) {
            const u64 at = u64{y} * width + x;
            if (edges[at] == 0) continue;
            ++pixels;
            for (u32 k = 0; k < 3; ++k) {
                f64 mean = 0;
                for (u32 s = 0; s < 16; ++s)
                    mean +=
                        shown(fine[((4 * u64{y} + s / 4) * 4 * width + 4 * u64{x} + s % 4) * 4 + k]) / 16.0;
                of_four += std::abs(shown(four[4 * at + k]) - mean);
                of_one += std::abs(shown(one[4 * at + k]) - mean);
            }
        }
    }
    CAPTURE(pixels, of_four / pixels, of_one / pixels);
    CHECK(pixels > 500);
    CHECK(of_four < 0.5 * of_one);
}

TEST_CASE("a transparent layer covers those samples whose surface is farther away") {
    backend on = open_backend(device::device_kind::cpu, 1);
    const scene_state scene;
    const u32 up = body::pack_normal({0.0F, 1.0F, 0.0F}), front = body::pack_normal({0.0F, 0.0F, 1.0F});
    const auto words = [](u32 r, u32 g) { return 0xff000000U | g << 8 | r; };
    // The light of the first of two pixels; the second one shows the sky.
    const auto light_of = [&](f32 depth, u8 coverage, f32 layer_depth, u32 samples) {
        gbuffer surface(2, 1, samples);
        surface.albedo = {words(200, 20), 0}, surface.normal = {up, 0}, surface.material = {128, 0};
        surface.depth = {depth, 0};
        surface.coverage = {coverage, 0};  // the second surface is the sky: its words are 0
        std::vector<u32> layers = {body::bits_of(layer_depth), words(10, 220), front, 128U | 128U << 24, 0};
        layers.resize(2 * layer_words);
        surface_planes planes = surface.planes();
        planes.layers = layers.data(), planes.layer_count = 1;
        light_args a;
        alignas(16) f32 radiance[8];
        a.in = planes, a.sky = procedural_sky(), a.scene = scene, a.width = 2, a.height = 1;
        a.occlusion_radius = 0.0F, a.radiance = radiance;
        light(*on.queue, a);
        on.queue->drain();
        return std::array<f32, 3>{radiance[0], radiance[1], radiance[2]};
    };
    // Samples 0 and 1 show a surface at the distance 2, samples 2 and 3 the sky; the layer is at 3.
    const auto near = light_of(0.5F, 0, 0.0F, 1), covered_sky = light_of(0.0F, 0, 1.0F / 3.0F, 1),
               both = light_of(0.5F, 0b01010000, 1.0F / 3.0F, 4);
    // The same layer at the distance 1 precedes all samples.
    const auto covered = light_of(0.5F, 0, 1.0F, 1), near_sky = light_of(0.0F, 0, 1.0F, 1),
               all = light_of(0.5F, 0b01010000, 1.0F, 4);
    for (u32 k = 0; k < 3; ++k) {
        CHECK(std::abs(both[k] - 0.5F * (near[k] + covered_sky[k])) < 1e-5F);
        CHECK(std::abs(all[k] - 0.5F * (covered[k] + near_sky[k])) < 1e-5F);
    }
    CHECK(std::abs(near[1] - covered[1]) > 0.05F);
}
