// The declarations of the stages before the start: formats, assets, and refusals.
#include "stages/display/display.hpp"
#include "stages/sharpen/sharpen.hpp"
#include "tests/stages/chains.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/exception_text.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;
using namespace carousel::stages;
using test::contains;

namespace {

/// configure() as the supervisor's --describe calls it: without a device.
description configured(stage& s, const std::string& json, std::vector<input_description> inputs = {},
                       u32 width = 64, u32 height = 48) {
    const auto values = settings::from_json(json);
    auto d = s.configure({"tested", width, height, &values, std::move(inputs)});
    values.refuse_unread();
    if (frame_format* output = output_of(d); output != nullptr) {
        (void)output->lay_out();
    }
    return d;
}

template <typename Stage>
std::string refusal(const std::string& json, std::vector<input_description> inputs = {}, u32 width = 64,
                    u32 height = 48) {
    Stage s;
    try {
        (void)configured(s, json, std::move(inputs), width, height);
    } catch (const config_error& e) {
        return e.what();
    }
    return "accepted";
}

input_description scene_input() {
    geometry g;
    return {"geometry", configured(g, R"({"triangles": 1000, "copies": 3})").outputs.at(0)};
}

input_description picture_input(u32 width = 64, u32 height = 48) {
    auto format = image_format(width, height);
    (void)format.lay_out();
    return {"fragment", format};
}

}  // namespace

TEST_CASE("geometry describes a scene whose constants describe the mesh and its asset") {
    geometry g;
    const auto d = configured(g, R"({"triangles": 1000, "copies": 3})");
    CHECK(d.outputs.at(0).type == "carousel.scene");
    CHECK(d.outputs.at(0).constants.at("triangles") > 0);
    CHECK(d.outputs.at(0).constants.at("triangles") <= 1000);
    CHECK(d.outputs.at(0).find("models")->shape == std::vector<u64>{3, 16});
    REQUIRE(d.makes.size() == 1);
    CHECK(d.makes[0].name == "mesh");
    CHECK(d.makes[0].bytes > 1000 * 12);
    CHECK(d.uses.empty());
}

TEST_CASE("configure gives the same answer each time") {
    geometry a;
    geometry b;
    CHECK(configured(a, "{}").outputs == configured(b, "{}").outputs);
    CHECK(configured(a, "{}").outputs == configured(b, "{}").outputs);
}

TEST_CASE("each stage's output is the next one's input, through JSON as on the way between processes") {
    const auto over_the_wire = [](const description& d, const char* from) {
        return input_description{from, ring::frame_format::from_json(d.outputs.at(0).to_json())};
    };
    geometry g;
    vertex v;
    fragment f;
    sharpen s;
    display sink;
    const auto scene = configured(g, R"({"triangles": 1000})");
    const auto triangles = configured(v, "{}", {over_the_wire(scene, "geometry")});
    CHECK(triangles.uses == std::vector<std::string>{"mesh"});
    const auto picture = configured(f, "{}", {over_the_wire(triangles, "vertex")});
    CHECK(picture.outputs.at(0).describe() == "carousel.image.rgba8 {color: u8[48][64][4]}");
    CHECK(picture.uses == std::vector<std::string>{"mesh"});
    const auto sharp = configured(s, R"({"strength": 1.5})", {over_the_wire(picture, "fragment")});
    CHECK(sharp.outputs == picture.outputs);
    CHECK(sharp.uses.empty());
    CHECK(configured(sink, "{}", {over_the_wire(sharp, "sharpen")}).outputs.empty());
    fused both;
    CHECK(configured(both, "{}", {over_the_wire(scene, "geometry")}).outputs == picture.outputs);
}

TEST_CASE("a stage refuses another stage's payload with both descriptions") {
    CHECK_THAT(refusal<vertex>("{}", {picture_input()}),
               contains("carousel.image.rgba8 {color: u8[48][64][4]}") && contains("carousel.scene {"));
    CHECK_THAT(refusal<fragment>("{}", {scene_input()}),
               contains("carousel.scene {") && contains("carousel.triangles {"));
    CHECK_THAT(refusal<fused>("{}", {picture_input()}),
               contains("carousel.image.rgba8 {") && contains("carousel.scene {"));
    CHECK_THAT(refusal<display>("{}", {scene_input()}),
               contains("carousel.scene {") && contains("color: u8[*][*][4]"));
    CHECK_THAT(refusal<sharpen>("{}", {scene_input()}), contains("\"tested\"") && contains("\"geometry\""));
    auto other = picture_input();
    other.format.planes[0].type = ring::element::f32_;
    CHECK_THAT(refusal<display>("{}", {other}), contains("elements of f32, expected u8"));
}

TEST_CASE("a scene whose planes don't fit its own constants is refused") {
    auto input = scene_input();
    input.format.constants.erase("vertices");
    CHECK_THAT(refusal<vertex>("{}", {input}), contains("constant \"vertices\""));
    input = scene_input();
    input.format.constants["texture_width"] = 1e9;
    CHECK_THAT(refusal<vertex>("{}", {input}), contains("constant \"texture_width\""));
    input = scene_input();
    input.format.constants["triangles"] = 0.5;
    CHECK_THAT(refusal<vertex>("{}", {input}), contains("constant \"triangles\""));
    vertex v;
    auto triangles = configured(v, "{}", {scene_input()}).outputs.at(0);
    triangles.constants["triangles"] += 1;
    CHECK_THAT(refusal<fragment>("{}", {{"vertex", triangles}}),
               contains("plane \"list\" has another shape"));
}

