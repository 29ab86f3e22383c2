// What the glTF reader takes from a file into a scene asset, beyond triangles and base colours.
#include <cmath>

#include "stages/assets/asset_features.hpp"
#include "stages/assets/scene_files.hpp"
#include "tests/stages/gltf_builder.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::stages;
using nlohmann::json;
using test::contains;
using test::gltf_builder;

namespace {

scene_asset read(const gltf_builder& b) {
    scratch_folder folder;
    return read_gltf(b.write(folder));
}

gltf_builder square() {
    gltf_builder b;
    b.square();
    return b;
}

u64 count_of(const scene_asset& asset, asset_feature feature) {
    for (const feature_use& use : features_of(asset))
        if (use.feature == feature) return use.count;
    return 0;
}

}  // namespace

TEST_CASE("a sparse accessor replaces elements of its buffer view, or of zeros") {
    gltf_builder b = square();
    const auto places = b.view(std::string("\1\0\3\0", 4));
    std::string values(6 * sizeof(f32), '\0');
    const f32 numbers[6] = {7, 8, 9, 4, 5, 6};
    std::memcpy(values.data(), numbers, sizeof numbers);
    const json sparse = {{"count", 2},
                         {"indices", {{"bufferView", places}, {"componentType", 5123}}},
                         {"values", {{"bufferView", b.view(values)}}}};
    b.root["accessors"][0]["sparse"] = sparse;
    const auto mixed = read(b).meshes[0].primitives[0].positions;
    CHECK(mixed == std::vector<f32>{-1, -1, 0, 7, 8, 9, 1, 1, 0, 4, 5, 6});
    b.root["accessors"][0].erase("bufferView");
    CHECK(read(b).meshes[0].primitives[0].positions == std::vector<f32>{0, 0, 0, 7, 8, 9, 0, 0, 0, 4, 5, 6});
    b.root["accessors"][0]["sparse"]["indices"]["componentType"] =
        5121;  // element 0 and then 1: still inside
    CHECK_NOTHROW(read(b));
    b.root["accessors"][0]["count"] = 3;
    b.root["accessors"][0]["sparse"] = sparse;
    CHECK_THROWS_WITH(read(b), contains("replaces element 3 of 3"));
    b.root["accessors"][0]["count"] = 2'000'000'000;
    CHECK_THROWS_WITH(read(b), contains("no buffer view"));
}

TEST_CASE("a metallic-roughness material with its extensions is read completely") {
    gltf_builder b = square();
    b.root["images"] = {{{"uri", "a.png"}}, {{"uri", "b.png"}}};
    b.root["samplers"] = {{{"wrapS", 33071}, {"wrapT", 33648}, {"magFilter", 9728}}};
    b.root["textures"] = {{{"source", 1}}, {{"source", 0}, {"sampler", 0}}};
    b.root["materials"] = {
        {{"name", "brass"},
         {"pbrMetallicRoughness",
          {{"baseColorFactor", {0.5, 0.25, 1, 0.75}},
           {"metallicFactor", 0.5},
           {"roughnessFactor", 0.25},
           {"metallicRoughnessTexture", {{"index", 1}, {"texCoord", 2}}}}},
         {"normalTexture", {{"index", 0}, {"scale", 2}}},
         {"occlusionTexture", {{"index", 1}, {"strength", 0.5}}},
         {"emissiveFactor", {1, 0.5, 0}},
         {"alphaMode", "MASK"},
         {"alphaCutoff", 0.3},
         {"extensions",
          {{"KHR_materials_unlit", json::object()},
           {"KHR_materials_emissive_strength", {{"emissiveStrength", 4}}},
           {"KHR_materials_ior", {{"ior", 1.5}}},
           {"KHR_materials_specular", {{"specularFactor", 0.5}, {"specularColorFactor", {1, 0.5, 0}}}},
           {"KHR_materials_transmission", {{"transmissionFactor", 0.9}}},
           {"KHR_materials_clearcoat",
            {{"clearcoatFactor", 0.8}, {"clearcoatRoughnessTexture", {{"index", 0}}}}}}}}};
    b.primitive()["material"] = 0;
    const scene_asset asset = read(b);
    const asset_material& m = asset.materials[0];
    CHECK(m.name == "brass");
    CHECK(m.base_color[3] == 0.75F);
    CHECK(m.metallic == 0.5F);
    CHECK(m.roughness == 0.25F);
    CHECK(
        (m.metallic_texture.texture == 1 && m.metallic_texture.channel == 2 && m.metallic_texture.set == 2));
    CHECK(m.roughness_texture.channel == 1);
    CHECK(m.normal_scale == 2);
    CHECK(m.occlusion_strength == 0.5F);
    CHECK((m.emissive[1] == 0.5F && m.emissive_strength == 4));
    CHECK((m.alpha == alpha_mode::mask && m.alpha_cutoff == 0.3F));
    CHECK((m.unlit && m.transmission == 0.9F && m.clearcoat == 0.8F));
    CHECK((m.clearcoat_roughness_texture.present() && m.clearcoat_roughness_texture.channel == 1));
    CHECK(std::abs(m.specular[0] - 0.5F) < 1e-6F);
    CHECK(std::abs(m.specular[1] - 0.25F) < 1e-6F);
    const asset_texture& t = asset.textures[1];
    CHECK((t.image == 0 && t.wrap_u == texture_wrap::clamp && t.wrap_v == texture_wrap::mirror && t.nearest));
    CHECK(asset.omitted.invalid == 0);
    for (const auto feature : {asset_feature::alpha_mask, asset_feature::clearcoat, asset_feature::emission,
                               asset_feature::normal_maps, asset_feature::occlusion_maps,
                               asset_feature::transmission, asset_feature::unlit})
        CHECK(count_of(asset, feature) == 1);
    CHECK(count_of(asset, asset_feature::wrap_modes) == 0);  // its texture is not that of the base colour
    CHECK(count_of(asset, asset_feature::clearcoat_details) == 1);
}

