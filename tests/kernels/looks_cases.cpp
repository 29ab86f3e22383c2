// G-buffer, shadow map, light, post and comparison have the same bytes for every instruction set and number
// of threads, and on the GPU.
#include <cstring>
#include <vector>

#include "device/cpu/pool.hpp"
#include "kernels/body/light_pixel.hpp"
#include "kernels/body/samples.hpp"
#include "kernels/body/surface.hpp"
#include "kernels/cpu/shade_entries.hpp"
#include "kernels/looks.hpp"
#include "tests/kernels/backend.hpp"
#include "tests/kernels/mapped_mesh.hpp"

using namespace carousel;
using namespace carousel::kernels;
using namespace carousel::kernels::testing;

namespace {

constexpr u32 width = 133, height = 71, side = 96;  // no multiples of a tile or a block
constexpr u64 pixels = u64{width} * height;
constexpr chain_options options{mesh_shape::torus_knots, 3000, width, height, 4};

const punctual_light lights[3] = {
    {{}, 0.0F, {0.6F, -0.8F, 0.0F}, 1.0F, {0.5F, 0.25F, 2.0F}, 0.0F, 0, {}},
    {{0.5F, 1.0F, 1.0F}, 3.0F, {}, 1.0F, {4.0F, 2.0F, 1.0F}, 0.0F, 1, {}},
    {{0.0F, 2.0F, 0.0F}, 0.0F, {0.0F, -1.0F, 0.0F}, 0.95F, {9.0F, 9.0F, 1.0F}, 0.7F, 2, {}}};

/// All memory of one run of the stages, on one device, and its bytes afterwards.
class looks {
public:
    looks(device::context& context, device::queue& queue, u32 samples = 1)
        : queue_(queue), scene_chain_(context, queue, options), samples_(samples) {
        prepare(context);
    }
    looks(device::context& context, device::queue& queue, const mapped_mesh& mesh, u32 samples = 1)
        : queue_(queue), scene_chain_(context, queue, options, mesh.layout), samples_(samples) {
        scene_chain_.set_mesh(mesh.block);
        prepare(context);
    }

    void prepare(device::context& context) {
        const auto room = [&](u64 bytes) {
            memory_.push_back(context.allocate(bytes));
            host_.push_back(context.allocate_host(bytes));
            return memory_.back()->data();
        };
        surface_.albedo = reinterpret_cast<u32*>(room(pixels * 4));
        surface_.normal = reinterpret_cast<u32*>(room(pixels * 4));
        surface_.material = reinterpret_cast<u32*>(room(pixels * 4));
        surface_.depth = reinterpret_cast<f32*>(room(pixels * 4));
        surface_.triangle = reinterpret_cast<u32*>(room(pixels * 4));
        if (scene_chain_.layout().counts.material_count > 0)
            surface_.emission = reinterpret_cast<u32*>(room(pixels * 4));
        if (scene_chain_.layout().counts.blended_count > 0) {
            surface_.layer_count = 3;
            surface_.layers = reinterpret_cast<u32*>(room(pixels * 3 * layer_words * 4));
            lights_ = room(sizeof lights);
            queue_.copy(lights_, lights, sizeof lights);
            backdrop_ = room(u64{backdrop_side} * backdrop_side * 4);
            std::vector<u32> texels(u64{backdrop_side} * backdrop_side);
            for (u32 i = 0; i < texels.size(); ++i) texels[i] = (i * 2654435761U >> 5) | 15U << 27;
            queue_.copy(backdrop_, reinterpret_cast<const std::byte*>(texels.data()), texels.size() * 4);
            queue_.drain();
        }
        if (samples_ == 4) {
            surface_.coverage = reinterpret_cast<u8*>(room(pixels));
            surface_.samples = reinterpret_cast<u32*>(room(pixels * further_surfaces * layer_words * 4));
            // Words of surfaces that no sample shows are not written.
            const std::vector<std::byte> zeros(memory_.back()->bytes());
            queue_.copy(memory_.back()->data(), zeros.data(), zeros.size());
            queue_.drain();
        }
        shadow_ = reinterpret_cast<f32*>(room(side * side * 4));
        radiance_ = reinterpret_cast<f32*>(room(pixels * 16));
        color_ = reinterpret_cast<u8*>(room(pixels * 4));
        difference_ = reinterpret_cast<u8*>(room(pixels * 4));
        rows_ = reinterpret_cast<u32*>(room(height * 8));
        results_ = memory_.size();
        exposure_ = reinterpret_cast<f32*>(room(2 * sizeof(f32)));
        exposure_before_ = reinterpret_cast<f32*>(room(2 * sizeof(f32)));
        const f32 before[2] = {-1.0F, 0.5F};
        queue_.copy(reinterpret_cast<std::byte*>(exposure_before_), before, sizeof before);
        queue_.drain();
        sky_ = room(sizeof(environment));
        occlusion_ = reinterpret_cast<u8*>(room(pixels));
        post_ = room(post_scratch_bytes(width, height));
        const u32 largest = width > side ? width : side;
        scratch_bytes_ =
            fragment_scratch_bytes(queue_.kind(), largest, largest, surface_.layer_count, samples_);
        scratch_ = context.allocate(scratch_bytes_);
        const auto made = std::make_unique<environment>();
        make_environment(*made);
        queue_.copy(sky_, made.get(), sizeof *made);
        queue_.drain();
        scene_chain_.scene.camera.eye[1] = 1.5F;
        scene_chain_.scene.camera.eye[2] = 6.0F;
        appearance_.material_count = 3;
        appearance_.materials[1].textured = 0;
        appearance_.materials[1].metallic = 1.0F;
        appearance_.materials[1].roughness = 0.2F;
        appearance_.materials[2].clearcoat = 1.0F;
        appearance_.materials[2].emission = 2.0F;
        appearance_.has_floor = 1;
        appearance_.floor_material.textured = 0;
    }

