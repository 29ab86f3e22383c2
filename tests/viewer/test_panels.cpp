// Every panel with every kind of run, without a window: nothing may crash, leave the window or have NaN
// coordinates.

#include <algorithm>
#include <cstring>
#include <random>

#include "ring/latest.hpp"
#include "tests/support/catch.hpp"
#include "tests/viewer/canvas.hpp"
#include "tests/viewer/models.hpp"

using namespace carousel;
using test::canvas;
using test::watched;

namespace {

void check_inside(int width, int height) {
    CHECK(canvas::sane());
    CHECK(canvas::vertices() > 0);
    for (const viewer::ui::widget& w : viewer::ui::marks()) {
        if (w.name.rfind("panel.", 0) != 0 && w.name.rfind("head.", 0) != 0) continue;
        INFO(w.name << " at " << w.x << ", " << w.y << " of " << w.width << " x " << w.height);
        CHECK(w.x >= 0);
        CHECK(w.y >= 0);
        CHECK(w.x + w.width <= static_cast<f32>(width) + 1);
        CHECK(w.y + w.height <= static_cast<f32>(height) + 1);
    }
}

// One ImGui context at a time: no other canvas may be open.
bool shows(viewer::model& m, const std::string& name) {
    canvas s(false);
    s.draw(m);
    return canvas::find(name) != nullptr;
}

void draw_everywhere(viewer::model& m) {
    for (const auto& [width, height, scale] : {std::tuple{1920, 1080, 1.0F}, std::tuple{3840, 2160, 2.0F},
                                               std::tuple{1280, 720, 1.0F}, std::tuple{700, 500, 1.0F}}) {
        canvas s(false, width, height, scale);
        s.draw(m);
        check_inside(width, height);
    }
}

}  // namespace

TEST_CASE("with no run there is a question and no panel") {
    viewer::model m;
    CHECK(shows(m, "choice"));
    CHECK_FALSE(shows(m, "panel.stages"));
    m.choices.resize(2);
    m.choices[0].name = "one";
    m.choices[1].name = "two";
    CHECK(shows(m, "choice.two"));
    {
        canvas s(false);
        s.screen.on_key(m, {'2', false, false});
        CHECK(m.chosen == "two");
        m.chosen.clear();
    }
    draw_everywhere(m);
}

TEST_CASE("a run without a frame shows all panels") {
    watched w(test::demo_plan(1280, 720));
    w.read();
    for (const char* name : {"image", "scene", "timeline", "stages", "rings", "plots", "events"})
        CHECK(shows(w.m, std::string("panel.") + name));
    draw_everywhere(w.m);
}

TEST_CASE("the stages panel names the bottleneck if there is one") {
    watched w(test::demo_plan(1280, 720));
    CHECK_FALSE(shows(w.m, "stages.limit"));  // nothing was measured yet
    w.r.sit_all();
    w.run(200);
    CHECK(shows(w.m, "stages.limit"));
    for (const auto& [width, height] : {std::pair{1280, 720}, std::pair{1920, 1080}}) {
        canvas s(false, width, height);
        s.draw(w.m);
        const viewer::ui::widget* at = canvas::find("stages.limit");
        const viewer::ui::widget* in = canvas::find("panel.stages");
        REQUIRE((at != nullptr && in != nullptr));
        CHECK((at->x >= in->x && at->x + at->width <= in->x + in->width));
    }
    w.m.phase = viewer::run_phase::ended;
    CHECK_FALSE(shows(w.m, "stages.limit"));
}

