#include "viewer/watch/picture_choice.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace carousel::viewer {
namespace {

std::optional<f64> number_in(std::string_view text) {
    f64 value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = failed == std::errc() && end == text.data() + text.size() && std::isfinite(value);
    return whole ? std::optional(value) : std::nullopt;
}

}  // namespace

std::string name_of(const shown_picture& p) {
    return fmt::format("{} {} {} · frame {}", p.stage, p.plane, p.type, p.ring_sequence);
}

plane_choice plane_from_text(std::string_view text) {
    const std::size_t slash = text.find('/');
    if (slash == std::string_view::npos) return {std::string(text), ""};
    return {std::string(text.substr(0, slash)), std::string(text.substr(slash + 1))};
}

std::string range_text(const picture_style& style) {
    if (style.range == range_choice::fixed) return fmt::format("{}..{}", style.low, style.high);
    return style.range == range_choice::extremes ? "extremes" : "auto";
}

bool read_range(std::string_view text, picture_style& style) {
    if (text == "auto" || text == "extremes") {
        style.range = text == "auto" ? range_choice::automatic : range_choice::extremes;
        return true;
    }
    const std::size_t dots = text.find("..");
    if (dots == std::string_view::npos) return false;
    const std::optional<f64> low = number_in(text.substr(0, dots)), high = number_in(text.substr(dots + 2));
    if (!low || !high || !(*low < *high)) return false;
    style.range = range_choice::fixed;
    style.low = *low;
    style.high = *high;
    return true;
}

std::string colours_text(const picture_style& style) {
    return style.colours ? name_of(*style.colours) : "auto";
}

bool read_colours(std::string_view text, picture_style& style) {
    const std::optional<colour_map> map = colour_map_named(text);
    if (!map && text != "auto") return false;
    style.colours = map;
    return true;
}

}  // namespace carousel::viewer
