#pragma once
// Conversions of structs and enums whose members are described with Boost.Describe: a struct is converted to
// a JSON object with one key per described member, and an enumerator to its name. The description stands
// after the definition, in the same namespace:
//   struct tap_request { std::string stage; };
//   BOOST_DESCRIBE_STRUCT(tap_request, (), (stage))
// Reading ignores unknown keys and throws json_field_error, which names the field, if a value has the wrong
// type or is not in the range of the member's type. A missing key is an error unless the member is a
// std::optional or the struct's field_rules permit a missing member.

#include <boost/describe/class.hpp>
#include <boost/describe/members.hpp>
#include <boost/mp11/algorithm.hpp>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/enum_names.hpp"
#include "core/json.hpp"

namespace carousel {

template <typename T>
concept described_struct = std::is_class_v<T> && boost::describe::has_describe_members<T>::value;

/// The rules by which a struct is converted, if they differ from the default. The struct specifies them as
/// its member `static constexpr field_rules rules{...}`.
struct field_rules {
    bool missing_is_default = false;  ///< reading: a missing member keeps its initial value
    /// like missing_is_default; in addition, writing omits a member that has its initial value
    bool sparse = false;
    bool empty_is_null = false;  ///< true: an empty std::optional is written as null; false: it is omitted
};

/// A member of a struct is missing in a JSON object, or its value can't be converted.
class json_field_error : public nlohmann::json::exception {
public:
    explicit json_field_error(const std::string& what) : exception(0, what.c_str()) {}
};

/// Calls f for each described member of T, in order: `name` and `pointer`.
template <described_struct T, typename F>
constexpr void for_each_field(F&& f) {
    boost::mp11::mp_for_each<
        boost::describe::describe_members<T, boost::describe::mod_public | boost::describe::mod_inherited>>(
        std::forward<F>(f));
}

/// Throws json_field_error if `object` is not an object, or lacks one of these keys.
void require_fields(const nlohmann::json& object, std::initializer_list<const char*> names);

namespace detail {

template <typename T>
inline constexpr bool is_optional = false;
template <typename T>
inline constexpr bool is_optional<std::optional<T>> = true;

template <typename T>
concept not_json = !std::is_same_v<T, nlohmann::json>;

template <typename T>
constexpr field_rules rules_of() {
    if constexpr (requires { T::rules; })
        return T::rules;
    else
        return {};
}

/// Must be called in a catch block. Converts the json::exception that is being handled into a
/// json_field_error of that field, and throws it.
[[noreturn]] void throw_for_field(const char* field);

template <typename F>
void read_field(const nlohmann::json& object, const char* name, F& to, bool may_be_missing) {
    const auto at = object.find(name);
    if (at == object.end()) {
        if (!may_be_missing && !is_optional<F>) require_fields(object, {name});
        return;
    }
    try {
        at->get_to(to);
    } catch (const nlohmann::json::exception&) {
        throw_for_field(name);
    }
}

}  // namespace detail

/// Reads all members that can be read: a member whose key is missing or has another type keeps its value.
/// Members that are described structs are read in the same way. In a vector, elements that can't be read are
/// left out. A std::optional is read entirely or becomes empty. Never throws json::exception.
template <described_struct T>
void read_known_fields(const nlohmann::json& object, T& to);

namespace detail {

template <typename F>
void read_known(const nlohmann::json& value, F& to) {
    try {
        value.get_to(to);
    } catch (const nlohmann::json::exception&) {
        if constexpr (is_optional<F>) to.reset();
    }
}
template <described_struct F>
void read_known(const nlohmann::json& value, F& to) {
    read_known_fields(value, to);
}
template <typename F>
void read_known(const nlohmann::json& value, std::vector<F>& to) {
    to.clear();
    if (!value.is_array()) return;
    for (const nlohmann::json& each : value) {
        if constexpr (described_struct<F>) {
            if (each.is_object()) read_known_fields(each, to.emplace_back());
        } else {
            std::optional<F> element;
            read_known(each, element);
            if (element) to.push_back(std::move(*element));
        }
    }
}

}  // namespace detail

template <described_struct T>
void read_known_fields(const nlohmann::json& object, T& to) {
    if (!object.is_object()) return;
    for_each_field<T>([&](auto field) {
        if (const auto at = object.find(field.name); at != object.end())
            detail::read_known(*at, to.*field.pointer);
    });
}

/// A described struct that is one kind of message on a socket. In its JSON, the value of the key "type" is
/// T::type.
template <typename T>
concept tagged_message = described_struct<T> && requires {
    std::string_view(T::type);
};

template <tagged_message T>
[[nodiscard]] nlohmann::json write_message(const T& message) {
    nlohmann::json j = message;
    j["type"] = T::type;
    return j;
}

/// True if the message's "type" is the type of one of the alternatives of `Variant`.
template <typename Variant>
[[nodiscard]] bool is_message_of(const nlohmann::json& message) {
    bool is = false;
    boost::mp11::mp_for_each<boost::mp11::mp_transform<std::type_identity, Variant>>([&](auto each) {
        const auto type = message.find("type");
        is = is || (type != message.end() && *type == decltype(each)::type::type);
    });
    return is;
}

/// Throws json_field_error if `object` has a key that is a field of `Other` and not of `T`.
template <described_struct T, described_struct Other>
void refuse_fields_of(const nlohmann::json& object) {
    for_each_field<Other>([&](auto field) {
        bool own = false;
        for_each_field<T>([&](auto each) { own = own || std::string_view(each.name) == field.name; });
        if (!own && object.contains(field.name))
            throw json_field_error(std::string("\"") + field.name + "\" is not a field of \"" + T::type +
                                   "\"");
    });
}

/// Reads the message as the alternative of `Variant` whose type equals the message's "type". Ignores keys
/// that no alternative has. Throws json_field_error for an unknown type, and for a field that only messages
/// of another type have, because the sender of such a field expects an effect that this message does not
/// have.
template <typename Variant>
[[nodiscard]] Variant read_message(const nlohmann::json& message) {
    using alternatives = boost::mp11::mp_transform<std::type_identity, Variant>;
    require_fields(message, {"type"});
    std::optional<Variant> read;
    std::vector<std::string> types;
    const auto& type = message["type"].get_ref<const std::string&>();
    boost::mp11::mp_for_each<alternatives>([&](auto each) {
        using alternative = typename decltype(each)::type;
        types.emplace_back(alternative::type);
        if (type != alternative::type) return;
        boost::mp11::mp_for_each<alternatives>(
            [&](auto other) { refuse_fields_of<alternative, typename decltype(other)::type>(message); });
        read = message.get<alternative>();
    });
    if (!read) throw json_field_error("\"type\": " + unknown_name_text(type, types));
    return std::move(*read);
}

}  // namespace carousel