TEST_CASE("a running pipeline: every slot and every button has its place inside its panel") {
    watched w(test::demo_plan(1280, 720));
    w.r.sit_all();
    w.run(200);
    draw_everywhere(w.m);
    canvas s(false);
    s.draw(w.m);
    check_inside(1920, 1080);
    for (const char* name : {"geometry", "vertex", "fragment", "display"}) {
        for (const char* what : {"kill", "stop", "restart", "row", "state"}) {
            const viewer::ui::widget* at = canvas::find(std::string("stages.") + what + "." + name);
            const viewer::ui::widget* in = canvas::find("panel.stages");
            REQUIRE(at != nullptr);
            CHECK(at->x >= in->x);
            CHECK(at->x + at->width <= in->x + in->width);
            CHECK(at->y + at->height <= in->y + in->height);
        }
    }
    const u32 slots = w.r.block().link[2].slots;
    for (u32 k = 0; k < slots; ++k)
        CHECK(canvas::find("rings.slot.fragment." + std::to_string(k)) != nullptr);
}

TEST_CASE("at 1280 x 720 everything of the demo is inside its panel") {
    for (const auto& [width, height] : {std::pair{1280, 720}, std::pair{1920, 1080}}) {
        watched w(test::demo_plan(1280, 720));
        w.r.sit_all();
        w.run(60);
        w.m.picture.width = 1280;
        w.m.picture.height = 720;
        canvas s(false, width, height, 1.0F);
        s.draw(w.m, 3);
        const auto inside = [](const std::string& name, const char* panel) {
            const viewer::ui::widget *at = canvas::find(name),
                                     *in = canvas::find(std::string("panel.") + panel);
            INFO(name << " in " << panel);
            REQUIRE(at != nullptr);
            REQUIRE(in != nullptr);
            CHECK((at->x >= in->x && at->x + at->width <= in->x + in->width));
            CHECK((at->y >= in->y && at->y + at->height <= in->y + in->height - 4));  // its edge
        };
        for (const char* name : {"geometry", "vertex", "fragment", "display"})
            for (const char* what : {"row", "kill", "stop", "restart"})
                inside(std::string("stages.") + what + "." + name, "stages");
        for (const char* name : {"geometry", "vertex", "fragment"})
            inside(std::string("rings.link.") + name, "rings");
        for (const char* name : {"image.pause", "image.alpha", "image.exposure", "image.save"})
            inside(name, "image");
        for (const char* name : {"scene.yaw", "scene.ambient", "scene.wireframe", "scene.reset"})
            inside(name, "scene");
        for (const char* name : {"plots.fps", "plots.latency"}) inside(name, "plots");
        for (const char* name : {"head.runs", "head.theme", "head.shot", "head.help"}) {
            const viewer::ui::widget* at = canvas::find(name);
            REQUIRE(at != nullptr);
            CHECK(at->x + at->width <= static_cast<f32>(width));
        }
        // the value of the pixel under the mouse, whole, and not under the mouse
        for (const f32 at : {0.5F, 0.01F}) {  // in the middle of the picture, and in its lower left corner
            const viewer::ui::widget* area = canvas::find("image.area");
            const f32 zoom = std::min(area->width / 1280, area->height / 720);
            const ImVec2 mouse(area->x + area->width / 2 + (at - 0.5F) * 1280 * zoom,
                               area->y + area->height / 2 + (0.5F - at) * 720 * zoom);
            s.draw_with_mouse(w.m, mouse);
            inside("image.pixel", "image");
            const viewer::ui::widget* value = canvas::find("image.pixel");
            CHECK_FALSE((mouse.x >= value->x && mouse.x < value->x + value->width && mouse.y >= value->y &&
                         mouse.y < value->y + value->height));
        }
    }
}

