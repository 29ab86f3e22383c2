#include "viewer/window/redraw.hpp"

#include <imgui.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace carousel::viewer {
namespace {

struct float_box {
    f32 left, top, right, bottom;
    [[nodiscard]] bool empty() const { return !(left < right && top < bottom); }
};

float_box meet(const float_box& a, const float_box& b) {
    return {std::max(a.left, b.left), std::max(a.top, b.top), std::min(a.right, b.right),
            std::min(a.bottom, b.bottom)};
}

/// Converts interface units to framebuffer pixels.
struct to_pixels {
    ImVec2 origin, scale;
    f32 height;
    explicit to_pixels(const ImDrawData& d)
        : origin(d.DisplayPos),
          scale(d.FramebufferScale),
          height(std::floor(d.DisplaySize.y * d.FramebufferScale.y)) {}
    /// A rectangle in whole pixels. Fractions are truncated, as in the calls of glScissor() in ImGui's
    /// OpenGL backend, so a rectangle with fractions may lose its last column or row.
    [[nodiscard]] float_box clip(const ImDrawCmd& c) const {
        const float_box exact{(c.ClipRect.x - origin.x) * scale.x, (c.ClipRect.y - origin.y) * scale.y,
                              (c.ClipRect.z - origin.x) * scale.x, (c.ClipRect.w - origin.y) * scale.y};
        const f32 left = std::trunc(exact.left), bottom = height - std::trunc(height - exact.bottom);
        return {left, bottom - std::trunc(exact.bottom - exact.top),
                left + std::trunc(exact.right - exact.left), bottom};
    }
    [[nodiscard]] float_box around(const ImDrawVert& a, const ImDrawVert& b, const ImDrawVert& c) const {
        return {(std::min({a.pos.x, b.pos.x, c.pos.x}) - origin.x) * scale.x,
                (std::min({a.pos.y, b.pos.y, c.pos.y}) - origin.y) * scale.y,
                (std::max({a.pos.x, b.pos.x, c.pos.x}) - origin.x) * scale.x,
                (std::max({a.pos.y, b.pos.y, c.pos.y}) - origin.y) * scale.y};
    }
};

constexpr u64 odd = 0x9E3779B97F4A7C15ULL;
u64 mix(u64 h, u64 word) { return std::rotl((h ^ word) * odd, 29); }
u64 mix_bytes(u64 h, const void* data, std::size_t size) {
    const auto* at = static_cast<const char*>(data);
    u64 word = 0;
    for (; size >= sizeof word; size -= sizeof word, at += sizeof word) {
        std::memcpy(&word, at, sizeof word);
        h = mix(h, word);
    }
    word = 0;
    std::memcpy(&word, at, size);
    return size == 0 ? h : mix(h, word);
}

/// Calls f(list, command) for every command that draws triangles.
template <typename F>
void for_commands(const ImDrawData& data, F&& f) {
    for (int n = 0; n < data.CmdListsCount; ++n) {
        const ImDrawList& list = *data.CmdLists[n];
        for (const ImDrawCmd& c : list.CmdBuffer)
            if (c.UserCallback == nullptr) f(list, c);
    }
}

}  // namespace

// A tile's content is the sequence of triangles that touch it: equal sequences paint equal pixels.
void redraw::scan(const ImDrawData& data, u64 picture_version) {
    now_.assign(std::size_t(columns_) * std::size_t(rows_), {odd, false});
    const to_pixels pixels(data);
    const auto font = ImGui::GetIO().Fonts->TexID;
    for_commands(data, [&](const ImDrawList& list, const ImDrawCmd& c) {
        const float_box clip =
            meet(pixels.clip(c), {0, 0, static_cast<f32>(width_), static_cast<f32>(height_)});
        if (clip.empty()) return;
        const auto texture = c.GetTexID();
        const bool picture = texture != font;
        u64 about = mix_bytes(mix(odd, picture ? picture_version : 0), &texture, sizeof texture);
        about = mix_bytes(about, &clip, sizeof clip);
        const ImDrawIdx* index = list.IdxBuffer.Data + c.IdxOffset;
        const ImDrawVert* vertex = list.VtxBuffer.Data + c.VtxOffset;
        for (unsigned k = 0; k + 2 < c.ElemCount; k += 3) {
            const ImDrawVert &a = vertex[index[k]], &b = vertex[index[k + 1]], &e = vertex[index[k + 2]];
            const float_box box = meet(clip, pixels.around(a, b, e));
            if (!(box.left <= box.right && box.top <= box.bottom)) continue;
            const u64 content =
                mix_bytes(mix_bytes(mix_bytes(about, &a, sizeof a), &b, sizeof b), &e, sizeof e);
            const i32 x1 = std::min(columns_ - 1, static_cast<i32>(box.right) / tile),
                      y1 = std::min(rows_ - 1, static_cast<i32>(box.bottom) / tile);
            for (i32 y = static_cast<i32>(box.top) / tile; y <= y1; ++y)
                for (i32 x = static_cast<i32>(box.left) / tile; x <= x1; ++x) {
                    tile_state& t = now_[std::size_t(y) * std::size_t(columns_) + std::size_t(x)];
                    t.content = mix(t.content, content);
                    t.picture |= picture;
                }
        }
    });
}