TEST_CASE("a display packs pictures on all cores, and ordered or small work on one thread") {
    const auto threads = [](const char* json) {
        display d;
        return configured(d, json, {picture_input()}).finish_threads;
    };
    CHECK(threads("{}") == 0);  // one per core
    CHECK(threads(R"({"finish_threads": 3, "out": "%d.npy"})") == 3);
    CHECK(threads(R"({"out": ""})") == 1);
    CHECK(threads(R"({"delay_ms": 5})") == 1);
    if (stages::why_no_films().empty()) CHECK(threads(R"({"out": "x.mp4"})") == 1);
}

TEST_CASE("the number of inputs is checked") {
    CHECK_THAT(refusal<geometry>("{}", {picture_input()}), contains("has no inputs"));
    CHECK_THAT(refusal<vertex>("{}"), contains("takes one input") && contains("none"));
    CHECK_THAT(refusal<display>("{}", {picture_input(), picture_input()}), contains("takes one input"));
    CHECK_THAT(refusal<sharpen>("{}"), contains("a picture"));
}

TEST_CASE("wrong settings are refused by key") {
    CHECK_THAT(refusal<geometry>(R"({"mesh": "bumpy-spehre"})"), contains("did you mean \"bumpy-sphere\"?"));
    CHECK_THAT(refusal<geometry>(R"({"mesh": "/absent/x.obj"})"),
               contains("/absent/x.obj") && contains("No such file"));
    CHECK_THAT(refusal<geometry>(R"({"mesh": "absent.obj"})"),
               contains("absent.obj") && contains("No such file"));
    CHECK_THAT(refusal<geometry>(R"({"mesh": "/dev/null"})"), contains("/dev/null"));
    CHECK_THAT(refusal<geometry>(R"({"triangels": 5})"), contains("did you mean \"triangles\"?"));
    CHECK_THAT(refusal<geometry>(R"({"triangles": 0})"), contains("triangles = 0"));
    CHECK_THAT(refusal<geometry>(R"({"triangles": 5e9})"), contains("triangles = "));
    CHECK_THAT(refusal<geometry>(R"({"texture": "chekcer"})"), contains("did you mean \"checker\"?"));
    CHECK_THAT(refusal<geometry>(R"({"texture": "absent.png"})"), contains("absent.png"));
    CHECK_THAT(refusal<geometry>(R"({"triangles": 1000000, "copies": 100000})"),
               contains("lower triangles or copies"));
    CHECK_THAT(refusal<sharpen>(R"({"strength": -1})", {picture_input()}), contains("strength = -1"));
    CHECK_THAT(refusal<display>(R"({"out": "x.png"})", {picture_input()}), contains("frame's number"));
    CHECK_THAT(refusal<display>(R"({"finish_threads": -1})", {picture_input()}), contains("finish_threads"));
    CHECK_THAT(refusal<display>(R"({"delay_ms": "a"})", {picture_input()}), contains("delay_ms"));
    CHECK_THAT(refusal<vertex>(R"({"triangles": 1})", {scene_input()}),
               contains("unknown key \"triangles\""));
}

TEST_CASE("sizes that can't be rendered are refused") {
    CHECK_THAT(refusal<geometry>("{}", {}, 0, 10), contains("size = [0, 10]"));
    CHECK_THAT(refusal<geometry>("{}", {}, 10, 100'000),
               contains("size = [10, 100000]") && contains("16384"));
}

TEST_CASE("a missing texture's material is drawn in its colour, and a missing setting is refused") {
    scratch_folder folder;
    folder.write("m.mtl", "newmtl painted\nKd 1 0 0\nmap_Kd absent.png\n");
    const auto obj =
        folder.write("m.obj", "mtllib m.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nusemtl painted\nf 1 2 3\n");
    const auto values = settings::from_json(R"({"mesh": ")" + obj + "\"}");
    geometry g;
    description made;
    const std::string log = test::exception_text([&] {
        made = g.configure({"geometry", 64, 48, &values, {}});
    });
    CHECK_THAT(log, contains("absent.png") && contains("drawn without it"));
    CHECK(made.outputs.front().constants.at("texels") == 1);
    CHECK_THAT(refusal<geometry>(R"({"texture": "./absent.png"})"), contains("absent.png"));
}

TEST_CASE("the default camera sees a mesh file from a three-quarter view, and a shape from the front") {
    scratch_folder folder;
    const auto obj = folder.write("m.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n");
    const auto values = settings::from_json(R"({"mesh": ")" + obj + "\"}");
    geometry g;
    const description made = g.configure({"geometry", 64, 48, &values, {}});
    CHECK(made.parameters == scene_parameters::schema(true));
    stages::vertex v;
    const auto none = settings::from_json("{}");
    const description next = v.configure({"vertex", 64, 48, &none, {{"geometry", made.outputs.front()}}});
    CHECK(next.parameters == made.parameters);
    fragment f;
    CHECK(f.configure({"fragment", 64, 48, &none, {{"vertex", next.outputs.front()}}}).parameters ==
          made.parameters);
    geometry shape;
    CHECK(shape.configure({"geometry", 64, 48, &none, {}}).parameters == scene_parameters::schema());
    CHECK_FALSE(scene_parameters::schema(true) == scene_parameters::schema());
}
