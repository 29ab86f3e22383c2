#include "viewer/ui/theme.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace carousel::viewer::theme {
namespace {

constexpr ImU32 rgb(u32 hex) { return IM_COL32(hex >> 16U & 0xFFU, hex >> 8U & 0xFFU, hex & 0xFFU, 255); }

constexpr palette dark_palette{rgb(0x101318), rgb(0x181C22), rgb(0x232932), rgb(0x2C333D),
                               rgb(0xDDE2E9), rgb(0x95A0AF), rgb(0x55606E), rgb(0x56B4E9),
                               rgb(0x3DBB8F), rgb(0xE6A700), rgb(0xF07240), rgb(0x262C35)};
constexpr palette light_palette{rgb(0xE9ECF0), rgb(0xFAFBFC), rgb(0xE4E8ED), rgb(0xC9D0D8),
                                rgb(0x1B2027), rgb(0x566170), rgb(0xA0A9B4), rgb(0x0072B2),
                                rgb(0x00805C), rgb(0x9A6700), rgb(0xC04A00), rgb(0xE2E6EB)};

palette now = dark_palette;
bool is_dark = true;
f32 units = 1;
ImFont* small_ = nullptr;
ImFont* large_ = nullptr;

ImVec4 vec(ImU32 c) { return ImGui::ColorConvertU32ToFloat4(c); }

const char* find_font() noexcept {
    static constexpr std::array places{
        "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
        "/usr/share/fonts/dejavu-sans-fonts/DejaVuSans.ttf",
        "/usr/share/fonts/dejavu/DejaVuSans.ttf",
        "/usr/share/fonts/TTF/DejaVuSans.ttf",
        "/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf",
        "/usr/share/fonts/truetype/liberation/LiberationSans-Regular.ttf",
        "/usr/share/fonts/truetype/ubuntu/Ubuntu-R.ttf",
    };
    for (const char* p : places)
        if (::access(p, R_OK) == 0) return p;
    return nullptr;
}

}  // namespace

void apply(bool dark, f32 scale) {
    is_dark = dark;
    now = dark ? dark_palette : light_palette;
    units = scale;
    ImGuiStyle s;
    if (dark)
        ImGui::StyleColorsDark(&s);
    else
        ImGui::StyleColorsLight(&s);
    s.WindowPadding = ImVec2(10, 8);
    s.FramePadding = ImVec2(7, 3);
    s.ItemSpacing = ImVec2(8, 5);
    s.CellPadding = ImVec2(5, 3);
    s.ScrollbarSize = 11;
    s.WindowRounding = s.PopupRounding = 5;
    s.ChildRounding = 0;  // no rounded corners: they would not be visible, because the window is cleared to
                          // the panels' colour
    s.FrameRounding = s.GrabRounding = 4;
    s.WindowBorderSize = 0;
    s.ChildBorderSize = 1;
    s.ScaleAllSizes(scale);
    ImVec4* c = s.Colors;
    c[ImGuiCol_Text] = vec(now.text);
    c[ImGuiCol_TextDisabled] = vec(now.muted);
    c[ImGuiCol_WindowBg] = vec(now.background);
    c[ImGuiCol_ChildBg] = vec(with_alpha(now.panel, 0));
    c[ImGuiCol_PopupBg] = vec(now.panel);
    c[ImGuiCol_Border] = vec(now.border);
    c[ImGuiCol_FrameBg] = vec(now.raised);
    c[ImGuiCol_FrameBgHovered] = vec(now.border);
    c[ImGuiCol_FrameBgActive] = vec(now.border);
    c[ImGuiCol_Button] = vec(now.raised);
    c[ImGuiCol_ButtonHovered] = vec(now.border);
    c[ImGuiCol_ButtonActive] = vec(with_alpha(now.accent, 0.55F));
    c[ImGuiCol_Header] = vec(with_alpha(now.accent, 0.16F));
    c[ImGuiCol_HeaderHovered] = vec(with_alpha(now.accent, 0.24F));
    c[ImGuiCol_HeaderActive] = vec(with_alpha(now.accent, 0.32F));
    c[ImGuiCol_CheckMark] = vec(now.accent);
    c[ImGuiCol_SliderGrab] = vec(with_alpha(now.accent, 0.33F));  // a pale colour, because the value is drawn
                                                                  // over it
    c[ImGuiCol_SliderGrabActive] = vec(with_alpha(now.accent, 0.7F));
    c[ImGuiCol_TableHeaderBg] = vec(now.panel);
    c[ImGuiCol_TableBorderLight] = c[ImGuiCol_TableBorderStrong] = vec(now.grid);
    c[ImGuiCol_TableRowBgAlt] = vec(with_alpha(now.raised, 0.35F));
    c[ImGuiCol_Tab] = vec(now.panel);
    c[ImGuiCol_TabHovered] = vec(now.border);
    c[ImGuiCol_ScrollbarBg] = vec(with_alpha(now.panel, 0));
    c[ImGuiCol_ScrollbarGrab] = vec(now.border);
    ImGui::GetStyle() = s;
}

