// Mip maps on the CPU: the chain against the mean in linear light, the level that a pixel reads against the
// size of its footprint, and the same pictures from every instruction set and number of threads.
#include <array>
#include <cmath>

#include "device/cpu/pool.hpp"
#include "kernels/assets.hpp"
#include "kernels/body/map_sample.hpp"
#include "kernels/cpu/entries.hpp"
#include "tests/kernels/backend.hpp"
#include "tests/kernels/mapped_mesh.hpp"
#include "tests/kernels/reference.hpp"

using namespace carousel;
using namespace carousel::kernels;
using namespace carousel::kernels::testing;

namespace {

f64 to_linear(u32 code) { return body::srgb_to_linear(code / 255.0); }

struct decode_table {
    const body::srgb_tables* tables;
    [[nodiscard]] f32 decode(u32 i) const { return tables->decode[i]; }
};

}  // namespace

TEST_CASE("A texture's chain halves its sides to one texel and keeps a uniform colour") {
    for (const auto& [w, h] : {std::array{1U, 1U}, {3U, 5U}, {7U, 1U}, {17U, 9U}, {64U, 64U}, {5U, 1024U}}) {
        CAPTURE(w, h);
        const u32 levels = mip_levels(w, h);
        CHECK(level_side(w, levels - 1) == 1);
        CHECK(level_side(h, levels - 1) == 1);
        CHECK((levels == 1 || level_side(w, levels - 2) * level_side(h, levels - 2) > 1));
        std::vector<u32> texels(texture_texels(w, h, levels), 0U);
        std::fill_n(texels.begin(), w * h, 0x80c81e05U);
        build_mip_chain(texels.data(), w, h, levels);
        for (const u32 t : texels) REQUIRE(t == 0x80c81e05U);
    }
}

TEST_CASE("A texel of the next level is the mean in linear light, weighted by area at odd sides") {
    std::vector<u32> pair{0xff000000U, 0xffffffffU, 0};
    build_mip_chain(pair.data(), 2, 1, 2);
    CHECK((pair[2] & 255U) == 188);  // half the light; the mean of the codes would be 128
    std::mt19937 random(5);
    for (const auto& [w, h] : {std::array{5U, 3U}, {8U, 4U}, {7U, 7U}, {3U, 1U}}) {
        std::vector<u32> texels(texture_texels(w, h, 2));
        for (u32 i = 0; i < w * h; ++i) texels[i] = static_cast<u32>(random());
        build_mip_chain(texels.data(), w, h, 2);
        const u32 columns = level_side(w, 1), rows = level_side(h, 1);
        for (u32 y = 0; y < rows; ++y) {
            for (u32 x = 0; x < columns; ++x) {
                // each texel of the level cut into 60 x 60 samples of the one before
                f64 sum = 0;
                for (u32 j = 0; j < 60; ++j)
                    for (u32 i = 0; i < 60; ++i)
                        sum += to_linear(texels[u32((y + (j + 0.5) / 60) * h / rows) * w +
                                                u32((x + (i + 0.5) / 60) * w / columns)] &
                                         255U);
                const u32 code = texels[w * h + y * columns + x] & 255U;
                CAPTURE(w, h, x, y, code);
                CHECK(to_linear(code) == Approx(sum / 3600).margin(0.012));
            }
        }
    }
}

TEST_CASE(
    "A colour between texels and levels is their mean in linear light, and a number that of the codes") {
    constexpr body::srgb_tables srgb = body::make_srgb_tables();
    const decode_table tables{&srgb};
    body::map_texels half{};
    half.fine = {0x00000000U, 0xffffffffU, 0x00000000U, 0xffffffffU, 128, 0};
    CHECK(body::light_in(tables, half).x == 0.5F);
    CHECK(body::number_in(half, 0) == 510);
    std::mt19937 random(7);
    for (int i = 0; i < 2000; ++i) {
        body::map_texels t{};
        for (body::texel_square* s : {&t.fine, &t.coarse}) {
            for (u32* texel : {&s->t00, &s->t10, &s->t01, &s->t11}) *texel = static_cast<u32>(random());
            s->fraction_x = random() % 256, s->fraction_y = random() % 256;
        }
        t.coarse_weight = random() % 256;
        const auto mean = [&](u32 shift, const auto& value) {
            const auto mix = [](f64 a, f64 b, u32 weight) { return a + (b - a) * weight / 256.0; };
            const auto of_level = [&](const body::texel_square& s) {
                const auto at = [&](u32 texel) { return value(texel >> shift & 255U); };
                return mix(mix(at(s.t00), at(s.t10), s.fraction_x), mix(at(s.t01), at(s.t11), s.fraction_x),
                           s.fraction_y);
            };
            return mix(of_level(t.fine), of_level(t.coarse), t.coarse_weight);
        };
        const body::vec3 light = body::light_in(tables, t);
        REQUIRE(light.x == Approx(mean(0, to_linear)).margin(1e-6));
        REQUIRE(light.y == Approx(mean(8, to_linear)).margin(1e-6));
        REQUIRE(light.z == Approx(mean(16, to_linear)).margin(1e-6));
        for (u32 k = 0; k < 4; ++k)
            REQUIRE(body::number_in(t, k) ==
                    Approx(4 * mean(8 * k, [](u32 code) { return f64(code); })).margin(1.01));
        // A texture of one colour has exactly this colour.
        for (body::texel_square* s : {&t.fine, &t.coarse}) s->t00 = s->t10 = s->t01 = s->t11 = t.fine.t00;
        REQUIRE(body::light_in(tables, t).x == tables.decode(4 * (t.fine.t00 & 255U)));
    }
}