TEST_CASE("only the images of base colours are read on request, and the features stay the same") {
    gltf_builder b = square();
    b.root["images"] = {{{"bufferView", b.view("first")}}, {{"bufferView", b.view("second")}}};
    b.root["textures"] = {{{"source", 0}}, {{"source", 1}}, {{"source", 1}}};
    b.root["materials"] = {{{"normalTexture", {{"index", 0}}},
                            {"occlusionTexture", {{"index", 1}}},
                            {"pbrMetallicRoughness", {{"metallicRoughnessTexture", {{"index", 0}}}}}},
                           {{"pbrMetallicRoughness", {{"baseColorTexture", {{"index", 1}}}}}}};
    auto second = b.primitive();
    b.primitive()["material"] = 0;
    second["material"] = 1;
    b.root["meshes"][0]["primitives"].push_back(second);
    const scratch_folder folder;
    const std::string file = b.write(folder);
    const scene_asset whole = read_gltf(file), colors = read_gltf(file, std::nullopt, true);
    CHECK((!whole.images[0].none() && !whole.images[1].none()));
    CHECK((colors.images[0].none() && !colors.images[1].none()));
    CHECK(colors.materials[0].normal_texture.present());
    CHECK(features_of(colors).size() == features_of(whole).size());
}

TEST_CASE("a G-buffer shows more features than a picture, and no picture shows what no reader knows") {
    CHECK(is_shown(asset_feature::normal_maps, shown_by::surface));
    CHECK_FALSE(is_shown(asset_feature::normal_maps, shown_by::picture));
    CHECK_FALSE(is_shown(asset_feature::extensions, shown_by::surface));
}

