#include "frame/frame_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>

#include "core/errors.hpp"
#include "core/json.hpp"
#include "core/json_text.hpp"

namespace carousel::ring {
namespace {

struct element_row {
    element type;
    const char* name;
    u64 bytes;
};
constexpr element_row element_table[] = {
    {element::u8_, "u8", 1},           {element::u16_, "u16", 2}, {element::u32_, "u32", 4},
    {element::u64_, "u64", 8},         {element::i8_, "i8", 1},   {element::i16_, "i16", 2},
    {element::i32_, "i32", 4},         {element::i64_, "i64", 8}, {element::f8_e4m3_, "f8_e4m3", 1},
    {element::f8_e5m2_, "f8_e5m2", 1}, {element::f16_, "f16", 2}, {element::bf16_, "bf16", 2},
    {element::f32_, "f32", 4},         {element::f64_, "f64", 8}, {element::bool_, "bool", 1},
};

const element_row* row_of(element type) noexcept {
    const auto* row = std::find_if(std::begin(element_table), std::end(element_table),
                                   [&](const auto& r) { return r.type == type; });
    return row == std::end(element_table) ? nullptr : row;
}

/// Returns a * b + c, or empty if the result exceeds the largest slot.
std::optional<u64> bounded(u64 a, u64 b, u64 c) noexcept {
    u64 product = 0;
    u64 sum = 0;
    if (__builtin_mul_overflow(a, b, &product) || __builtin_add_overflow(product, c, &sum) ||
        sum > largest_slot_bytes) {
        return std::nullopt;
    }
    return sum;
}

/// Returns the number of bytes from the first element to the end of the last; empty if that exceeds the
/// largest slot. An extent of 0 counts as 0 bytes.
std::optional<u64> extent_of(const plane& p) {
    const u64 size = element_bytes(p.type);
    if (std::find(p.shape.begin(), p.shape.end(), u64{0}) != p.shape.end()) {
        return 0;
    }
    std::optional<u64> total = size;
    for (std::size_t i = 0; i < p.shape.size() && total; ++i) {
        total = p.strides.empty() ? bounded(*total, p.shape[i], 0)
                                  : bounded(p.shape[i] - 1, p.strides[i], *total);
    }
    return total;
}

std::vector<u64> dense_strides(const plane& p) {
    std::vector<u64> strides(p.shape.size(), element_bytes(p.type));
    for (std::size_t i = p.shape.size(); i-- > 1;) {
        strides[i - 1] = strides[i] * p.shape[i];
    }
    return strides;
}

std::vector<u64> effective_strides(const plane& p) {
    return p.strides.empty() ? dense_strides(p) : p.strides;
}

std::string describe_plane(const plane& p) {
    std::string text = fmt::format("{}: {}", p.name, name_of(p.type));
    for (const u64 n : p.shape) {
        text += n == 0 ? std::string("[*]") : fmt::format("[{}]", n);
    }
    if (!p.strides.empty() && p.strides != dense_strides(p)) {
        text += fmt::format(" strides ({}) bytes", fmt::join(p.strides, ", "));
    }
    return text;
}

void check_plane(const frame_format& format, const plane& p) {
    const auto refuse = [&](std::string_view why) {
        throw config_error(fmt::format("frame format {}: plane \"{}\" {}", format.type, p.name, why));
    };
    if (p.name.empty()) {
        refuse("has no name");
    }
    if (std::count_if(format.planes.begin(), format.planes.end(),
                      [&](const plane& o) { return o.name == p.name; }) > 1) {
        refuse("occurs twice; names must differ");
    }
    if (p.shape.empty() || p.shape.size() > max_rank) {
        refuse(fmt::format("has {} dimensions; 1 to {} are possible", p.shape.size(), max_rank));
    }
    if (std::find(p.shape.begin(), p.shape.end(), u64{0}) != p.shape.end()) {
        refuse(fmt::format("has an extent of 0 ({})", describe_plane(p)));
    }
    if (!p.strides.empty() && p.strides.size() != p.shape.size()) {
        refuse(fmt::format("has {} strides for {} dimensions", p.strides.size(), p.shape.size()));
    }
    if (!extent_of(p)) {
        refuse(fmt::format("is larger than 1 TiB ({})", describe_plane(p)));
    }
}

/// Returns the reason why `offered` does not satisfy `expected`; "" if it does.
std::string difference(const plane& offered, const plane& expected) {
    if (offered.type != expected.type) {
        return fmt::format("plane \"{}\" has elements of {}, expected {}", expected.name,
                           name_of(offered.type), name_of(expected.type));
    }
    const bool same_shape =
        std::equal(offered.shape.begin(), offered.shape.end(), expected.shape.begin(), expected.shape.end(),
                   [](u64 have, u64 want) { return want == 0 || have == want; });
    if (!same_shape) {
        return fmt::format("plane \"{}\" has another shape", expected.name);
    }
    plane wanted = expected;
    wanted.shape = offered.shape;  // an expected extent of 0 is replaced by the offered extent
    if (effective_strides(offered) != effective_strides(wanted)) {
        return fmt::format("plane \"{}\" has other strides", expected.name);
    }
    return {};
}

nlohmann::json plane_to_json(const plane& p) {
    nlohmann::json j{
        {"name", p.name}, {"element", name_of(p.type)}, {"shape", p.shape}, {"offset", p.offset}};
    if (!p.strides.empty()) {
        j["strides"] = p.strides;
    }
    return j;
}

plane plane_from_json(const nlohmann::json& j) {
    plane p;
    p.name = j.at("name").get<std::string>();
    const auto element_name = j.at("element").get<std::string>();
    const auto* row = std::find_if(std::begin(element_table), std::end(element_table),
                                   [&](const auto& r) { return element_name == r.name; });
    if (row == std::end(element_table)) {
        throw config_error(fmt::format("frame format: plane \"{}\" has the unknown element type \"{}\"",
                                       p.name, element_name));
    }
    p.type = row->type;
    p.shape = j.at("shape").get<std::vector<u64>>();
    if (j.contains("strides")) {
        p.strides = j.at("strides").get<std::vector<u64>>();
    }
    p.offset = j.value("offset", u64{0});
    return p;
}

[[noreturn]] void refuse(const std::string& name, std::string_view text) {
    std::string types;
    for (const element_row& row : element_table) types += (types.empty() ? "" : ", ") + std::string(row.name);
    throw config_error(fmt::format(
        "plane \"{}\" is \"{}\"; expected an element type ({}) with 1 to {} extents, e.g. \"u8[720,1280,4]\"",
        name, text, types, max_rank));
}

}  // namespace

u64 element_bytes(element type) noexcept {
    const auto* row = row_of(type);
    return row == nullptr ? 0 : row->bytes;
}

const char* name_of(element type) noexcept {
    const auto* row = row_of(type);
    return row == nullptr ? "unknown" : row->name;
}

u64 plane::bytes() const {
    const auto bytes = extent_of(*this);
    if (!bytes) {
        throw config_error(
            fmt::format("plane \"{}\" is larger than 1 TiB ({})", name, describe_plane(*this)));
    }
    return *bytes;
}

u64 frame_format::lay_out() {
    u64 end = plane_alignment;  // the status word precedes the first plane
    for (plane& p : planes) {
        check_plane(*this, p);
        p.offset = end;
        const auto next = bounded(1, p.bytes(), end + plane_alignment - 1);
        if (!next) {
            throw config_error(fmt::format("frame format {} is larger than 1 TiB", describe()));
        }
        end = *next / plane_alignment * plane_alignment;
    }
    return end;
}

const plane* frame_format::find(std::string_view name) const noexcept {
    const auto at =
        std::find_if(planes.begin(), planes.end(), [&](const plane& p) { return p.name == name; });
    return at == planes.end() ? nullptr : &*at;
}

std::string frame_format::describe() const {
    if (type.empty()) {
        return "nothing";
    }
    std::vector<std::string> parts;
    std::transform(planes.begin(), planes.end(), std::back_inserter(parts), describe_plane);
    for (const auto& [name, value] : constants) {
        parts.push_back(fmt::format("{} = {}", name, value));
    }
    return fmt::format("{} {{{}}}", type, fmt::join(parts, ", "));
}

std::string frame_format::to_json() const {
    nlohmann::json j{{"type", type}, {"planes", nlohmann::json::array()}, {"constants", constants}};
    for (const plane& p : planes) {
        j["planes"].push_back(plane_to_json(p));
    }
    return j.dump();
}

frame_format frame_format::from_json(std::string_view text) {
    frame_format format;
    try {
        const auto j = parse_json(text, json_channel::document);
        format.type = j.at("type").get<std::string>();
        for (const auto& p : j.at("planes")) {
            format.planes.push_back(plane_from_json(p));
        }
        if (j.contains("constants")) {
            format.constants = j.at("constants").get<std::map<std::string, double>>();
        }
    } catch (const nlohmann::json::exception& e) {
        throw config_error(fmt::format("frame format: not a description of a payload: {}", e.what()));
    }
    // Offsets come from another process: they must equal the offsets that this build would choose, because a
    // plane with another offset could lie anywhere.
    frame_format own = format;
    (void)own.lay_out();
    for (std::size_t i = 0; i < own.planes.size(); ++i) {
        if (format.planes[i].offset != 0 && format.planes[i].offset != own.planes[i].offset) {
            throw config_error(
                fmt::format("frame format {}: plane \"{}\" is at offset {}, expected {}: check that the "
                            "stages are from one build",
                            format.type, own.planes[i].name, format.planes[i].offset, own.planes[i].offset));
        }
    }
    return format;
}

void require_format(const frame_format& offered, const frame_format& expected, std::string_view consumer,
                    std::string_view producer) {
    std::string why;
    if (offered.type != expected.type) {
        why = "it is of another type";
    }
    for (const plane& want : expected.planes) {
        if (!why.empty()) {
            break;
        }
        const plane* have = offered.find(want.name);
        why = have == nullptr ? fmt::format("plane \"{}\" is missing", want.name) : difference(*have, want);
    }
    if (!why.empty()) {
        throw config_error(
            fmt::format("stage \"{}\" can't read what stage \"{}\" writes: {}. Offered: {}. Expected: {}.",
                        consumer, producer, why, offered.describe(), expected.describe()));
    }
}

plane plane_from_text(const std::string& name, std::string_view text) {
    plane p;
    p.name = name;
    const std::size_t open = text.find('[');
    if (open == std::string_view::npos || text.back() != ']') refuse(name, text);
    bool known = false;
    for (const element_row& row : element_table)
        if (text.substr(0, open) == row.name) p.type = row.type, known = true;
    const char* at = text.data() + open + 1;
    const char* const last = text.data() + text.size() - 1;
    while (known && at <= last) {
        u64 extent = 0;
        while (at < last && *at == ' ') ++at;
        const auto [end, failed] = std::from_chars(at, last, extent);
        if (failed != std::errc() || extent == 0 || (end != last && *end != ',')) refuse(name, text);
        p.shape.push_back(extent);
        at = end + 1;
    }
    if (!known || p.shape.empty() || p.shape.size() > max_rank) refuse(name, text);
    return p;
}

}  // namespace carousel::ring
