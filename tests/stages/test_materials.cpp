// Materials of mesh files in a G-buffer: each property has the value that the file states.
#include <algorithm>
#include <cmath>

#include "kernels/body/emission.hpp"
#include "kernels/body/surface.hpp"
#include "picture/png.hpp"
#include "stages/assets/radiance_picture.hpp"
#include "stages/light/light.hpp"
#include "tests/stages/chains.hpp"
#include "tests/stages/gltf_builder.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using nlohmann::json;
using test::contains;
using test::gltf_builder;

namespace {

constexpr std::size_t width = 64, height = 48;

/// The bytes of a PNG of `columns` x 1 pixels with these colours (red highest).
std::string png(const std::vector<u32>& rgba) {
    std::vector<std::byte> bytes;
    for (const u32 c : rgba)
        for (const u32 shift : {24U, 16U, 8U, 0U}) bytes.push_back(static_cast<std::byte>(c >> shift));
    const auto file = encode_png(bytes, static_cast<u32>(rgba.size()), 1);
    return {reinterpret_cast<const char*>(file.data()), file.size()};
}

/// Adds a texture of these colours in a row, which is not interpolated; returns its number.
std::size_t add_texture(gltf_builder& b, const std::vector<u32>& rgba) {
    json& images = b.root["images"];
    const std::size_t number = images.size();
    const std::size_t view = b.view(png(rgba));
    b.root["images"].push_back({{"bufferView", view}, {"mimeType", "image/png"}});
    b.root["samplers"] = {{{"magFilter", 9728}, {"wrapS", 33071}, {"wrapT", 33071}}};
    b.root["textures"].push_back({{"source", number}, {"sampler", 0}});
    return number;
}

gltf_builder square_with(const json& material) {
    gltf_builder b;
    b.square();
    b.root["materials"] = json::array({material});
    b.primitive()["material"] = 0;
    return b;
}

/// A pixel of a G-buffer.
struct pixel {
    u32 albedo, normal_word, material;
    f32 depth;
    kernels::body::vec3 normal, emission;
    [[nodiscard]] u32 code(u32 channel) const { return albedo >> (8 * channel) & 255U; }
    [[nodiscard]] u32 number(u32 channel) const { return material >> (8 * channel) & 255U; }
};

class gbuffer {
public:
    explicit gbuffer(const gltf_builder& b, u64 frame_number = 0) {
        chain_ = std::make_unique<testing::chain>(testing::chain_options{.width = width, .height = height});
        const std::string file = b.write(folder_);
        chain_->add("geometry", std::make_unique<stages::geometry>(),
                    json{{"mesh", file}, {"full_materials", true}}.dump());
        chain_->add("vertex", std::make_unique<stages::vertex>(), "{}", {"geometry"});
        chain_->add("fragment", std::make_unique<stages::fragment>(), R"({"output": "surface"})", {"vertex"});
        chain_->prepare();
        stages::scene_parameters from_the_front;
        chain_->run(frame_number, from_the_front);
        albedo_ = chain_->read<u8>("fragment", "albedo");
        material_ = chain_->read<u8>("fragment", "material");
        normal_ = chain_->read<u32>("fragment", "normal");
        emission_ = chain_->read<u32>("fragment", "emission");
        depth_ = chain_->read<f32>("fragment", "depth");
    }
    [[nodiscard]] pixel at(std::size_t x, std::size_t y) const {
        const std::size_t i = y * width + x;
        const auto word = [i](const std::vector<u8>& plane) {
            u32 out = 0;
            std::memcpy(&out, &plane[4 * i], 4);
            return out;
        };
        return {word(albedo_),
                normal_[i],
                word(material_),
                depth_[i],
                kernels::body::unpack_normal(normal_[i]),
                kernels::body::unpack_emission(emission_[i])};
    }
    /// In the left and right half of the square.
    [[nodiscard]] pixel left() const { return at(width / 2 - 6, height / 2); }
    [[nodiscard]] pixel right() const { return at(width / 2 + 6, height / 2); }

private:
    scratch_folder folder_;
    std::unique_ptr<testing::chain> chain_;
    std::vector<u8> albedo_, material_;
    std::vector<u32> normal_, emission_;
    std::vector<f32> depth_;
};

bool near(f32 a, f32 b, f32 by = 0.02F) { return std::abs(a - b) < by; }

}  // namespace