TEST_CASE("skins, morph targets and animations are read, and one that is invalid is left out") {
    gltf_builder b = square();
    b.primitive()["attributes"]["JOINTS_0"] =
        b.accessor(std::vector<u8>{0, 1, 9, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0}, "VEC4", 5121, 4);
    b.primitive()["attributes"]["WEIGHTS_0"] =
        b.accessor(std::vector<f32>{0.5F, 0.5F, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0}, "VEC4", 5126, 4);
    b.primitive()["targets"] = {{{"POSITION", b.accessor(std::vector<f32>(12, 2.0F), "VEC3", 5126, 3)}}};
    b.root["meshes"][0]["weights"] = {0.25};
    b.root["nodes"] = {{{"mesh", 0}, {"skin", 0}}, {{"translation", {1, 2, 3}}}, json::object()};
    b.root["scenes"] = {{{"nodes", {0, 1, 2}}}};
    std::vector<f32> matrices(32, 0.0F);
    for (const std::size_t k : {0, 5, 10, 15, 16, 21, 26, 31}) matrices[k] = 1;
    matrices[12] = -4;
    b.root["skins"] = {{{"joints", {1, 2}}, {"inverseBindMatrices", b.accessor(matrices, "MAT4", 5126, 16)}}};
    const auto times = b.accessor(std::vector<f32>{0, 1, 2.5F}, "SCALAR", 5126, 1);
    const auto moves = b.accessor(std::vector<f32>(9, 1.0F), "VEC3", 5126, 3);
    const auto weights = b.accessor(std::vector<f32>(9, 0.5F), "SCALAR", 5126, 1);
    b.root["animations"] = {{{"samplers",
                              {{{"input", times}, {"output", moves}, {"interpolation", "STEP"}},
                               {{"input", times}, {"output", weights}, {"interpolation", "CUBICSPLINE"}},
                               {{"input", moves}, {"output", times}}}},
                             {"channels",
                              {{{"sampler", 0}, {"target", {{"node", 1}, {"path", "translation"}}}},
                               {{"sampler", 1}, {"target", {{"node", 0}, {"path", "weights"}}}},
                               {{"sampler", 2}, {"target", {{"node", 1}, {"path", "scale"}}}}}}}};
    const scene_asset asset = read(b);
    const asset_primitive& p = asset.meshes[0].primitives[0];
    CHECK(p.influences == 4);
    CHECK(p.joints ==
          std::vector<u16>{0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0});  // those of weight 0 are 0
    CHECK(p.targets.size() == 1);
    CHECK(asset.meshes[0].weights == std::vector<f32>{0.25F});
    CHECK(asset.nodes[0].skin == 0);
    CHECK(asset.skins[0].joints == std::vector<u32>{1, 2});
    CHECK(asset.skins[0].inverse_bind[0].m[3] == -4);
    REQUIRE(asset.animations.size() == 1);
    const asset_animation& animation = asset.animations[0];
    REQUIRE(animation.channels.size() == 2);
    CHECK(animation.duration == 2.5F);
    CHECK((animation.channels[1].width == 1 && animation.channels[1].between == interpolation::cubic));
    CHECK(asset.omitted.invalid == 1);
    CHECK_THAT(asset.omitted.first_invalid, contains("accessors") && contains("expected SCALAR"));
    CHECK(count_of(asset, asset_feature::skins) == 1);
    CHECK(count_of(asset, asset_feature::morph_targets) == 1);
    b.root["skins"][0]["joints"] = {1};  // the mesh names joint 1 of one
    b.root["skins"][0].erase("inverseBindMatrices");
    const scene_asset misfit = read(b);
    CHECK(misfit.nodes[0].skin == no_index);
    CHECK_THAT(misfit.omitted.first_invalid, contains("but its skin has 1"));
}

TEST_CASE("vertex colours, tangents, cameras, lights and instances are read") {
    gltf_builder b = square();
    b.primitive()["attributes"]["COLOR_0"] = b.accessor(
        std::vector<u8>{255, 0, 0, 255, 0, 255, 0, 255, 0, 0, 255, 255, 51, 0, 0, 0}, "VEC4", 5121, 4);
    b.root["accessors"].back()["normalized"] = true;
    b.primitive()["attributes"]["TANGENT"] = b.accessor(std::vector<f32>(16, 1.0F), "VEC4", 5126, 4);
    b.root["cameras"] = {
        {{"type", "perspective"}, {"perspective", {{"yfov", 0.7}, {"znear", 0.1}}}},
        {{"type", "orthographic"}, {"orthographic", {{"xmag", 2}, {"ymag", 3}, {"znear", 0}, {"zfar", 9}}}}};
    const auto places = b.accessor(std::vector<f32>{0, 0, 0, 5, 0, 0, 0, 6, 0}, "VEC3", 5126, 3);
    b.root["extensions"]["KHR_lights_punctual"]["lights"] = {
        {{"type", "spot"}, {"intensity", 30}, {"color", {1, 0.5, 0}}, {"spot", {{"outerConeAngle", 0.5}}}}};
    b.root["nodes"][0]["camera"] = 1;
    b.root["nodes"][0]["extensions"] = {
        {"KHR_lights_punctual", {{"light", 0}}},
        {"EXT_mesh_gpu_instancing", {{"attributes", {{"TRANSLATION", places}}}}}};
    const scene_asset asset = read(b);
    const asset_primitive& p = asset.meshes[0].primitives[0];
    CHECK(p.colors.size() == 16);
    CHECK((p.colors[0] == 1 && p.colors[12] == 0.2F && p.colors[15] == 0));
    CHECK(p.tangents.size() == 16);
    CHECK((asset.cameras[0].fov_y == 0.7F && asset.cameras[0].far == 0));
    CHECK((!asset.cameras[1].perspective && asset.cameras[1].half_height == 3));
    const asset_light& light = asset.lights[0];
    CHECK((light.kind == light_kind::spot && light.intensity == 30 && light.outer_cone == 0.5F));
    const asset_node& node = asset.nodes[0];
    CHECK((node.camera == 1 && node.light == 0));
    REQUIRE(node.instances.size() == 3);
    CHECK(node.instances[2].m[7] == 6);
    CHECK(totals_of(asset).triangles == 6);
    CHECK(count_of(asset, asset_feature::lights) == 1);
    CHECK(count_of(asset, asset_feature::vertex_colors) == 1);
}

