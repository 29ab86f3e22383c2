#include "viewer/panels/parts.hpp"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "viewer/session/camera.hpp"
#include "viewer/session/parameter_values.hpp"
#include "viewer/ui/ui.hpp"

namespace carousel::viewer {
namespace {

using ring::parameter;
using ring::parameter_kind;

constexpr f32 degree = 3.14159265F / 180.0F;
constexpr f64 widest_slider = 1e6;  // widest range of a slider; in a wider range, one pixel would be too
                                    // large a step

/// The range and the unit in which an element is shown, for example degrees.
struct shown_range {
    f64 low = 0, high = 1, unit = 1;  ///< the parameter's value is the shown value times `unit`
    bool slides = false;
    const char* unit_name = "";
};

shown_range range_of(const parameter& p) {
    shown_range r;
    const bool angle = p.kind == parameter_kind::number && p.unit == "rad";
    if (angle) r.unit = f64{degree};
    r.unit_name = angle ? "deg" : p.unit.c_str();
    const bool usual = p.usual_low < p.usual_high;
    r.low = (usual ? p.usual_low : p.low) / r.unit;
    r.high = (usual ? p.usual_high : p.high) / r.unit;
    r.slides = r.low < r.high && r.high - r.low <= widest_slider && std::abs(r.low) <= 1e9 &&
               std::abs(r.high) <= 1e9;
    return r;
}

// Returns the number of decimals that distinguishes two values whose distance is 1/200 of the slider's range.
int decimals_of(const shown_range& r) {
    const f64 span = r.high - r.low;
    if (!r.slides || span >= 1000) return 0;
    if (span >= 100) return r.unit == 1 ? 1 : 0;
    return std::clamp(static_cast<int>(std::ceil(2 - std::log10(span))), 2, 7);
}

std::string format_of(const shown_range& r, const char* number) {
    std::string format = number;
    if (*r.unit_name != '\0') format += ' ';
    for (const char* c = r.unit_name; *c != '\0'; ++c) format += *c == '%' ? "%%" : std::string(1, *c);
    return format;
}

f64 stepped(const parameter& p, f64 value) {
    if (!(p.step > 0) || !std::isfinite(p.step)) return value;
    const f64 from = p.usual_low < p.usual_high ? p.usual_low : p.low;
    return from + std::round((value - from) / p.step) * p.step;
}

bool draw_slider(const parameter& p, const shown_range& r, std::span<std::byte> values) {
    f32 value = static_cast<f32>(std::clamp(number_in(p, values) / r.unit, -1e30, 1e30));
    const std::string format = format_of(r, fmt::format("%.{}f", decimals_of(r)).c_str());
    if (!ImGui::SliderFloat(label_of(p), &value, static_cast<f32>(r.low), static_cast<f32>(r.high),
                            format.c_str()))
        return false;
    put_number(p, values, 0, stepped(p, f64{value} * r.unit));
    return true;
}

bool draw_integer_slider(const parameter& p, const shown_range& r, std::span<std::byte> values) {
    int value = static_cast<int>(number_in(p, values));
    const std::string format = format_of(r, "%d");
    if (!ImGui::SliderInt(label_of(p), &value, static_cast<int>(r.low), static_cast<int>(r.high),
                          format.c_str()))
        return false;
    put_number(p, values, 0, stepped(p, value));
    return true;
}

// Draws input fields for numbers without a slider: the user types the numbers, and all elements are side by
// side.
bool draw_row(const parameter& p, const shown_range& r, std::span<std::byte> values, typed_row& typed) {
    std::array<f64, 4> row{};
    for (u32 k = 0; k < p.count; ++k) row[k] = number_in(p, values, k) / r.unit;
    if (typed.field == p.name) row = typed.value;
    const char* format = p.kind == parameter_kind::integer ? "%.0f" : "%.5g";
    if (ImGui::InputScalarN(label_of(p), ImGuiDataType_Double, row.data(), static_cast<int>(p.count), nullptr,
                            nullptr, format))
        typed = {p.name, row};
    if (typed.field != p.name || ImGui::IsItemActive()) return false;
    const bool left = ImGui::IsItemDeactivatedAfterEdit();
    typed = {};
    for (u32 k = 0; k < p.count && left; ++k) put_number(p, values, k, row[k] * r.unit);
    return left;
}

bool draw_direction(const parameter& p, std::span<std::byte> values) {
    f32 direction[3];
    read_point(p, values, direction);
    direction_angles a = angles_of(direction);
    bool changed = degrees_slider(label_of(p), "scene." + p.name, a.azimuth, -180, 180);
    changed = degrees_slider("elevation", "scene.elevation", a.elevation, -89, 89) || changed;
    if (!changed) return false;
    place_direction(a, direction);
    put_point(p, values, direction);
    return true;
}

std::string element_label(const parameter& p, u32 index) {
    return p.count == 1 ? label_of(p) : fmt::format("{} {}", label_of(p), index + 1);
}

bool draw_flag(const parameter& p, u32 index, std::span<std::byte> values) {
    bool on = number_in(p, values, index) != 0;
    if (!ImGui::Checkbox(element_label(p, index).c_str(), &on)) return false;
    put_number(p, values, index, on ? 1 : 0);
    return true;
}

bool draw_choice(const parameter& p, u32 index, std::span<std::byte> values) {
    if (p.choices.empty()) {
        ui::text(label_of(p));
        return false;
    }
    std::vector<const char*> names;
    for (const std::string& c : p.choices) names.push_back(c.c_str());
    int chosen = static_cast<int>(std::min(number_in(p, values, index), static_cast<f64>(names.size() - 1)));
    if (!ImGui::Combo(element_label(p, index).c_str(), &chosen, names.data(), static_cast<int>(names.size())))
        return false;
    put_number(p, values, index, chosen);
    return true;
}

bool draw_numbers(const parameter& p, std::span<std::byte> values, typed_row& typed) {
    const shown_range r = range_of(p);
    if (p.count > 1 || !r.slides) return draw_row(p, r, values, typed);
    return p.kind == parameter_kind::integer ? draw_integer_slider(p, r, values) : draw_slider(p, r, values);
}

}  // namespace

bool is_shown(const parameter& p) noexcept {
    return p.role != "hidden" && p.role != "camera.eye" && p.role != "camera.target" && p.role != "camera.up";
}

const char* label_of(const parameter& p) noexcept {
    return p.label.empty() ? p.name.c_str() : p.label.c_str();
}

bool degrees_slider(const char* label, const std::string& name, f32& radians, f32 low, f32 high) {
    f32 value = radians / degree;
    if (!number_slider(label, name, value, low, high, "%.0f deg")) return false;
    radians = value * degree;
    return true;
}

bool number_slider(const char* label, const std::string& name, f32& value, f32 low, f32 high,
                   const char* format) {
    const bool changed = ImGui::SliderFloat(label, &value, low, high, format);
    ui::mark(name);
    return changed;
}

bool draw_parameter(const parameter& p, std::span<std::byte> values, const char* key, typed_row& typed) {
    if (bytes_of(p, values).empty()) return false;
    ImGui::PushID(&p);
    bool changed = false;
    if (p.kind == parameter_kind::number && p.role == "direction" && is_point(p)) {
        changed = draw_direction(p, values);
    } else if (p.kind == parameter_kind::number || p.kind == parameter_kind::integer) {
        changed = draw_numbers(p, values, typed);
        ui::mark("scene." + p.name);
    } else {
        for (u32 k = 0; k < p.count; ++k) {
            changed =
                (p.kind == parameter_kind::flag ? draw_flag(p, k, values) : draw_choice(p, k, values)) ||
                changed;
            if (k > 0) continue;
            ui::mark("scene." + p.name);
            if (*key != '\0') ui::tip(key);
        }
    }
    ImGui::PopID();
    return changed;
}

}  // namespace carousel::viewer