TEST_CASE("a G-buffer has the factors and the texture channels of a metallic-roughness material") {
    gltf_builder b = square_with({});
    b.root["materials"][0] = {
        {"pbrMetallicRoughness",
         {{"baseColorFactor", {1.0, 0.0, 0.5, 1.0}},
          {"metallicFactor", 0.5},
          {"roughnessFactor", 0.8},
          {"metallicRoughnessTexture", {{"index", add_texture(b, {0x00ff80ff, 0x0080ffff})}}}}},
        {"occlusionTexture", {{"index", add_texture(b, {0x00ffffff, 0xffffffff})}, {"strength", 0.5}}},
        {"extensions", {{"KHR_materials_clearcoat", {{"clearcoatFactor", 0.25}}}}}};
    const gbuffer g(b);
    CHECK(g.left().code(0) == 255);
    CHECK(g.left().code(1) == 0);
    CHECK(g.left().code(2) == 188);
    CHECK(g.left().number(0) == 204);   // 0.8 * 255
    CHECK(g.left().number(1) == 64);    // 0.5 * 128
    CHECK(g.right().number(0) == 102);  // 0.8 * 128
    CHECK(g.right().number(1) == 128);
    CHECK(g.left().number(2) == 64);
    CHECK(g.left().number(3) == 0);
    CHECK(g.left().code(3) == 128);  // half of the occlusion of 0
    CHECK(g.right().code(3) == 255);
    CHECK(g.at(0, 0).albedo == 0);
    CHECK(g.at(0, 0).depth == 0.0F);
}

TEST_CASE("a normal map turns normals along given and along computed tangents, on both sides") {
    for (const bool given : {false, true}) {
        for (const bool back : {false, true}) {
            CAPTURE(given, back);
            gltf_builder b = square_with({{"doubleSided", true}});
            b.root["materials"][0]["normalTexture"] = {
                {"index", add_texture(b, {0xff8080ff, 0x80ff80ff})}};  // to the right; up
            if (given)
                b.primitive()["attributes"]["TANGENT"] =
                    b.accessor<f32>({1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1}, "VEC4", 5126, 4);
            if (back) b.root["nodes"][0]["rotation"] = {0, 1, 0, 0};  // half a turn about y
            const gbuffer g(b);
            // Seen from the back, all of the frame is reversed, and the halves are exchanged.
            const pixel first = back ? g.right() : g.left(), second = back ? g.left() : g.right();
            CHECK(near(first.normal.x, 1.0F));
            CHECK(near(first.normal.y, 0.0F));
            CHECK(near(second.normal.x, 0.0F));
            CHECK(near(second.normal.y, back ? -1.0F : 1.0F));
        }
    }
}

TEST_CASE("emission has its strength and its texture, and an unlit material is emission alone") {
    gltf_builder b = square_with({});
    b.root["materials"][0] = {
        {"emissiveFactor", {1.0, 0.5, 0.0}},
        {"emissiveTexture", {{"index", add_texture(b, {0xffffffff, 0x000000ff})}}},
        {"extensions", {{"KHR_materials_emissive_strength", {{"emissiveStrength", 20.0}}}}}};
    const gbuffer bright(b);
    CHECK(near(bright.left().emission.x, 20.0F, 0.1F));
    CHECK(near(bright.left().emission.y, 10.0F, 0.1F));
    CHECK(bright.left().emission.z == 0.0F);
    CHECK(bright.right().emission.x == 0.0F);
    const gbuffer unlit(square_with({{"pbrMetallicRoughness", {{"baseColorFactor", {0.5, 1.0, 0.0, 1.0}}}},
                                     {"extensions", {{"KHR_materials_unlit", json::object()}}}}));
    CHECK(unlit.left().normal_word == kernels::unlit_normal);
    CHECK(near(unlit.left().emission.x, 0.5F, 0.01F));
    CHECK(unlit.left().emission.z == 0.0F);
}