TEST_CASE("the events stay at their newest line through resizes until the reader scrolls away") {
    watched w(test::demo_plan(64, 64));
    w.r.sit_all();
    w.run(5);
    const auto add_events = [&](int count) {
        for (int k = 0; k < count; ++k)
            w.m.events.add(
                {w.m.now_ns, telemetry::event_kind::info, shm::none,
                 "something has happened that takes a long line to be told: number " + std::to_string(k)});
    };
    add_events(60);
    canvas s(false, 1920, 1080);
    const auto at_end = [] { return canvas::find("events.end") != nullptr; };
    s.draw(w.m, 4);
    CHECK(at_end());
    for (const auto& [width, height] :
         {std::pair{1280, 720}, std::pair{1000, 600}, std::pair{1920, 1080}, std::pair{1100, 1000}}) {
        s.resize(width, height);
        s.draw(w.m, 4);
        INFO(width << " x " << height);
        CHECK(at_end());
        add_events(3);
        s.draw(w.m, 4);
        CHECK(at_end());
    }
    const viewer::ui::widget* p = canvas::find("panel.events");
    s.draw_with_mouse(w.m, ImVec2(p->x + p->width / 2, p->y + p->height / 2), 3.0F);  // the wheel, upwards
    s.draw(w.m, 3);
    CHECK_FALSE(at_end());
    add_events(3);
    s.resize(1280, 720);
    s.draw(w.m, 4);
    CHECK_FALSE(at_end());  // the control: he reads on where he is
}

TEST_CASE("a small window's table of a run on a GPU drops some columns, not its buttons") {
    watched w(test::demo_plan(1280, 720));
    w.r.sit_all();
    w.run(60);
    w.m.report.resize(std::max<std::size_t>(w.m.report.size(), 1));
    w.m.report[0].gpu_bytes = 500U << 20U;
    for (const auto& [width, height] : {std::pair{1280, 720}, std::pair{1000, 640}}) {
        canvas s(false, width, height, 1.0F);
        s.draw(w.m);
        const viewer::ui::widget* in = canvas::find("panel.stages");
        for (const char* name : {"geometry", "vertex"}) {
            for (const char* what : {"kill", "stop", "restart"}) {
                const viewer::ui::widget* at = canvas::find(std::string("stages.") + what + "." + name);
                INFO(what << " of " << name << " at " << width << " x " << height);
                REQUIRE(at != nullptr);
                CHECK(at->width > 20);
                CHECK(at->x + at->width <= in->x + in->width);
            }
            const viewer::ui::widget* row = canvas::find(std::string("stages.row.") + name);
            const viewer::ui::widget* state = canvas::find(std::string("stages.state.") + name);
            REQUIRE(row != nullptr);
            REQUIRE(state != nullptr);
            CHECK(state->x - row->x > 50);  // room for the name
        }
    }
}

TEST_CASE("a crash: the banner is there while the stage is dead, and some seconds after its return") {
    watched w(test::demo_plan(1280, 720));
    w.r.sit_all();
    w.run(60);
    REQUIRE(w.r.pass(0));
    REQUIRE(w.r.pass(1));
    REQUIRE(w.r.begin(2));
    w.read();
    CHECK_FALSE(shows(w.m, "image.banner"));
    w.r.die(2);
    w.time_ns += ns_per_ms;
    w.read();
    CHECK(shows(w.m, "image.banner"));
    draw_everywhere(w.m);
    w.r.retire(2);
    w.r.sit(2);
    w.time_ns += ns_per_s;
    w.read();
    CHECK(shows(w.m, "image.banner"));
    w.time_ns += 10 * ns_per_s;
    w.read();
    CHECK_FALSE(shows(w.m, "image.banner"));
    CHECK(w.m.past.marks().size() == 1);
}

TEST_CASE("64 slots, 12 stages, long names, several instances, a viewer next to a display") {
    ring::plan p = test::chain_of(12);
    for (ring::stage_plan& s : p.stages) {
        s.name += "-with-a-name-of-great-length-and-little-sense";
        s.in_flight = 8;
        s.window = 47;
    }
    p.stages[11].instances = 2;
    p.stages[11].in_flight = 4;
    watched w(p);
    w.r.sit_all();
    ring::latest_reader tap(w.r.block(), 10, shm::max_incarnations);
    w.run(80);
    for (u32 k = 0; k <= 10; ++k) REQUIRE(w.r.pass(k));
    REQUIRE(tap.acquire());
    w.read();
    CHECK(w.m.snap.links[10].slots.size() == 64);
    draw_everywhere(w.m);
}