const palette& colors() noexcept { return now; }
f32 scale() noexcept { return units; }

void load_fonts(f32 scale) {
    ImFontAtlas* atlas = ImGui::GetIO().Fonts;
    atlas->Clear();
    const char* path = find_font();
    if (path == nullptr) {  // this is a bitmap font, which looks good only at integer multiples of its size
        ImFontConfig config;
        config.SizePixels = 13.0F * std::max(1.0F, std::round(scale));
        small_ = large_ = atlas->AddFontDefault(&config);
        return;
    }
    static constexpr std::array<ImWchar, 3> letters{0x20, 0xFF, 0};  // Latin-1 suffices for the interface
    const auto add = [&](f32 size) {
        return atlas->AddFontFromFileTTF(path, std::round(size * scale), nullptr, letters.data());
    };
    add(15);  // the first font is the default
    small_ = add(13);
    large_ = add(20);
}

ImFont* small_font() noexcept { return small_; }
ImFont* large_font() noexcept { return large_; }

ImU32 slot_color(telemetry::slot_phase p) noexcept {
    switch (p) {
        case telemetry::slot_phase::free:
            return is_dark ? rgb(0x3A434F) : rgb(0xC3CAD3);
        case telemetry::slot_phase::fill:
            return rgb(0xE69F00);
        case telemetry::slot_phase::ready:
            return rgb(0x56B4E9);
        case telemetry::slot_phase::leased:
            return rgb(0x009E73);
        case telemetry::slot_phase::done:
            return is_dark ? rgb(0x35607F) : rgb(0x8FB8D4);
        case telemetry::slot_phase::quarantined:
            return rgb(0xD55E00);
    }
    return now.muted;
}

ImU32 ring_color(const telemetry::snapshot& s, std::size_t link) noexcept {
    constexpr u32 of_no_stage = 7;
    const u32 stage = s.links[link].stage;
    if (stage >= s.stages.size()) return stage_color(of_no_stage);
    const std::vector<u32>& all = s.stages[stage].outputs;
    const auto before = std::find(all.begin(), all.end(), link) - all.begin();
    return with_alpha(stage_color(stage), 1.0F / static_cast<f32>(1 + before));
}

ImU32 stage_color(u32 stage) noexcept {
    static constexpr std::array on_dark{rgb(0x56B4E9), rgb(0xE69F00), rgb(0x3DBB8F), rgb(0xCC79A7),
                                        rgb(0xF0E442), rgb(0xF07240), rgb(0x8C9EFF), rgb(0xB8BEC7)};
    static constexpr std::array on_light{rgb(0x0072B2), rgb(0xB97A00), rgb(0x007F5C), rgb(0xA84C81),
                                         rgb(0x857B00), rgb(0xC04A00), rgb(0x3F51B5), rgb(0x59626E)};
    return is_dark ? on_dark[stage % on_dark.size()] : on_light[stage % on_light.size()];
}

ImU32 event_color(telemetry::event_kind k) noexcept {
    switch (k) {
        case telemetry::event_kind::info:
            return now.muted;
        case telemetry::event_kind::good:
            return now.good;
        case telemetry::event_kind::warning:
            return now.warning;
        case telemetry::event_kind::bad:
            return now.bad;
    }
    return now.muted;
}

ImU32 with_alpha(ImU32 color, f32 alpha) noexcept {
    return (color & ~IM_COL32_A_MASK) | static_cast<ImU32>(std::clamp(alpha, 0.0F, 1.0F) * 255.0F)
                                            << IM_COL32_A_SHIFT;
}

ImU32 text_on(ImU32 color) noexcept {
    const ImVec4 c = vec(color);
    return 0.299F * c.x + 0.587F * c.y + 0.114F * c.z > 0.5F ? rgb(0x101318) : rgb(0xFFFFFF);
}

}  // namespace carousel::viewer::theme