    scene_state& scene() { return scene_chain_.scene; }
    material_override material;
    f32 bloom = 0.1F;
    /// What may change during a run: other materials, and no bloom.
    void change() {
        material = {{0.5F, 1.0F, 0.25F}, 0.3F, 0.75F};
        bloom = 0.0F;
    }

    fragment_stage_args fragment(bool of_shadow) {
        fragment_stage_args a;
        a.mesh = scene_chain_.layout();
        a.mesh_block = mesh_;
        a.in = scene_chain_.buffers();
        a.scene = scene();
        a.width = of_shadow ? side : width;
        a.height = of_shadow ? side : height;
        a.scratch = scratch_->data();
        a.scratch_bytes = scratch_bytes_;
        if (of_shadow) {
            a.surface.depth = shadow_;
        } else {
            a.surface = surface_;
            a.look = appearance_;
            a.samples = samples_;
        }
        return a;
    }
    light_args light_of() {
        light_args a;
        a.in = surface_;
        a.shadow = shadow_;
        a.shadow_side = side;
        a.shadow_radius = 5.0F;
        a.sky = reinterpret_cast<const environment*>(sky_);
        a.scene = scene();
        a.width = width;
        a.height = height;
        a.fog = 0.05F;
        a.material = material;
        if (surface_.layers != nullptr) {
            a.lights = reinterpret_cast<const punctual_light*>(lights_);
            a.light_count = 3;
            a.backdrop = reinterpret_cast<const u32*>(backdrop_);
        }
        a.radiance = radiance_;
        a.scratch = occlusion_;
        return a;
    }
    post_args post_of(tone_map_name map) {
        post_args a;
        a.radiance = radiance_;
        a.color = color_;
        a.width = width;
        a.height = height;
        a.bloom = bloom;
        a.map = map;
        if (map == tone_map_name::aces) a.meter.before = exposure_before_, a.meter.after = exposure_;
        a.scratch = post_;
        return a;
    }
    /// The picture is compared with the plane of base colours.
    compare_args compare_of() {
        return {color_, reinterpret_cast<const u8*>(surface_.albedo), difference_, rows_, width, height, 8};
    }
    void vertices() {
        mesh_ = scene_chain_.mesh_address();
        scene_chain_.animate(3);
        const u32 scale = samples_ == 4 ? 2 : 1;
        scene_chain_.vertex(scale * width, scale * height);
    }
    /// A triangle's size class is of the camera and the size for which the vertex stage computed it.
    void light_vertices() { scene_chain_.vertex(side, side); }