TEST_CASE("20 stages with long names at 1280 x 720: plots show curves, and no text is cut off") {
    ring::plan p = test::chain_of(20);
    p.pipeline = "a-pipeline-with-a-name-that-is-longer-than-the-head-of-a-window-at-this-size-has-room-for";
    for (ring::stage_plan& s : p.stages) s.name += "-with-a-name-of-great-length-and-little-sense";
    watched w(p);
    w.m.run.run_id = "0123456789abcdef-0123456789abcdef";
    w.r.sit_all();
    w.run(60);
    canvas s(false, 1280, 720, 1.0F);
    s.draw(w.m, 4);
    check_inside(1280, 720);
    const viewer::ui::widget* buttons = canvas::find("head.runs");
    REQUIRE(buttons != nullptr);
    for (const char* name : {"plots.fps.area", "plots.latency.area"}) {
        const viewer::ui::widget *area = canvas::find(name), *in = canvas::find("panel.plots");
        INFO(name);
        REQUIRE(area != nullptr);
        CHECK(area->height >= 24);
        CHECK(area->y + area->height < in->y + in->height - 12);  // the numbers of the axis
    }
    bool shortened = false;
    for (const viewer::ui::widget& at : viewer::ui::marks()) {
        if (at.name.rfind("head.text.", 0) != 0) continue;
        INFO(at.name);
        CHECK(at.x + at.width <= buttons->x);
        shortened |= at.name.ends_with("...");
    }
    CHECK(shortened);
}

TEST_CASE("a text that is shortened keeps whole characters") {
    canvas s(false);
    watched w(test::demo_plan(64, 64));
    s.draw(w.m);
    ImGui::NewFrame();
    const std::string text = "a · b · c · d · e";
    const int widest = static_cast<int>(ImGui::CalcTextSize(text.c_str()).x) + 20;
    for (int width = 0; width < widest; ++width) {
        const std::string short_text = viewer::ui::fitted(text, static_cast<f32>(width));
        const std::string kept =
            short_text.ends_with("...") ? short_text.substr(0, short_text.size() - 3) : short_text;
        CHECK(text.rfind(kept, 0) == 0);
        CHECK((kept.empty() || kept.back() != '\xC2'));  // the first byte of the dot
    }
    ImGui::EndFrame();
}

TEST_CASE("an ended run keeps its last picture and is shown as ended") {
    watched w(test::demo_plan(64, 64));
    w.r.sit_all();
    w.run(30);
    w.m.phase = viewer::run_phase::ended;
    CHECK(shows(w.m, "image.banner"));
    draw_everywhere(w.m);
}

