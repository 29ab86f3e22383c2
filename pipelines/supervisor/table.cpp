#include "supervisor/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/errors.hpp"

namespace carousel::supervisor {

table::table(std::vector<std::string> headers) : headers_(std::move(headers)) {
    for (std::string& h : headers_) {
        right_.push_back(h.starts_with('>'));
        if (right_.back()) h.erase(0, 1);
    }
}

void table::add(std::vector<std::string> cells) {
    CAROUSEL_ASSERT(cells.size() <= headers_.size());
    cells.resize(headers_.size());
    for (std::string& cell : cells) cell = printable(cell);
    rows_.push_back(std::move(cells));
}

std::string table::text() const {
    std::vector<std::size_t> widths;
    for (std::size_t k = 0; k < headers_.size(); ++k) {
        widths.push_back(width_of(headers_[k]));
        for (const auto& row : rows_) widths[k] = std::max(widths[k], width_of(row[k]));
    }
    std::string out;
    const auto line = [&](const std::vector<std::string>& cells) {
        std::string text;
        for (std::size_t k = 0; k < cells.size(); ++k) {
            const std::string blanks(widths[k] - width_of(cells[k]), ' ');
            if (k > 0) text += "  ";
            text += right_[k] ? blanks + cells[k] : cells[k] + blanks;
        }
        text.erase(text.find_last_not_of(' ') + 1);
        out += text + "\n";
    };
    line(headers_);
    for (const auto& row : rows_) line(row);
    return out;
}

std::string human_bytes(u64 bytes) {
    if (bytes < 1024) return fmt::format("{} B", bytes);
    constexpr const char* units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    f64 value = static_cast<f64>(bytes) / 1024;
    std::size_t unit = 0;
    for (; value >= 1023.95 && unit + 1 < std::size(units); ++unit) value /= 1024;
    return fmt::format("{:.1f} {}", value, units[unit]);
}

std::string human_seconds(f64 s) {
    if (!(s > 0)) return "0s";
    if (s < 9.95) return fmt::format("{:.1f}s", s);
    const u64 whole = s > 1e15 ? 0 : static_cast<u64>(std::llround(s));
    if (whole < 60) return fmt::format("{}s", whole);
    if (whole < 3600) return fmt::format("{}m {}s", whole / 60, whole % 60);
    if (whole < 86400) return fmt::format("{}h {}m", whole / 3600, whole % 3600 / 60);
    return fmt::format("{}d {}h", whole / 86400, whole % 86400 / 3600);
}

std::string human_rate(f64 per_s) {
    if (!(per_s > 0)) return "0";
    if (per_s < 9.995) return fmt::format("{:.2f}", per_s);
    return per_s < 999.5 ? fmt::format("{:.1f}", per_s) : fmt::format("{:.0f}", per_s);
}

std::size_t width_of(const std::string& text) noexcept {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xC0U) != 0x80U; }));
}

std::string printable(const std::string& text) {
    std::string out = text;
    std::replace_if(
        out.begin(), out.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, '?');
    return out;
}

}  // namespace carousel::supervisor