    /// By the functions of kernels.hpp and looks.hpp.
    std::vector<std::byte> run(tone_map_name map) {
        const scene_state camera = scene();
        vertices();
        fragment_stage(queue_, fragment(false));
        scene().camera = body::light_camera(camera, 5.0F);
        light_vertices();
        fragment_stage(queue_, fragment(true));
        scene() = camera;
        light(queue_, light_of());
        post(queue_, post_of(map));
        compare(queue_, compare_of());
        return bytes();
    }
    /// By the loops of one instruction set.
    std::vector<std::byte> run(tone_map_name map, const cpu::entries& use, u32 threads) {
        device::cpu::pool pool(threads);
        const scene_state camera = scene();
        vertices();
        queue_.drain();
        cpu::run_fragment_stage(pool, fragment(false), use);
        scene().camera = body::light_camera(camera, 5.0F);
        light_vertices();
        queue_.drain();
        cpu::run_fragment_stage(pool, fragment(true), use);
        scene() = camera;
        cpu::run_light(pool, light_of(), use);
        cpu::run_post(pool, post_of(map), use);
        cpu::run_compare(pool, compare_of(), use);
        return bytes();
    }

    /// Pixel by pixel, by the functions that the GPU runs, except for the shadow map.
    std::vector<std::byte> run_pixels(tone_map_name map) {
        static constexpr body::srgb_tables tables = body::make_srgb_tables();
        device::cpu::pool pool(1);
        (void)run(map, cpu::best_entries(), 1);
        // With this little memory the triangles are drawn in several rounds, which leave their keys in it.
        vertices();
        queue_.drain();
        fragment_stage_args args = fragment(false);
        const u32 scale = samples_ == 4 ? 2 : 1;
        args.scratch_bytes = cpu::least_scratch_bytes(scale * width, scale * height);
        cpu::run_fragment_stage(pool, args, cpu::best_entries());
        const u64* const keys = reinterpret_cast<const u64*>(args.scratch);
        const body::surface_job job = body::make_surface_job(args);
        const u32 tiles_x = (scale * width + cpu::tile_width - 1) / cpu::tile_width;
        const auto key_at = [&](u32 x, u32 y) {
            const u32 tile = y / cpu::tile_height * tiles_x + x / cpu::tile_width;
            return keys[tile * cpu::tile_keys + y % cpu::tile_height * u64{cpu::tile_stride} +
                        x % cpu::tile_width];
        };
        each_pixel(width, height, [&](u32 x, u32 y) {
            if (samples_ == 1) return body::surface_pixel(job, host_tables{&tables}, key_at(x, y), x, y);
            const u64 of_samples[4] = {key_at(2 * x, 2 * y), key_at(2 * x + 1, 2 * y),
                                       key_at(2 * x, 2 * y + 1), key_at(2 * x + 1, 2 * y + 1)};
            body::samples_pixel(job, host_tables{&tables}, of_samples, x, y);
        });
        const body::light_pass lit = body::make_light_pass(light_of(), &tables);
        each_pixel(width, height, [&](u32 x, u32 y) { body::occlusion_pixel(lit, x, y); });
        each_pixel(width, height, [&](u32 x, u32 y) {
            if (samples_ == 1) return body::light_pixel(lit, tables, x, y);
            body::light_samples_pixel(lit, u64{y} * width + x, [&](const body::seen_words& w, f32 depth) {
                return body::seen_light(lit, tables, w, depth, x, y);
            });
        });
        const body::post_plan post = body::make_post_plan(post_of(map), &tables);
        if (post.meter.a.before != nullptr) {
            i64 sum = 0;
            each_pixel(width, height, [&](u32 x, u32 y) { sum += body::meter_pixel(post.meter, x, y); });
            body::meter_exposure(post.meter, sum);
        }
        for (const body::bloom_down_pass& down : post.down)
            each_pixel(down.to.width, down.to.height,
                       [&](u32 x, u32 y) { body::bloom_down_pixel(down, x, y); });
        for (const body::bloom_up_pass& up : post.up)
            each_pixel(up.to.width, up.to.height, [&](u32 x, u32 y) { body::bloom_up_pixel(up, x, y); });
        each_pixel(width, height, [&](u32 x, u32 y) { body::tone_pixel(post.tone, tables, x, y); });
        each_pixel(width, height, [&](u32 x, u32 y) { body::smooth_pixel(post.smooth, x, y); });
        cpu::run_compare(pool, compare_of(), cpu::best_entries());
        return bytes();
    }

private:
    struct host_tables {
        const body::srgb_tables* tables;
        [[nodiscard]] f32 decode(u32 i) const { return tables->decode[i]; }
        [[nodiscard]] u8 encode(u32 i) const { return tables->encode[i]; }
    };
    template <typename Pixel>
    static void each_pixel(u32 columns, u32 rows, const Pixel& pixel) {
        for (u32 y = 0; y < rows; ++y)
            for (u32 x = 0; x < columns; ++x) pixel(x, y);
    }