TEST_CASE("colours of textures are interpolated in linear light, and numbers as they are stored") {
    gltf_builder b = square_with({});
    const std::size_t map = add_texture(b, {0x000000ff, 0xffffffff});
    b.root["samplers"][0].erase("magFilter");
    b.root["materials"][0] = {
        {"pbrMetallicRoughness",
         {{"baseColorTexture", {{"index", map}}}, {"metallicRoughnessTexture", {{"index", map}}}}},
        {"emissiveFactor", {1.0, 1.0, 1.0}},
        {"emissiveTexture", {{"index", map}}}};
    // The middle of the square lies between the two texels.
    const gbuffer g(b);
    const pixel before = g.at(width / 2 - 1, height / 2), after = g.at(width / 2, height / 2);
    CHECK(near((before.emission.x + after.emission.x) / 2, 0.5F));
    CHECK(std::abs(static_cast<int>(before.code(0) + after.code(0)) / 2 - 188) < 4);
    CHECK(std::abs(static_cast<int>(before.number(0) + after.number(0)) / 2 - 128) < 4);
}

TEST_CASE("vertex colours multiply the base colour in linear light") {
    gltf_builder b = square_with({{"pbrMetallicRoughness", {{"baseColorFactor", {0.5, 1.0, 1.0, 1.0}}}}});
    b.primitive()["attributes"]["COLOR_0"] =
        b.accessor<f32>({1, 0.5F, 0, 1, 0.5F, 0, 1, 0.5F, 0, 1, 0.5F, 0}, "VEC3", 5126, 3);
    const pixel p = gbuffer(b).left();
    CHECK(p.code(0) == 188);
    CHECK(p.code(1) == 188);
    CHECK(p.code(2) == 0);
}

TEST_CASE("a masked material is drawn where its opacity reaches the cutoff, also if nothing else is drawn") {
    gltf_builder b = square_with({});
    b.root["materials"][0] = {
        {"alphaMode", "MASK"},
        {"alphaCutoff", 0.6},
        {"pbrMetallicRoughness",
         {{"baseColorFactor", {1.0, 1.0, 1.0, 0.9}},
          {"baseColorTexture", {{"index", add_texture(b, {0xff0000b0, 0x00ff00a0})}}}}}};
    const gbuffer g(b);  // 0.9 * 176 / 255 = 0.62 and 0.9 * 160 / 255 = 0.56
    CHECK(g.left().depth > 0.0F);
    CHECK(g.left().code(0) == 255);
    CHECK(g.right().depth == 0.0F);
}

TEST_CASE("maps have their own transforms and sets of texture coordinates") {
    gltf_builder b = square_with({});
    const std::size_t map = add_texture(b, {0x00ff00ff, 0x000000ff});
    // The second set is mirrored; the transform of the other texture exchanges the halves as well.
    b.primitive()["attributes"]["TEXCOORD_1"] = b.accessor<f32>({1, 1, 0, 1, 0, 0, 1, 0}, "VEC2", 5126, 2);
    const json transform = {{"KHR_texture_transform", {{"offset", {1.0, 0.0}}, {"scale", {-1.0, 1.0}}}}};
    b.root["materials"][0] = {
        {"pbrMetallicRoughness",
         {{"metallicFactor", 0.0}, {"metallicRoughnessTexture", {{"index", map}, {"texCoord", 1}}}}},
        {"emissiveFactor", {1.0, 1.0, 1.0}},
        {"emissiveTexture", {{"index", map}, {"extensions", transform}}}};
    const gbuffer g(b);
    CHECK(g.left().number(0) == 0);
    CHECK(g.right().number(0) == 255);
    CHECK(g.left().emission.y == 0.0F);
    CHECK(near(g.right().emission.y, 1.0F));
}

