#include "os/table.hpp"

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

std::vector<std::size_t> table::widths() const {
    std::vector<std::size_t> widths;
    for (std::size_t k = 0; k < headers_.size(); ++k) {
        widths.push_back(width_of(headers_[k]));
        for (const auto& row : rows_) widths[k] = std::max(widths[k], width_of(row[k]));
    }
    return widths;
}

void table::drop(std::size_t column) {
    const auto at = static_cast<std::ptrdiff_t>(column);
    headers_.erase(headers_.begin() + at);
    right_.erase(right_.begin() + at);
    for (auto& row : rows_) row.erase(row.begin() + at);
}

bool table::has(const std::string& header) const noexcept {
    return std::find(headers_.begin(), headers_.end(), header) != headers_.end();
}

void table::fit(std::size_t width, const std::vector<sacrifice>& order) {
    for (const sacrifice& s : order) {
        const std::vector<std::size_t> now = widths();
        std::size_t all = now.empty() ? 0 : 2 * (now.size() - 1);
        for (const std::size_t w : now) all += w;
        if (width == 0 || all <= width) return;
        const auto at = std::find(headers_.begin(), headers_.end(), s.header);
        if (at == headers_.end()) continue;
        const auto column = static_cast<std::size_t>(at - headers_.begin());
        if (s.least == 0) {
            drop(column);
            continue;
        }
        const std::size_t excess = all - width,
                          to = std::max(s.least, now[column] > excess ? now[column] - excess : 0);
        headers_[column] = shortened(headers_[column], to);
        for (auto& row : rows_) row[column] = shortened(row[column], to);
    }
}

std::string table::text() const {
    const std::vector<std::size_t> widths = this->widths();
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

std::string shortened(const std::string& text, std::size_t width) {
    if (width_of(text) <= width) return text;
    std::string out;
    std::size_t columns = 0;
    for (const char c : text) {
        if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U && ++columns >= width) break;
        out += c;
    }
    return width == 0 ? "" : out + "\u2026";
}

std::string wrapped(const std::string& text, std::size_t width, std::size_t indent) {
    std::string out, rest = text;
    const std::string blanks(indent, ' ');
    while (width_of(rest) > width && width > indent + 1) {
        std::size_t columns = 0, at = 0, blank = 0, other = 0;
        const std::size_t first = rest.find_first_not_of(' ');
        for (; at < rest.size(); ++at) {
            if ((static_cast<unsigned char>(rest[at]) & 0xC0U) != 0x80U && ++columns > width) break;
            if (rest[at] == ' ' && at > first) blank = at;
            if ((rest[at] == '/' || rest[at] == ',') && at > first && columns < width) other = at + 1;
        }
        const std::size_t end = rest[at] == ' ' ? at : blank > 0 ? blank : other > 0 ? other : at;
        out += rest.substr(0, end) + "\n";
        const std::size_t next = rest.find_first_not_of(' ', end);
        rest = next == std::string::npos ? "" : blanks + rest.substr(next);
    }
    return out + rest;
}

std::string printable(std::string_view text, std::string_view keep) {
    constexpr unsigned char c1_lead = 0xC2;  // U+0080 to U+009F are the UTF-8 bytes C2 80 to C2 9F
    std::string out;
    out.reserve(text.size());
    for (std::size_t k = 0; k < text.size(); ++k) {
        const auto c = static_cast<unsigned char>(text[k]);
        const auto next = static_cast<unsigned char>(k + 1 < text.size() ? text[k + 1] : 0);
        if (c == c1_lead && next >= 0x80 && next < 0xA0) {
            out += fmt::format("\\u{:04x}", next);
            ++k;
        } else if ((c >= 0x20 && c != 0x7F) || keep.find(text[k]) != std::string_view::npos) {
            out += text[k];
        } else if (c == '\n' || c == '\t') {
            out += c == '\n' ? "\\n" : "\\t";
        } else {
            out += fmt::format("\\x{:02x}", c);
        }
    }
    return out;
}

}  // namespace carousel::supervisor
