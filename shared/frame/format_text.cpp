#include "frame/format_text.hpp"

#include <fmt/format.h>

#include <charconv>

#include "core/errors.hpp"

namespace carousel::ring {
namespace {

/// Covers all enumerators from the first to the last, so that a type that is added to the enum can be written
/// here.
template <typename F>
void for_each_element(F&& each) {
    for (u32 e = 0; e <= static_cast<u32>(element::bool_); ++e) each(static_cast<element>(e));
}

[[noreturn]] void refuse(const std::string& name, std::string_view text) {
    std::string types;
    for_each_element([&](element e) { types += (types.empty() ? "" : ", ") + std::string(name_of(e)); });
    throw config_error(fmt::format(
        "plane \"{}\" is \"{}\"; expected an element type ({}) with 1 to {} extents, e.g. \"u8[720,1280,4]\"",
        name, text, types, max_rank));
}

}  // namespace

plane plane_from_text(const std::string& name, std::string_view text) {
    plane p;
    p.name = name;
    const std::size_t open = text.find('[');
    if (open == std::string_view::npos || text.back() != ']') refuse(name, text);
    bool known = false;
    for_each_element([&](element e) {
        if (text.substr(0, open) == name_of(e)) p.type = e, known = true;
    });
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
