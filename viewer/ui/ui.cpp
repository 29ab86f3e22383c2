#include "viewer/ui/ui.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "viewer/ui/theme.hpp"

namespace carousel::viewer::ui {
namespace {
std::vector<widget> marks_;
}

void begin_marks() { marks_.clear(); }
const std::vector<widget>& marks() noexcept { return marks_; }

void mark(std::string_view name, ImVec2 low, ImVec2 high) {
    marks_.push_back({std::string(name), low.x, low.y, high.x - low.x, high.y - low.y});
}
void mark(std::string_view name) { mark(name, ImGui::GetItemRectMin(), ImGui::GetItemRectMax()); }

void tip(std::string_view text) {
    if (!ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled)) return;
    ImGui::BeginTooltip();
    ImGui::TextUnformatted(text.data(), text.data() + text.size());
    ImGui::EndTooltip();
}

bool button(std::string_view name, const char* label, const char* keys, const char* help, bool danger,
            bool enabled) {
    ImGui::PushID(name.data(), name.data() + name.size());
    const theme::palette& c = theme::colors();
    const ImU32 plain = ImGui::GetColorU32(ImGuiCol_Button);
    ImGui::PushStyleColor(ImGuiCol_Text, !enabled ? c.faint : danger ? c.bad : c.text);
    ImGui::PushStyleColor(ImGuiCol_ButtonHovered, !enabled ? plain
                                                  : danger ? theme::with_alpha(c.bad, 0.3F)
                                                           : c.border);
    ImGui::PushStyleColor(ImGuiCol_ButtonActive, enabled ? ImGui::GetColorU32(ImGuiCol_ButtonActive) : plain);
    const bool pressed = ImGui::Button(label) && enabled;
    ImGui::PopStyleColor(3);
    mark(name);
    tip(fmt::format("{}{}{}{}", help, *keys != '\0' ? "  [" : "", keys, *keys != '\0' ? "]" : ""));
    ImGui::PopID();
    return pressed;
}

bool toggle(std::string_view name, const char* label, const char* keys, const char* help, bool& value) {
    if (value) ImGui::PushStyleColor(ImGuiCol_Button, theme::with_alpha(theme::colors().accent, 0.35F));
    const bool was = value;
    if (button(name, label, keys, help)) value = !value;
    if (was) ImGui::PopStyleColor();
    return value != was;
}

void text(std::string_view text, ImU32 color) {
    ImGui::PushStyleColor(ImGuiCol_Text, color != 0 ? color : theme::colors().text);
    ImGui::TextUnformatted(text.data(), text.data() + text.size());
    ImGui::PopStyleColor();
}

void small_text(std::string_view words, ImU32 color) {
    ImGui::PushFont(theme::small_font());
    text(words, color != 0 ? color : theme::colors().muted);
    ImGui::PopFont();
}

void right_text(std::string_view words, ImU32 color) {
    const f32 width = ImGui::CalcTextSize(words.data(), words.data() + words.size()).x;
    const f32 space = ImGui::GetContentRegionAvail().x - width;
    if (space > 0) ImGui::SetCursorPosX(ImGui::GetCursorPosX() + space);
    text(words, color);
}

void row_follower::begin(u32 selected, f32 height) noexcept {
    follows_ = selected != selected_ || height != height_;
    selected_ = selected;
    height_ = height;
}

void row_follower::at_row(f32 low, f32 high, f32 covered) const {
    if (!follows_) return;
    const f32 top = ImGui::GetWindowPos().y + covered, bottom = ImGui::GetWindowPos().y + height_;
    if (low < top) ImGui::SetScrollY(ImGui::GetScrollY() + low - top);
    if (high > bottom) ImGui::SetScrollY(ImGui::GetScrollY() + std::min(high - bottom, low - top));
}

std::string fitted(std::string_view text, f32 width) {
    const auto width_of = [](std::string_view t) {
        return ImGui::CalcTextSize(t.data(), t.data() + t.size()).x;
    };
    if (width_of(text) <= width) return std::string(text);
    const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; };
    std::string out(text);
    while (!out.empty() && width_of(out + "...") > width) {
        while (out.size() > 1 && continues(out.back()))
            out.pop_back();  // the loop removes a whole UTF-8
                             // character
        out.pop_back();
    }
    return out + "...";
}

std::string fitting_parts(std::span<const std::string> parts, f32 width) {
    std::string out;
    for (const std::string& part : parts) {
        std::string longer = out.empty() ? part : out + " · " + part;
        if (ImGui::CalcTextSize(longer.c_str()).x > width) break;
        out = std::move(longer);
    }
    return out;
}

std::string number(f64 value, bool known) {
    if (!known || !std::isfinite(value)) return "-";
    const f64 size = std::abs(value);
    if (size >= 99.95) return fmt::format("{:.0f}", value);
    if (size >= 9.995) return fmt::format("{:.1f}", value);
    return fmt::format("{:.2f}", value);
}

std::string duration(f64 seconds) {
    if (!(seconds >= 0)) return "-";
    if (seconds < 60) return fmt::format("{:.0f} s", seconds);
    const u64 whole = static_cast<u64>(seconds);
    if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
    return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

std::string bytes(f64 count) {
    static constexpr std::array names{"B", "KiB", "MiB", "GiB", "TiB"};
    std::size_t k = 0;
    while (count >= 1024 && k + 1 < names.size()) {
        count /= 1024;
        ++k;
    }
    return k == 0 ? fmt::format("{:.0f} B", count) : fmt::format("{} {}", number(count), names[k]);
}

}  // namespace carousel::viewer::ui
