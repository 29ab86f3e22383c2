#pragma once
// Includes the JSON library; no other file includes it. The library converts numbers by a cast: reading 1e30
// as a u64 is undefined behaviour, 2^32 + 1 read as a u32 becomes 1, and -1 read as a u64 becomes 2^64 - 1.
// The specialisation below checks every integer that is read from a value, so no reader of a message or file
// needs its own check. The specialisation must be visible wherever such a conversion is instantiated, which
// is why the library is included only here.

#include <cmath>
#include <concepts>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace carousel {

/// A number in a JSON value is not an integer or does not fit the type that it is read as.
class json_number_error : public nlohmann::json::exception {
public:
    explicit json_number_error(const std::string& what) : exception(0, what.c_str()) {}
};

template <typename T>
concept json_integer = std::integral<T> && !std::same_as<T, bool>;

/// True if `value` is an integer that `T` can represent. A number that is written with a fraction or an
/// exponent is accepted if its value is an integer of at most 2^53; above 2^53 several integers share a
/// representation.
template <json_integer T, typename Json>
[[nodiscard]] bool json_fits(const Json& value) {
    if (value.is_number_unsigned())
        return std::in_range<T>(*value.template get_ptr<const typename Json::number_unsigned_t*>());
    if (value.is_number_integer())
        return std::in_range<T>(*value.template get_ptr<const typename Json::number_integer_t*>());
    if (!value.is_number_float()) return false;
    const double number = *value.template get_ptr<const typename Json::number_float_t*>();
    return std::fabs(number) <= 0x1p53 && std::trunc(number) == number &&
           std::in_range<T>(static_cast<long long>(number));
}

}  // namespace carousel

template <carousel::json_integer T>
struct nlohmann::adl_serializer<T> {
    template <typename Json>
    static void from_json(const Json& value, T& to) {
        if (value.is_number() && !carousel::json_fits<T>(value))
            throw carousel::json_number_error("the number " + value.dump() + " is not an integer from " +
                                              std::to_string(std::numeric_limits<T>::min()) + " to " +
                                              std::to_string(std::numeric_limits<T>::max()));
        nlohmann::from_json(value, to);
    }
    template <typename Json>
    static void to_json(Json& value, T from) {
        nlohmann::to_json(value, from);
    }
};

namespace carousel {

/// Reads `object[key]` into `into`. Returns false, and leaves `into` unchanged, if `object` is not an object
/// or has no such key, or if the value has another type or is out of the type's range.
template <typename T>
bool read_member(const nlohmann::json& object, const char* key, T& into) {
    try {
        object.at(key).get_to(into);
        return true;
    } catch (const nlohmann::json::exception&) {
        return false;
    }
}

}  // namespace carousel
