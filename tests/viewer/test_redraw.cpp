// The parts that must be painted again: exactly the tiles that differ, and a window painted by parts equals
// the window painted whole.
#include <epoxy/gl.h>
#include <imgui.h>

#include <algorithm>
#include <functional>
#include <random>

#include "core/errors.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skip.hpp"
#include "tests/viewer/canvas.hpp"
#include "viewer/window/gl_paint.hpp"
#include "viewer/window/redraw.hpp"

using namespace carousel;
using namespace carousel::viewer;

namespace {

constexpr i32 width = 640, height = 400;

/// One frame of what `paint` puts into the window's background.
ImDrawData* drawn(test::canvas& s, const std::function<void(ImDrawList&)>& paint) {
    (void)s.window->begin_frame();
    paint(*ImGui::GetBackgroundDrawList());
    ImGui::Render();
    return ImGui::GetDrawData();
}

void square(ImDrawList& d, f32 x, f32 y, f32 size = 10) {
    d.AddRectFilled(ImVec2(x, y), ImVec2(x + size, y + size), IM_COL32(200, 60, 30, 255));
}

i64 area(const std::vector<pixel_box>& boxes) {
    i64 sum = 0;
    for (const pixel_box& b : boxes) sum += i64{b.right - b.left} * (b.bottom - b.top);
    return sum;
}

bool covers(const std::vector<pixel_box>& boxes, i32 x, i32 y) {
    return std::any_of(boxes.begin(), boxes.end(), [&](const pixel_box& b) {
        return x >= b.left && x < b.right && y >= b.top && y < b.bottom;
    });
}

}  // namespace

TEST_CASE("only the tiles of a window whose triangles differ are painted again") {
    test::canvas s(false, width, height);
    redraw r;
    const auto plan = [&](f32 x, u64 version = 0, bool everything = true) {
        return r.changed(*drawn(s,
                                [&](ImDrawList& d) {
                                    square(d, 300, 200);
                                    square(d, x, 20);
                                }),
                         version, everything);
    };
    CHECK(area(plan(20)) == i64{width} * height);  // nothing is known yet
    CHECK(plan(20).empty());
    const std::vector<pixel_box> moved = plan(140);  // from the first tile to the third
    CHECK(covers(moved, 25, 25));
    CHECK(covers(moved, 145, 25));
    CHECK_FALSE(covers(moved, 305, 205));
    CHECK(area(moved) == 2 * redraw::tile * redraw::tile);
    CHECK(plan(141).size() == 1);       // one pixel within the same tile
    CHECK(plan(141, 7).empty());        // no picture in it
    CHECK(plan(20, 7, false).empty());  // waits
    CHECK(area(plan(20, 7)) == 2 * redraw::tile * redraw::tile);
    r.forget();
    CHECK(area(plan(20, 7)) == i64{width} * height);
}

TEST_CASE("a new picture paints its own tiles at once, for any other pending work") {
    test::canvas s(false, width, height);
    redraw r;
    const auto plan = [&](u64 version, f32 x, bool everything) {
        return r.changed(*drawn(s,
                                [&](ImDrawList& d) {
                                    d.AddImage((ImTextureID)(intptr_t)4711, ImVec2(64, 64), ImVec2(192, 192));
                                    square(d, x, 300);
                                }),
                         version, everything);
    };
    (void)plan(1, 20, true);
    CHECK(plan(1, 20, false).empty());
    const std::vector<pixel_box> boxes = plan(2, 400, false);
    CHECK(covers(boxes, 100, 100));
    CHECK_FALSE(covers(boxes, 25, 305));
    CHECK(covers(plan(2, 400, true), 25, 305));
    // a removed one doesn't stay on the screen meanwhile
    CHECK(covers(r.changed(*drawn(s, [](ImDrawList& d) { square(d, 400, 300); }), 2, false), 100, 100));
}

TEST_CASE("a box of tiles gets the triangles that touch it, clipped to it") {
    test::canvas s(false, width, height);
    ImDrawData* data = drawn(s, [](ImDrawList& d) {
        square(d, 10, 10);
        square(d, 300, 200, 100);
        square(d, 600, 380);
    });
    restrict_to(*data, {{320, 192, 384, 256}, {576, 320, 640, 384}});
    int triangles = 0;
    for (int n = 0; n < data->CmdListsCount; ++n)
        for (const ImDrawCmd& c : data->CmdLists[n]->CmdBuffer) {
            triangles += static_cast<int>(c.ElemCount / 3);
            const bool first =
                c.ClipRect.x == 320 && c.ClipRect.y == 192 && c.ClipRect.z == 384 && c.ClipRect.w == 256;
            const bool second =
                c.ClipRect.x == 576 && c.ClipRect.y == 320 && c.ClipRect.z == 640 && c.ClipRect.w == 384;
            CHECK((first || second));
            for (unsigned k = 0; k < c.ElemCount; ++k)
                CHECK(data->CmdLists[n]
                          ->VtxBuffer[static_cast<int>(c.VtxOffset) +
                                      data->CmdLists[n]->IdxBuffer[static_cast<int>(c.IdxOffset + k)]]
                          .pos.x >= 300);
        }
    CHECK(triangles == 4);
}