TEST_CASE("four samples per pixel are a setting of vertex, and need a G-buffer") {
    gltf_builder b = square_with({{"extensions", {{"KHR_materials_unlit", json::object()}}}});
    b.root["nodes"][0]["rotation"] = {0.0, 0.0, 0.2588, 0.9659};  // 30 degrees, so that edges are oblique
    scratch_folder folder;
    const std::string file = b.write(folder);
    const auto stages_of = [&](const char* of_vertex, const char* of_fragment, bool materials) {
        auto made =
            std::make_unique<testing::chain>(testing::chain_options{.width = width, .height = height});
        made->add("geometry", std::make_unique<stages::geometry>(),
                  json{{"mesh", file}, {"full_materials", materials}}.dump());
        made->add("vertex", std::make_unique<stages::vertex>(), of_vertex, {"geometry"});
        made->add("fragment", std::make_unique<stages::fragment>(), of_fragment, {"vertex"});
        return made;
    };
    const auto drawn = [&](const char* of_vertex) {
        auto made = stages_of(of_vertex, R"({"output": "surface"})", true);
        made->prepare();
        made->run(0, stages::scene_parameters{});
        return made;
    };
    CHECK_THROWS_WITH(stages_of(R"({"samples": 3})", "{}", false), contains("expected 1 or 4"));
    CHECK_THROWS_WITH(stages_of(R"({"samples": 4})", "{}", false),
                      contains("samples = 4, which need a G-buffer"));
    const auto one = drawn(R"({"samples": 1})"), four = drawn(R"({"samples": 4})");
    const std::vector<u8> coverage = four->read<u8>("fragment", "coverage");
    const std::vector<u32> jagged = one->read<u32>("fragment", "emission"),
                           first = four->read<u32>("fragment", "emission"),
                           further = four->read<u32>("fragment", "samples");
    u32 edges = 0, wrong = 0;
    for (std::size_t i = 0; i < coverage.size(); ++i) {
        if (coverage[i] == 0) {
            wrong += first[i] != jagged[i] ? 1 : 0;
            continue;
        }
        // The square and the sky, in either order.
        ++edges;
        const u32 second = further[i * kernels::further_surfaces * kernels::layer_words + 4];
        wrong += (first[i] == 0) == (second == 0) ? 1 : 0;
    }
    CHECK(edges > 60);
    CHECK(wrong == 0);
    // light reads these planes.
    stages_of(R"({"samples": 4})", R"({"output": "surface"})", true)
        ->add("light", std::make_unique<stages::light>(), "{}", {"fragment"});
}

TEST_CASE("a picture of full materials is refused, and without them a file has base colours alone") {
    scratch_folder folder;
    const std::string file = square_with({{"emissiveFactor", {1.0, 1.0, 1.0}}}).write(folder);
    CHECK_THROWS_WITH(test::render_chain({}, json{{"mesh", file}, {"full_materials", true}}.dump()),
                      contains("full materials, which only a G-buffer shows"));
    auto plain = test::render_chain({}, json{{"mesh", file}}.dump());
    const auto full = std::make_unique<testing::chain>(testing::chain_options{});
    const description& d = full->add("geometry", std::make_unique<stages::geometry>(),
                                     json{{"mesh", file}, {"full_materials", true}}.dump());
    CHECK(d.makes.front().bytes > plain->read_asset("mesh").size());
}

