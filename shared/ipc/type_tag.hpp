#pragma once
// A tag for the element type of a queue: a number that two programs can compare. If only sizes were compared,
// a struct of two floats would be accepted as a u64. The tag 0 stands for a type without a usable name, and
// matches any type of the same size.

#include <string_view>
#include <type_traits>

#include "core/types.hpp"

namespace carousel::ipc {
namespace detail {

template <class T>
[[nodiscard]] constexpr std::string_view name_of_type() {
    const std::string_view all = __PRETTY_FUNCTION__;  // "... [with T = scan::sample; ...]"
    const auto begin = all.find("T = ") + 4;
    return all.substr(begin, all.find_first_of(";]", begin) - begin);
}

}  // namespace detail

/// Returns the tag of a name: of a class without its namespace, or "i", "u", "f" for a kind of number.
[[nodiscard]] constexpr u64 tag_of_name(std::string_view name) {
    u64 tag = 0xCBF2'9CE4'8422'2325;
    for (const char c : name) tag = (tag ^ static_cast<u8>(c)) * 0x100'0000'01B3;
    return tag;
}

/// The tag of a class is computed from its name without its namespace, because programs may declare the class
/// in different namespaces. The tag of a number type is computed from its kind, because compilers spell the
/// names of number types differently.
template <class T>
[[nodiscard]] constexpr u64 type_tag() {
    if constexpr (std::is_arithmetic_v<T>)
        return tag_of_name(std::is_floating_point_v<T> ? "f" : std::is_signed_v<T> ? "i" : "u");
    std::string_view name = detail::name_of_type<T>();
    if (name.find_first_of("<{") != std::string_view::npos) return 0;
    if (const auto at = name.rfind("::"); at != std::string_view::npos) name.remove_prefix(at + 2);
    return tag_of_name(name);
}

}  // namespace carousel::ipc