    std::vector<std::byte> bytes() {
        std::vector<std::byte> out;
        for (std::size_t i = 0; i < results_; ++i)
            queue_.copy(host_[i]->data(), memory_[i]->data(), memory_[i]->bytes());
        queue_.drain();
        for (std::size_t i = 0; i < results_; ++i)
            out.insert(out.end(), host_[i]->host_data(), host_[i]->host_data() + host_[i]->bytes());
        return out;
    }

    device::queue& queue_;
    chain scene_chain_;
    u32 samples_;
    const std::byte* mesh_ = nullptr;
    std::vector<std::unique_ptr<device::mapping>> memory_, host_;
    std::size_t results_ = 0;  ///< number of blocks at the front of memory_ that are results
    std::unique_ptr<device::mapping> scratch_;
    u64 scratch_bytes_ = 0;
    surface_planes surface_;
    surface_look appearance_;
    f32* shadow_ = nullptr;
    f32* radiance_ = nullptr;
    u8* color_ = nullptr;
    u8* difference_ = nullptr;
    u32* rows_ = nullptr;
    std::byte* sky_ = nullptr;
    u8* occlusion_ = nullptr;
    std::byte *lights_ = nullptr, *backdrop_ = nullptr;
    std::byte* post_ = nullptr;
    f32 *exposure_ = nullptr, *exposure_before_ = nullptr;
};

}  // namespace