/// Converts an empty std::optional to JSON null, and null to an empty std::optional. This serializer does not
/// apply to std::optional<json>, which is constructed from a value instead of converted.
template <carousel::detail::not_json T>
struct nlohmann::adl_serializer<std::optional<T>> {
    static void to_json(nlohmann::json& value, const std::optional<T>& from) {
        if (from)
            value = *from;
        else
            value = nullptr;
    }
    static void from_json(const nlohmann::json& value, std::optional<T>& to) {
        if (value.is_null())
            to.reset();
        else
            value.get_to(to.emplace());
    }
};

template <carousel::described_enum E>
struct nlohmann::adl_serializer<E> {
    static void to_json(nlohmann::json& value, E from) { value = carousel::enum_name(from); }
    static void from_json(const nlohmann::json& value, E& to) {
        const auto& name = value.get_ref<const std::string&>();
        const std::optional<E> named = carousel::enum_named<E>(name);
        if (!named)
            throw carousel::json_field_error(carousel::unknown_name_text(name, carousel::enum_names<E>()));
        to = *named;
    }
};

template <carousel::described_struct T>
struct nlohmann::adl_serializer<T> {
    static void to_json(nlohmann::json& value, const T& from) {
        constexpr bool sparse = carousel::detail::rules_of<T>().sparse;
        constexpr bool empty_is_null = carousel::detail::rules_of<T>().empty_is_null;
        value = nlohmann::json::object();
        carousel::for_each_field<T>([&](auto field) {
            const auto& member = from.*field.pointer;
            constexpr bool optional = carousel::detail::is_optional<std::remove_cvref_t<decltype(member)>>;
            if constexpr (sparse)
                if (member == T().*field.pointer) return;
            if constexpr (optional && !empty_is_null)
                if (!member) return;
            value[field.name] = member;
        });
    }
    static void from_json(const nlohmann::json& value, T& to) {
        constexpr carousel::field_rules rules = carousel::detail::rules_of<T>();
        const bool may_be_missing = rules.missing_is_default || rules.sparse;
        carousel::require_fields(value, {});
        carousel::for_each_field<T>([&](auto field) {
            carousel::detail::read_field(value, field.name, to.*field.pointer, may_be_missing);
        });
    }
};