namespace {

/// A picture of linear light: geometry, vertex, fragment, light.
class lit_picture {
public:
    lit_picture(const gltf_builder& b, const json& of_light, const stages::picture_parameters& look = {}) {
        chain_ = std::make_unique<testing::chain>(testing::chain_options{.width = width, .height = height});
        const std::string file = b.write(folder_);
        chain_->add("geometry", std::make_unique<stages::geometry>(),
                    json{{"mesh", file}, {"full_materials", true}}.dump());
        chain_->add("vertex", std::make_unique<stages::vertex>(), "{}", {"geometry"});
        chain_->add("fragment", std::make_unique<stages::fragment>(), R"({"output": "surface"})", {"vertex"});
        chain_->add("light", std::make_unique<stages::light>(), of_light.dump(), {"fragment"});
        chain_->prepare();
        chain_->run(0, look);
        radiance_ = chain_->read<f32>("light", "radiance");
    }
    [[nodiscard]] kernels::body::vec3 at(std::size_t x, std::size_t y) const {
        const f32* const p = &radiance_[4 * (y * width + x)];
        return {p[0], p[1], p[2]};
    }
    [[nodiscard]] kernels::body::vec3 middle() const { return at(width / 2, height / 2); }

private:
    scratch_folder folder_;
    std::unique_ptr<testing::chain> chain_;
    std::vector<f32> radiance_;
};

stages::picture_parameters without_sky() {
    stages::picture_parameters look;
    look.scene.ambient = 0.0F;
    look.sun = 0.0F;
    return look;
}

/// Squares of unlit colours at distances z, each with its opacity.
gltf_builder panes(const std::vector<std::array<f64, 4>>& colors, const std::vector<f32>& z) {
    gltf_builder b;
    b.square();
    const json primitive = b.primitive();
    b.root["meshes"][0]["primitives"] = json::array();
    for (std::size_t i = 0; i < z.size(); ++i) {
        json p = primitive;
        p["attributes"]["POSITION"] =
            b.accessor<f32>({-1, -1, z[i], 1, -1, z[i], 1, 1, z[i], -1, 1, z[i]}, "VEC3", 5126, 3);
        p["material"] = i;
        b.root["meshes"][0]["primitives"].push_back(p);
        const auto& c = colors[i];
        b.root["materials"].push_back(
            {{"alphaMode", c[3] < 1 ? "BLEND" : "OPAQUE"},
             {"pbrMetallicRoughness", {{"baseColorFactor", {c[0], c[1], c[2], c[3]}}}},
             {"extensions", {{"KHR_materials_unlit", json::object()}}}});
    }
    return b;
}

}  // namespace

TEST_CASE("transparent surfaces cover each other by distance, in any order of the file") {
    const std::vector<std::array<f64, 4>> colors = {
        {1, 1, 1, 1}, {1, 0, 0, 0.5}, {0, 1, 0, 0.25}, {0, 0, 1, 0.5}};
    const lit_picture forward(panes(colors, {-0.3F, -0.1F, 0.1F, 0.3F}), json::object());
    // From the nearest one on: blue, green, red, white.
    CHECK(near(forward.middle().x, 0.5F * 0.75F * 1.0F, 0.01F));
    CHECK(near(forward.middle().y, 0.5F * (0.25F + 0.75F * 0.5F), 0.01F));
    CHECK(near(forward.middle().z, 0.5F + 0.5F * 0.75F * 0.5F, 0.01F));
    const lit_picture backward(
        panes({colors[3], colors[2], colors[1], colors[0]}, {0.3F, 0.1F, -0.1F, -0.3F}), json::object());
    CHECK(backward.middle().x == forward.middle().x);
    CHECK(backward.middle().y == forward.middle().y);
    // An opaque surface hides a farther transparent one.
    const lit_picture hidden(panes({colors[0], colors[1]}, {0.1F, -0.1F}), json::object());
    CHECK(near(hidden.middle().y, 1.0F, 0.01F));
}

TEST_CASE("of more transparent surfaces than the layers, the nearest ones are shown") {
    const std::vector<std::array<f64, 4>> colors(6, {0, 0, 0, 0.5});
    auto six = colors;
    six[0] = {1, 0, 0, 0.5};  // the farthest one, which is not kept
    const std::vector<f32> z = {-0.3F, -0.2F, -0.1F, 0.0F, 0.1F, 0.2F};
    const lit_picture all_black(panes(colors, z), json::object()), red_last(panes(six, z), json::object());
    CHECK(all_black.middle().x == red_last.middle().x);
    auto front = colors;
    front[5] = {1, 0, 0, 0.5};
    CHECK(lit_picture(panes(front, z), json::object()).middle().x > all_black.middle().x + 0.4F);
}