TEST_CASE("a small file that expands beyond its limit of memory is refused with the place") {
    const auto read_within = [](const gltf_builder& b, u64 most_bytes) {
        const scratch_folder folder;
        return read_gltf(b.write(folder), most_bytes);
    };
    constexpr u64 limit = 20'000;
    const auto too_large = contains("of memory that it may use");
    CHECK_NOTHROW(read_within(square(), limit));
    SECTION("morph targets") {
        gltf_builder b = square();
        const json target = {{"POSITION", b.primitive()["attributes"]["POSITION"]}};
        b.primitive()["targets"] = json::array();
        for (int i = 0; i < 1000; ++i) b.primitive()["targets"].push_back(target);
        CHECK_THROWS_WITH(read_within(b, limit), too_large && contains("accessors[0]"));
        CHECK(read_within(b, 100 * limit).meshes[0].primitives[0].targets.size() == 1000);
    }
    SECTION("primitives") {
        gltf_builder b = square();
        const json primitive = b.primitive();
        for (int i = 0; i < 200; ++i) b.root["meshes"][0]["primitives"].push_back(primitive);
        CHECK_THROWS_WITH(read_within(b, limit), too_large);
        CHECK_NOTHROW(read_within(b, 100 * limit));
    }
    SECTION("a strip without indices") {
        gltf_builder b = square();
        b.positions(std::vector<f32>(3000, 1.0F));
        b.primitive()["attributes"] = {{"POSITION", b.primitive()["attributes"]["POSITION"]}};
        b.primitive()["mode"] = 5;
        b.primitive().erase("indices");
        // bytes: 12,320 of the buffer, 12,000 of positions, 4,000 and 12,000 of indices
        CHECK_THROWS_WITH(read_within(b, 35'000), too_large && contains("primitives[0]"));
        CHECK_NOTHROW(read_within(b, 45'000));
    }
    SECTION("animation channels") {
        gltf_builder b = square();
        const auto times = b.accessor(std::vector<f32>{0, 1, 2}, "SCALAR", 5126, 1);
        const auto moves = b.accessor(std::vector<f32>(9, 1.0F), "VEC3", 5126, 3);
        json channels = json::array();
        for (int i = 0; i < 1000; ++i)
            channels.push_back({{"sampler", 0}, {"target", {{"node", 0}, {"path", "translation"}}}});
        b.root["animations"] = {
            {{"samplers", {{{"input", times}, {"output", moves}}}}, {"channels", channels}}};
        CHECK_THROWS_WITH(read_within(b, limit), too_large && contains("accessors["));
        CHECK_NOTHROW(read_within(b, 100 * limit));
    }
    SECTION("instances of a sparse accessor without a buffer view") {
        gltf_builder b = square();
        const auto places = b.view(std::string(4, '\0')), values = b.view(std::string(12, '\0'));
        b.root["accessors"].push_back({{"componentType", 5126},
                                       {"type", "VEC3"},
                                       {"count", 100},
                                       {"sparse",
                                        {{"count", 1},
                                         {"indices", {{"bufferView", places}, {"componentType", 5125}}},
                                         {"values", {{"bufferView", values}}}}}});
        const json attributes = {{"TRANSLATION", b.root["accessors"].size() - 1}};
        const json node = {{"mesh", 0},
                           {"extensions", {{"EXT_mesh_gpu_instancing", {{"attributes", attributes}}}}}};
        b.root["nodes"] = json::array({node});  // not {node}, which clang takes for a copy
        CHECK_NOTHROW(read_within(b, limit));   // 12,000 bytes for each node
        b.root["nodes"].push_back(node);
        b.root["scenes"][0]["nodes"] = {0, 1};
        CHECK_THROWS_WITH(read_within(b, limit), too_large);
        CHECK(read_within(b, 100 * limit).nodes[1].instances.size() == 100);
    }
}