// A box begins as a run of adjacent tiles in one row. If a run in the next row has the same columns, it is
// added to the box.
std::vector<pixel_box> redraw::boxes_of(const std::vector<bool>& wanted) const {
    std::vector<pixel_box> out;
    for (i32 y = 0; y < rows_; ++y)
        for (i32 x = 0; x < columns_; ++x) {
            if (!wanted[std::size_t(y) * std::size_t(columns_) + std::size_t(x)]) continue;
            const i32 first = x;
            while (x < columns_ && wanted[std::size_t(y) * std::size_t(columns_) + std::size_t(x)]) ++x;
            const pixel_box run{first * tile, y * tile, std::min(width_, x * tile),
                                std::min(height_, (y + 1) * tile)};
            const auto above = std::find_if(out.begin(), out.end(), [&](const pixel_box& b) {
                return b.bottom == run.top && b.left == run.left && b.right == run.right;
            });
            if (above != out.end())
                above->bottom = run.bottom;
            else
                out.push_back(run);
        }
    if (out.size() <= most_boxes) return out;
    pixel_box all = out.front();  // one box that contains all boxes, because each box costs a pass over the
                                  // triangles
    for (const pixel_box& b : out)
        all = {std::min(all.left, b.left), std::min(all.top, b.top), std::max(all.right, b.right),
               std::max(all.bottom, b.bottom)};
    return {all};
}

std::vector<pixel_box> redraw::changed(const ImDrawData& data, u64 picture_version, bool everything) {
    const i32 width = std::max(0, static_cast<i32>(data.DisplaySize.x * data.FramebufferScale.x)),
              height = std::max(0, static_cast<i32>(data.DisplaySize.y * data.FramebufferScale.y));
    if (width != width_ || height != height_) forget();
    width_ = width;
    height_ = height;
    columns_ = (width + tile - 1) / tile;
    rows_ = (height + tile - 1) / tile;
    scan(data, picture_version);
    const bool known = drawn_.size() == now_.size();
    std::vector<bool> wanted(now_.size());
    for (std::size_t k = 0; k < now_.size(); ++k)
        wanted[k] = !known || (drawn_[k].content != now_[k].content &&
                               (everything || now_[k].picture || drawn_[k].picture));
    const std::vector<pixel_box> boxes = boxes_of(wanted);
    drawn_.resize(now_.size());
    // The box that contains all boxes may also include tiles that were not requested; they are also drawn.
    for (const pixel_box& b : boxes)
        for (i32 y = b.top / tile; y < (b.bottom + tile - 1) / tile; ++y)
            for (i32 x = b.left / tile; x < (b.right + tile - 1) / tile; ++x) {
                const std::size_t k = std::size_t(y) * std::size_t(columns_) + std::size_t(x);
                drawn_[k] = now_[k];
            }
    return boxes;
}

void restrict_to(ImDrawData& data, const std::vector<pixel_box>& boxes) {
    const to_pixels pixels(data);
    ImVector<ImDrawCmd> commands;
    ImVector<ImDrawIdx> indices;
    for (int n = 0; n < data.CmdListsCount; ++n) {
        ImDrawList& list = *data.CmdLists[n];
        commands.resize(0);
        indices.resize(0);
        for (const ImDrawCmd& c : list.CmdBuffer) {
            if (c.UserCallback != nullptr) {
                commands.push_back(c);
                continue;
            }
            const float_box clip = pixels.clip(c);
            const ImDrawVert* vertex = list.VtxBuffer.Data + c.VtxOffset;
            for (const pixel_box& b : boxes) {
                const float_box part = meet(clip, {static_cast<f32>(b.left), static_cast<f32>(b.top),
                                                   static_cast<f32>(b.right), static_cast<f32>(b.bottom)});
                if (part.empty()) continue;
                ImDrawCmd kept = c;
                kept.IdxOffset = static_cast<unsigned>(indices.Size);
                for (unsigned k = 0; k + 2 < c.ElemCount; k += 3) {
                    const ImDrawIdx* i = list.IdxBuffer.Data + c.IdxOffset + k;
                    const float_box box = pixels.around(vertex[i[0]], vertex[i[1]], vertex[i[2]]);
                    if (box.right < part.left || box.bottom < part.top || box.left > part.right ||
                        box.top > part.bottom)
                        continue;
                    for (int e = 0; e < 3; ++e) indices.push_back(i[e]);
                }
                kept.ElemCount = static_cast<unsigned>(indices.Size) - kept.IdxOffset;
                if (kept.ElemCount == 0) continue;
                // The backend truncates min.x, height - max.y and both differences. So if the scale is
                // fractional, the rectangle's edges are moved slightly into the pixels.
                const f32 in = pixels.scale.x == 1 && pixels.scale.y == 1 ? 0 : 0.125F;
                kept.ClipRect = ImVec4((part.left + in) / pixels.scale.x + pixels.origin.x,
                                       (part.top - 2 * in) / pixels.scale.y + pixels.origin.y,
                                       (part.right + 2 * in) / pixels.scale.x + pixels.origin.x,
                                       (part.bottom - in) / pixels.scale.y + pixels.origin.y);
                commands.push_back(kept);
            }
        }
        list.CmdBuffer.swap(commands);
        list.IdxBuffer.swap(indices);
    }
}

}  // namespace carousel::viewer