TEST_CASE("a material that transmits light is transparent") {
    gltf_builder b =
        square_with({{"extensions", {{"KHR_materials_transmission", {{"transmissionFactor", 1.0}}}}}});
    const gbuffer g(b);
    CHECK(g.left().depth == 0.0F);
}

TEST_CASE("lights of a file shine where the file has them, with its distances") {
    const auto lit_by = [](const json& light, const json& node) {
        gltf_builder b = square_with({{"pbrMetallicRoughness", {{"metallicFactor", 0.0}}}});
        b.root["extensions"] = {{"KHR_lights_punctual", {{"lights", json::array({light})}}}};
        json place = node;
        place["extensions"] = {{"KHR_lights_punctual", {{"light", 0}}}};
        b.root["nodes"].push_back(place);
        b.root["scenes"][0]["nodes"] = {0, 1};
        return lit_picture(b, {{"occlusion", 0.0}}, without_sky());
    };
    // White and rough: the diffuse part of an irradiance of pi is about 1 - 0.04.
    const f32 pi = 3.14159265F;
    const lit_picture sun = lit_by({{"type", "directional"}, {"intensity", pi}}, json::object());
    CHECK(near(sun.middle().x, 1.0F, 0.1F));
    const lit_picture away =
        lit_by({{"type", "directional"}, {"intensity", pi}}, {{"rotation", {0, 1, 0, 0}}});
    CHECK(away.middle().x == 0.0F);
    // A point light at the distance 2 with 4 pi candela has the irradiance pi there.
    const json near_light = {{"translation", {0, 0, 2}}};
    const lit_picture point = lit_by({{"type", "point"}, {"intensity", 4 * pi}}, near_light);
    CHECK(near(point.middle().x, sun.middle().x, 0.02F));
    CHECK(point.at(width / 2 + 12, height / 2).x < point.middle().x);
    CHECK(lit_by({{"type", "point"}, {"intensity", 4 * pi}, {"range", 1.5}}, near_light).middle().x == 0.0F);
    const json cone = {{"innerConeAngle", 0.1}, {"outerConeAngle", 0.2}};
    const lit_picture spot =
        lit_by({{"type", "spot"}, {"intensity", 4 * pi}, {"color", {1, 0, 0}}, {"spot", cone}}, near_light);
    CHECK(near(spot.middle().x, point.middle().x, 0.01F));
    CHECK(spot.middle().y == 0.0F);
    CHECK(spot.at(width / 2 + 12, height / 2).x == 0.0F);
}