#if CAROUSEL_TEST_CUDA
TEST_CASE("CPU and GPU: G-buffer, shadow map, light, post and comparison have the same bytes") {
    CAROUSEL_NEEDS_DEVICE();
    backend host = open_backend(device::device_kind::cpu);
    looks gpu(*on.context, *on.queue), cpu(*host.context, *host.queue);
    for (const tone_map_name map : {tone_map_name::neutral, tone_map_name::aces, tone_map_name::linear})
        REQUIRE(gpu.run(map) == cpu.run(map));
    gpu.change();
    cpu.change();
    REQUIRE(gpu.run(tone_map_name::neutral) == cpu.run(tone_map_name::neutral));
}
TEST_CASE("CPU and GPU: a G-buffer of mipmapped textures and of full materials has the same bytes") {
    CAROUSEL_NEEDS_DEVICE();
    backend host = open_backend(device::device_kind::cpu);
    for (const mapped_mesh& mesh : {soup_with_textures(3000), soup_with_materials(3000)}) {
        for (const u32 samples : {1U, 4U}) {
            looks gpu(*on.context, *on.queue, mesh, samples), cpu(*host.context, *host.queue, mesh, samples);
            CAPTURE(mesh.layout.counts.material_count, samples);
            for (const u32 mode : {0U, 1U, 2U, 3U, 4U}) {  // 4: the wireframe
                gpu.scene().shading = cpu.scene().shading = mode % 4;
                gpu.scene().wireframe = cpu.scene().wireframe = mode / 4;
                REQUIRE(gpu.run(tone_map_name::neutral) == cpu.run(tone_map_name::neutral));
            }
        }
    }
}
TEST_CASE("CPU and GPU: four samples per pixel give the same bytes") {
    CAROUSEL_NEEDS_DEVICE();
    backend host = open_backend(device::device_kind::cpu);
    looks gpu(*on.context, *on.queue, 4), cpu(*host.context, *host.queue, 4);
    for (const tone_map_name map : {tone_map_name::neutral, tone_map_name::linear})
        REQUIRE(gpu.run(map) == cpu.run(map));
}
#else
TEST_CASE("the loops over rows give the bytes of the functions of one pixel") {
    backend on = open_backend(device::device_kind::cpu, 2);
    const auto check = [](looks& l) {
        for (const tone_map_name map : {tone_map_name::neutral, tone_map_name::aces, tone_map_name::linear}) {
            const std::vector<std::byte> rows = l.run(map);
            REQUIRE(l.run_pixels(map) == rows);
        }
    };
    looks plain(*on.context, *on.queue);
    check(plain);
    const std::vector<std::byte> before = plain.run(tone_map_name::neutral);
    plain.change();
    const std::vector<std::byte> rows = plain.run(tone_map_name::neutral);
    CHECK(rows != before);
    CHECK(plain.run_pixels(tone_map_name::neutral) == rows);
    looks materials(*on.context, *on.queue, soup_with_materials(3000));
    check(materials);
    looks sampled(*on.context, *on.queue, 4);
    check(sampled);
    looks sampled_materials(*on.context, *on.queue, soup_with_materials(3000), 4);
    check(sampled_materials);
}
TEST_CASE("a G-buffer of mipmapped textures and of full materials is equal for all loops and threads") {
    backend on = open_backend(device::device_kind::cpu, 2);
    for (const mapped_mesh& mesh : {soup_with_textures(3000), soup_with_materials(3000)}) {
        looks l(*on.context, *on.queue, mesh);
        const std::vector<std::byte> expected = l.run(tone_map_name::neutral);
        for (const char* name : {"baseline", "avx2", "avx512"}) {
            const cpu::entries* const use = cpu::find_entries(name);
            if (use == nullptr) continue;
            CAPTURE(name, mesh.layout.counts.material_count);
            REQUIRE(l.run(tone_map_name::neutral, *use, 1) == expected);
            REQUIRE(l.run(tone_map_name::neutral, *use, 3) == expected);
        }
    }
}
TEST_CASE("G-buffer, light and post are equal for every instruction set and number of threads") {
    backend on = open_backend(device::device_kind::cpu, 2);
    looks l(*on.context, *on.queue), sampled(*on.context, *on.queue, 4);
    for (looks* each : {&l, &sampled}) {
        const std::vector<std::byte> expected = each->run(tone_map_name::neutral);
        for (const char* name : {"baseline", "avx2", "avx512"}) {
            const cpu::entries* const use = cpu::find_entries(name);
            if (use == nullptr) continue;
            CAPTURE(name);
            REQUIRE(each->run(tone_map_name::neutral, *use, 1) == expected);
            REQUIRE(each->run(tone_map_name::aces, *use, 3) == each->run(tone_map_name::aces));
        }
    }
    const std::vector<std::byte> lit = l.run(tone_map_name::linear);
    for (const u32 mode : {1U, 2U, 3U, 4U}) {  // 4: the wireframe
        CAPTURE(mode);
        l.scene().shading = mode % 4;
        l.scene().wireframe = mode / 4;
        const std::vector<std::byte> shown = l.run(tone_map_name::linear);
        CHECK(shown != lit);
        CHECK(l.run(tone_map_name::linear, *cpu::find_entries("baseline"), 3) == shown);
    }
    l.scene().shading = l.scene().wireframe = 0;
    scene_state moved = l.scene();
    moved.camera.eye[0] = 0.5F;
    const std::vector<std::byte> before = l.run(tone_map_name::aces);
    l.scene() = moved;
    CHECK(l.run(tone_map_name::aces) != before);
}
#endif