TEST_CASE("every key acts as the help states, and no key causes a crash in any phase") {
    watched w(test::demo_plan(64, 64));
    w.r.sit_all();
    w.run(30);
    canvas s(false);
    s.draw(w.m);
    const auto press = [&](int key, bool shift = false, bool ctrl = false) {
        s.screen.on_key(w.m, {key, ctrl, shift});
    };
    press('3');
    CHECK(w.m.selected_seat == 2);
    for (const char slipped : {'K', 'S', 'R', 'H', 'G', 'X', 'A', 'I'}) {
        press(slipped);
        CHECK_THAT(w.m.events.events().back().text,
                   test::contains(std::string("no action: Ctrl+") + slipped));
    }
    CHECK(w.m.commands.empty());  // what harms takes Ctrl
    const auto harm = [&](char key) { press(key, false, true); };
    harm('K');
    REQUIRE(w.m.commands.size() == 1);
    CHECK(describe(w.m.commands[0]) == "kill fragment");
    CHECK(std::get<run::kill_request>(w.m.commands[0].what).signal == 9);
    harm('S');
    press('C');
    harm('R');
    harm('H');
    REQUIRE(w.m.commands.size() == 5);
    CHECK(describe(w.m.commands[1]) == "stop fragment");
    CHECK(describe(w.m.commands[2]) == "cont fragment");
    CHECK(describe(w.m.commands[3]) == "restart fragment");
    CHECK(run::command_of(w.m.commands[4].what) == std::string("inject"));
    CHECK(describe(w.m.commands[4]) == "hang fragment");
    harm('G');
    harm('X');
    harm('A');
    for (const char letter : {'I', 'O', 'B'}) harm(letter);
    REQUIRE(w.m.commands.size() == 11);
    CHECK(describe(w.m.commands[5]) == "gpu-fault fragment");
    CHECK(describe(w.m.commands[6]) == "exit fragment");
    CHECK(describe(w.m.commands[7]) == "abort fragment");
    CHECK(describe(w.m.commands[8]) == "scribble-input fragment");
    CHECK(describe(w.m.commands[9]) == "overrun-output fragment");
    CHECK(describe(w.m.commands[10]) == "scribble-control fragment");
    press(' ');
    CHECK(w.m.picture.paused);
    press('.');
    CHECK(w.m.picture.step);
    press('R', true);
    CHECK_FALSE(w.m.picture.red);
    press('L');
    CHECK_FALSE(w.m.kept.dark);
    press('M');
    CHECK(w.m.schema.element_of(*w.m.schema.find("shading"), w.m.values) == 1);
    CHECK(w.m.values_changed);
    press(viewer::key::f1);
    s.draw(w.m);
    CHECK(canvas::find("help") != nullptr);
    press(viewer::key::escape);
    w.m.choices.resize(2);
    w.m.choices[1].name = "other";
    press('N');
    s.draw(w.m);
    CHECK(canvas::find("choice.other") != nullptr);
    press('2');
    CHECK(w.m.chosen == "other");
    CHECK_FALSE(w.m.choosing);
    w.m.chosen.clear();
    press('2');
    CHECK(w.m.chosen.empty());  // the list is closed: a stage's number again
    press('Q', false, true);
    CHECK(w.m.quit);
    for (const viewer::run_phase phase :
         {viewer::run_phase::waiting, viewer::run_phase::ended, viewer::run_phase::watching}) {
        w.m.phase = phase;
        for (int key = 32; key < 280; ++key)
            for (const bool shift : {false, true}) press(key, shift);
        s.draw(w.m);
        CHECK(canvas::sane());
    }
}

TEST_CASE("windows of one pixel and of no sense are survived") {
    watched w(test::demo_plan(64, 64));
    w.r.sit_all();
    w.run(30);
    for (const auto& [width, height] :
         {std::pair{1, 1}, std::pair{1, 1080}, std::pair{1920, 1}, std::pair{40, 40}, std::pair{950, 490}}) {
        canvas s(false, width, height);
        s.draw(w.m);
        CHECK(canvas::sane());
    }
}

TEST_CASE("values of a damaged control block are drawn as well") {
    std::mt19937_64 random(7);
    const auto c = std::make_unique<shm::control_block>();
    canvas s(false, 1280, 720);
    viewer::model m;
    m.phase = viewer::run_phase::watching;
    m.schema = test::scene_schema();
    m.values = m.schema.initial_values();
    telemetry::rate_tracker tracker;
    for (int round = 0; round < 12; ++round) {
        auto* words = reinterpret_cast<u64*>(c.get());
        for (std::size_t k = 0; k < sizeof(shm::control_block) / 8; ++k)
            words[k] = round % 2 == 0 ? random() : ~u64{0};
        telemetry::read_snapshot(*c, m.snap);
        m.snap.taken_ns = m.now_ns = 1'000'000'000U * static_cast<u64>(round + 1);
        m.rates = tracker.feed(m.snap);
        m.past.feed(m.snap, m.rates);
        m.events.feed(m.snap);
        m.bars.feed(m.snap);
        std::copy_n(m.snap.parameters.begin(), m.values.size(), m.values.begin());
        s.draw(m);
        CHECK(canvas::sane());
    }
}