TEST_CASE("a Radiance picture is the background and the light of its directions") {
    scratch_folder folder;
    // 4 x 2 pixels, not compressed. Columns: the quarters from +z over -x and -z to +x.
    const auto write = [&](const char* name, u8 exponent_at_minus_z) {
        std::string file = "#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 2 +X 8\n";
        for (int y = 0; y < 2; ++y) {
            for (int x = 0; x < 8; ++x) {
                const bool middle = x == 3 || x == 4;
                for (const int byte : {128, 128, 0, middle ? int{exponent_at_minus_z} : 129})
                    file += static_cast<char>(byte);
            }
        }
        return folder.write(name, file);
    };
    try {
        (void)stages::load_radiance(write("even.hdr", 129), "sky");
    } catch (const settings_error& e) {
        REQUIRE_THAT(e.what(), contains("built without stb_image"));
        return;
    }
    const gltf_builder b = square_with({{"pbrMetallicRoughness", {{"metallicFactor", 0.0}}}});
    stages::picture_parameters look;
    look.scene.ambient = 1.0F;
    look.sun = 0.0F;
    const auto lit_of = [&](const gltf_builder& model, const std::string& sky) {
        return lit_picture(model, {{"sky", sky}, {"occlusion", 0.0}}, look);
    };
    const auto lit = [&](const std::string& sky) { return lit_of(b, sky); };
    // Half of it is plastic, the other half metal. It is turned by 75 degrees.
    gltf_builder halves = square_with(json::object());
    const json primitive = halves.primitive();
    for (const int i : {0, 1}) {
        json& p = halves.root["meshes"][0]["primitives"][i] = primitive;
        const f32 left = static_cast<f32>(i) - 1, right = static_cast<f32>(i);
        p["attributes"]["POSITION"] =
            halves.accessor<f32>({left, -1, 0, right, -1, 0, right, 1, 0, left, 1, 0}, "VEC3", 5126, 3);
        p["material"] = i;
        halves.root["materials"][i] = {
            {"pbrMetallicRoughness",
             {{"baseColorFactor", {1.0, 0.3, 1.0, 1.0}}, {"metallicFactor", i}, {"roughnessFactor", 0.7}}}};
    }
    halves.root["nodes"][0]["rotation"] = {0.0, 0.6088, 0.0, 0.7934};
    const lit_picture even = lit_of(halves, write("even.hdr", 129)), bright = lit(write("bright.hdr", 131));
    CHECK(near(even.at(0, height / 2).x, 1.0F, 0.02F));
    CHECK(even.at(0, height / 2).z == 0.0F);
    // A surface that absorbs no red reflects all red of an even sky, also at a grazing angle and as rough
    // metal.
    for (const std::size_t x : {width / 2 - 2, width / 2 + 1}) {
        CHECK(near(even.at(x, height / 2).x, 1.0F, 0.02F));
        CHECK(even.at(x, height / 2).y < 0.9F);
    }
    CHECK(bright.at(0, height / 2).x > 3.5F);  // the camera looks along -z
    CHECK(bright.middle().x < 1.6F);           // the surface faces +z
    CHECK_THROWS_WITH(lit("absent.hdr"), contains("absent.hdr") && contains("is not a file"));
    CHECK_THROWS_WITH(lit(folder.write("x.hdr", "P6 1 1 255 ...")), contains("not a Radiance RGBE picture"));
    CHECK_THROWS_WITH(lit(folder.write("y.hdr", "#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 2 +X 99999\n")),
                      contains("it is damaged"));
}

TEST_CASE("the parameters begin with a camera of the file, in the space of the mesh") {
    scratch_folder folder;
    gltf_builder b = square_with(json::object());
    b.root["cameras"] = {
        {{"type", "perspective"}, {"name", "top"}, {"perspective", {{"yfov", 0.7}, {"znear", 0.1}}}}};
    // Above the square, and turned down by a quarter: it looks along -y, with -z up.
    const f64 half = std::sqrt(0.5);
    b.root["nodes"].push_back(
        {{"camera", 0}, {"translation", {0, 2, 0.5}}, {"rotation", {-half, 0, 0, half}}});
    b.root["scenes"][0]["nodes"] = {0, 1};
    const std::string file = b.write(folder);
    const auto initial = [&](const char* camera, const char* field) {
        testing::chain c({.width = width, .height = height});
        (void)c.add("geometry", std::make_unique<stages::geometry>(),
                    json{{"mesh", file}, {"camera", camera}}.dump());
        (void)c.add("vertex", std::make_unique<stages::vertex>(), "{}", {"geometry"});
        const description& d = c.add("fragment", std::make_unique<stages::fragment>(), "{}", {"vertex"});
        for (const parameter& p : d.parameters.fields)
            if (p.name == field) return p.initial;
        return std::vector<f64>{};
    };
    const f64 radius = std::sqrt(2.0);  // of the square
    for (const char* camera : {"0", "top"}) {
        CHECK(std::abs(initial(camera, "eye")[1] - 2 / radius) < 1e-5);
        CHECK(std::abs(initial(camera, "eye")[2] - 0.5 / radius) < 1e-5);
        CHECK(std::abs(initial(camera, "target")[1]) < 1e-5);  // the height of the middle
        CHECK(std::abs(initial(camera, "up")[2] + 1) < 1e-5);
        CHECK(std::abs(initial(camera, "fov_y")[0] - 0.7) < 1e-5);
    }
    CHECK_THROWS_WITH(initial("1", "eye"), contains("no perspective camera \"1\"; it has 0 (\"top\")"));
}