TEST_CASE("many scattered changes become one box, and an empty window gets no box") {
    test::canvas s(false, 6400, 4000);
    redraw r;
    const auto plan = [&](f32 shift) {
        return r.changed(*drawn(s,
                                [&](ImDrawList& d) {
                                    for (int k = 0; k < 40; ++k)
                                        square(d, static_cast<f32>((k * 7 % 50) * 128) + shift,
                                               static_cast<f32>(k * 96));
                                }),
                         0, true);
    };
    (void)plan(0);
    CHECK(plan(3).size() == 1);
    ImDrawData nothing{};
    nothing.FramebufferScale = ImVec2(1, 1);
    CHECK(r.changed(nothing, 0, true).empty());
}

// Text, lines, circles, clipped and transparent things over a picture that changes: the same pixels, frame by
// frame.
TEST_CASE("a window painted by parts has the pixels of one painted whole") {
    std::unique_ptr<test::canvas> s;
    try {
        s = std::make_unique<test::canvas>(true, width, height);
    } catch (const error& e) {
        CAROUSEL_SKIP(("no offscreen GL here: " + std::string(e.what())).c_str());
    }
    GLuint color[2] = {}, target[2] = {};
    glGenTextures(2, color);
    glGenFramebuffers(2, target);
    for (int k = 0; k < 2; ++k) {
        glBindTexture(GL_TEXTURE_2D, color[k]);
        glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, width, height, 0, GL_RGBA, GL_UNSIGNED_BYTE, nullptr);
        glBindFramebuffer(GL_FRAMEBUFFER, target[k]);
        glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, color[k], 0);
    }
    glBindTexture(GL_TEXTURE_2D, 0);
    std::vector<u32> picture(64 * 64);
    (void)s->store->resize(64, 64);

    gl_paint whole(false), parts(true);
    std::mt19937 random(20261122);
    const auto in = [&](f32 low, f32 high) { return std::uniform_real_distribution<f32>(low, high)(random); };
    std::vector<ImVec4> things;
    for (int k = 0; k < 60; ++k) things.emplace_back(in(0, width), in(0, height), in(3, 120), in(3, 60));
    for (int k = 0; k < 60; ++k) {
        for (int n = 0; n < 3; ++n)
            things[random() % things.size()] = ImVec4(in(0, width), in(0, height), in(3, 120), in(3, 60));
        if (k % 3 == 0) {
            for (u32& p : picture) p = random();
            s->store->upload(reinterpret_cast<const std::byte*>(picture.data()));
        }
        ImDrawData* data = drawn(*s, [&](ImDrawList& d) {
            d.AddImage((ImTextureID)(intptr_t)s->store->shown({}), ImVec2(200, 100), ImVec2(371, 263));
            for (std::size_t n = 0; n < things.size(); ++n) {
                const ImVec4 t = things[n];
                const ImU32 c = IM_COL32(n * 4, 255 - n * 4, 128, n % 3 == 0 ? 255 : 120);
                const ImVec2 low(t.x, t.y), high(t.x + t.z, t.y + t.w);
                if (n % 5 == 4)
                    d.PushClipRect(ImVec2(t.x + 7, t.y + 5), ImVec2(t.x + t.z - 3, t.y + t.w), true);
                switch (n % 5) {
                    case 0:
                        d.AddRectFilled(low, high, c, 4);
                        break;
                    case 1:
                        d.AddText(low, c, "Carousel 0123");
                        break;
                    case 2:
                        d.AddLine(low, high, c, 1.5F);
                        break;
                    case 3:
                        d.AddCircle(low, t.w, c);
                        break;
                    default:
                        d.AddRect(low, high, c);
                        break;
                }
                if (n % 5 == 4) d.PopClipRect();
            }
        });
        glBindFramebuffer(GL_FRAMEBUFFER, target[0]);
        (void)whole.paint(data, width, height, s->store->version(), true);
        const std::vector<u8> wanted = read_framebuffer(width, height);
        glBindFramebuffer(GL_FRAMEBUFFER, target[1]);
        (void)parts.paint(data, width, height, s->store->version(), true);
        const std::vector<u8> got = read_framebuffer(width, height);
        std::size_t different = 0;
        int most = 0;
        for (std::size_t p = 0; p < wanted.size(); ++p) {
            different += wanted[p] != got[p] ? 1 : 0;
            most = std::max(most, std::abs(wanted[p] - got[p]));
        }
        CAPTURE(k, different, most);
        REQUIRE((wanted == got));
    }
    CHECK(parts.painted_share() < 0.8);
    CHECK(whole.painted_share() == 1);
    glDeleteFramebuffers(2, target);
    glDeleteTextures(2, color);
}