TEST_CASE("A factor of one leaves every colour as it is, others multiply the light") {
    std::vector<u32> all(256);
    for (u32 c = 0; c < 256; ++c) all[c] = c * 0x01010101U;
    auto same = all;
    tint_texels(same.data(), 256, {1, 1, 1});
    CHECK(same == all);
    tint_texels(all.data(), 256, {0.5F, 0.0F, 7.0F});
    CHECK((all[255] & 255U) == 188);
    CHECK((all[255] >> 8 & 255U) == 0);
    CHECK(all[200] >> 16 == 0xc8c8U);
}

TEST_CASE("A pixel reads the level at which it covers one texel") {
    // Level l is grey of code 16 l + 8, so that the picture tells its level. A square of side 2 at distance
    // 2, covered by the texture once.
    backend on = open_backend(device::device_kind::cpu, 1);
    for (const u32 side : {64U, 256U, 1000U, 4096U}) {
        mapped_mesh m = square_with_levels(side);
        chain c(*on.context, *on.queue, {mesh_shape::bumpy_sphere, 2, 200, 200, 1}, m.layout);
        c.set_mesh(m.block);
        c.scene.camera.eye[2] = 2.0F;
        c.scene.ambient = 1.0F;
        c.scene.spin = 0.0F;
        const u32 code = c.render(0)[100 * 200 + 100] & 255U;
        const f64 texels_per_pixel = side / 2.0 * (2.0 * 2.0 * std::tan(0.4) / 200.0);
        const f64 level = std::max(0.0, std::log2(texels_per_pixel));
        CAPTURE(side, code, level);
        CHECK((code - 8.0) / 16.0 == Approx(level).margin(0.12));
    }
}

TEST_CASE("Mapped textures: every instruction set and number of threads gives the same picture") {
    const u32 width = 333, height = 201;
    const mapped_mesh m = soup_with_textures(3000);
    backend one = open_backend(device::device_kind::cpu, 1),
            three = open_backend(device::device_kind::cpu, 3);
    const chain_options options{mesh_shape::bumpy_sphere, 3000, width, height, 1};
    chain a(*one.context, *one.queue, options, m.layout), b(*three.context, *three.queue, options, m.layout);
    a.set_mesh(m.block);
    b.set_mesh(m.block);
    const std::vector<u32> expected = a.render(3);
    CHECK(differences(b.render(3), expected) == 0);
    std::vector<u32> distinct = expected;
    std::sort(distinct.begin(), distinct.end());
    // there is something to compare
    CHECK(std::unique(distinct.begin(), distinct.end()) - distinct.begin() > 1000);
    const auto memory = one.context->allocate(m.block.size());
    std::memcpy(memory->data(), m.block.data(), m.block.size());
    scratch_memory scratch(cpu::fragment_scratch_bytes(width, height));
    for (const char* name : {"baseline", "avx2", "avx512"}) {
        const cpu::entries* use = cpu::find_entries(name);
        if (use == nullptr) continue;
        CAPTURE(name);
        device::cpu::pool pool(2);
        std::vector<u32> picture(u64{width} * height);
        cpu::run_fragment_stage(
            pool,
            {m.layout, memory->data(), a.buffers(), a.scene, width, height,
             reinterpret_cast<u8*>(picture.data()), scratch.data(), scratch.size(), raster_path::automatic},
            *use);
        CHECK(differences(picture, expected) == 0);
    }
}

TEST_CASE("A texture record or index outside the textures gives a picture and no fault") {
    backend on = open_backend(device::device_kind::cpu, 1);
    mapped_mesh m = soup_with_textures(500);
    auto* const numbers = reinterpret_cast<u32*>(m.block.data() + m.layout.texture_numbers);
    for (u32 i = 0; i < m.layout.counts.vertex_count; i += 2) numbers[i] = ~0U;
    auto* const records = reinterpret_cast<texture_record*>(m.block.data() + m.layout.texture_records);
    records[1].width = records[1].height = records[1].levels = ~0U;
    for (u32& begin : records[2].begin) begin = ~0U;
    records[3].width = records[3].levels = 0;
    chain c(*on.context, *on.queue, {mesh_shape::bumpy_sphere, 500, 160, 120, 1}, m.layout);
    c.set_mesh(m.block);
    CHECK(c.render(0).size() == 160 * 120);
}
