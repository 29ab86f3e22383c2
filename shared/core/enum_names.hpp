#pragma once
// Names of enumerators. An enum is described after its definition, in the same namespace:
//   enum class link_kind : u8 { link, asset };
//   BOOST_DESCRIBE_ENUM(link_kind, link, asset)

#include <boost/describe/enum.hpp>
#include <boost/describe/enumerators.hpp>
#include <boost/mp11/algorithm.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace carousel {

template <typename E>
concept described_enum = std::is_enum_v<E> && boost::describe::has_describe_enumerators<E>::value;

/// The name of an enumerator; `otherwise` for a value that is not an enumerator.
template <described_enum E>
[[nodiscard]] constexpr const char* enum_name(E value, const char* otherwise = "?") noexcept {
    const char* name = otherwise;
    boost::mp11::mp_for_each<boost::describe::describe_enumerators<E>>([&](auto each) {
        if (each.value == value) name = each.name;
    });
    return name;
}

/// Returns the enumerator with this name, or nothing if there is none.
template <described_enum E>
[[nodiscard]] constexpr std::optional<E> enum_named(std::string_view name) noexcept {
    std::optional<E> value;
    boost::mp11::mp_for_each<boost::describe::describe_enumerators<E>>([&](auto each) {
        if (name == each.name) value = each.value;
    });
    return value;
}

template <described_enum E>
[[nodiscard]] std::vector<std::string> enum_names() {
    std::vector<std::string> names;
    boost::mp11::mp_for_each<boost::describe::describe_enumerators<E>>(
        [&](auto each) { names.emplace_back(each.name); });
    return names;
}

/// Returns a text like: unknown "cud"; expected cpu or cuda; did you mean "cuda"?
[[nodiscard]] std::string unknown_name_text(std::string_view name, const std::vector<std::string>& known);

}  // namespace carousel
