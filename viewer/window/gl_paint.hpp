#pragma once
// Draws ImGui's draw data into the bound framebuffer. If the framebuffer keeps its pixels, only the changed
// part of the window is drawn; if it does not, the whole window is drawn.

#include <epoxy/gl.h>
#include <imgui.h>

#if __has_include(<backends/imgui_impl_opengl3.h>)
#include <backends/imgui_impl_opengl3.h>
#else
#include <imgui_impl_opengl3.h>
#endif

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/types.hpp"
#include "viewer/ui/theme.hpp"
#include "viewer/window/redraw.hpp"

namespace carousel::viewer {

class gl_paint {
public:
    /// `pixels_stay` must be true only if two conditions are met: the framebuffer keeps its pixels until the
    /// next frame, and drawing fewer pixels saves time, as it does if GL runs in software.
    explicit gl_paint(bool pixels_stay) : pixels_stay_(pixels_stay) {}

    /// Paints a frame of w x h pixels. If the framebuffer keeps its pixels, paints only the boxes that
    /// redraw::changed() returns, and restricts `data` to these boxes. Returns false if there was nothing to
    /// paint.
    bool paint(ImDrawData* data, i32 w, i32 h, u64 picture_version, bool everything) {
        glViewport(0, 0, w, h);
        const ImU32 ground_color = theme::colors().panel;  // the window is cleared to the panels' colour, so
                                                           // the panels need not draw a background
        const ImVec4 ground = ImGui::ColorConvertU32ToFloat4(ground_color);
        glClearColor(ground.x, ground.y, ground.z, 1);
        const u64 pixels = u64(std::max(0, w)) * u64(std::max(0, h));
        all_ += pixels;
        if (pixels == 0) {
            redraw_.forget();
            return false;
        }
        if (!pixels_stay_) {
            painted_ += pixels;
            glClear(GL_COLOR_BUFFER_BIT);
            ImGui_ImplOpenGL3_RenderDrawData(data);
            return true;
        }
        if (ground_color != ground_) redraw_.forget();
        ground_ = ground_color;
        const std::vector<pixel_box> boxes = redraw_.changed(*data, picture_version, everything);
        if (boxes.empty()) return false;
        // the number is rounded in the same way as in ImGui's backend
        const i32 rows = static_cast<i32>(data->DisplaySize.y * data->FramebufferScale.y);
        glEnable(GL_SCISSOR_TEST);
        for (const pixel_box& b : boxes) {
            glScissor(b.left, rows - b.bottom, b.right - b.left, b.bottom - b.top);
            glClear(GL_COLOR_BUFFER_BIT);
            painted_ += u64(b.right - b.left) * u64(b.bottom - b.top);
        }
        glDisable(GL_SCISSOR_TEST);
        restrict_to(*data, boxes);
        ImGui_ImplOpenGL3_RenderDrawData(data);
        return true;
    }
    /// To be called if the framebuffer has lost its pixels.
    void forget() noexcept { redraw_.forget(); }
    /// Returns the number of painted pixels divided by the number of pixels of all frames.
    [[nodiscard]] f64 painted_share() const noexcept {
        return all_ > 0 ? static_cast<f64>(painted_) / static_cast<f64>(all_) : 0;
    }

private:
    bool pixels_stay_;
    redraw redraw_;
    ImU32 ground_ = 0;
    u64 painted_ = 0, all_ = 0;
};

/// True if GL draws on the CPU, where every pixel takes time on the pipeline's cores. False for zink (GL on
/// top of Vulkan), although its name contains "llvmpipe", because zink draws the next frame into another
/// image.
inline bool is_software_gl() {
    const auto* name = reinterpret_cast<const char*>(glGetString(GL_RENDERER));
    if (name == nullptr) return false;
    const std::string_view text(name);
    if (text.find("zink") != text.npos) return false;
    return text.find("llvmpipe") != text.npos || text.find("softpipe") != text.npos ||
           text.find("Software Rasterizer") != text.npos;
}

// Reads the bound framebuffer. GL's rows begin at the bottom, but a picture's rows begin at the top.

[[nodiscard]] inline std::vector<u8> read_framebuffer(u32 width, u32 height) {
    std::vector<u8> rows(std::size_t{width} * height * 4);
    glPixelStorei(GL_PACK_ALIGNMENT, 4);
    glReadPixels(0, 0, static_cast<GLsizei>(width), static_cast<GLsizei>(height), GL_RGBA, GL_UNSIGNED_BYTE,
                 rows.data());
    const std::size_t stride = std::size_t{width} * 4;
    for (u32 y = 0; y < height / 2; ++y)
        std::swap_ranges(rows.begin() + static_cast<std::ptrdiff_t>(y * stride),
                         rows.begin() + static_cast<std::ptrdiff_t>((y + 1) * stride),
                         rows.begin() + static_cast<std::ptrdiff_t>((height - 1 - y) * stride));
    for (std::size_t k = 3; k < rows.size(); k += 4) rows[k] = 255;
    return rows;
}

}  // namespace carousel::viewer
