#include "core/described.hpp"

#include "core/user_input.hpp"

namespace carousel {

using nlohmann::json;

std::string unknown_name_text(std::string_view name, const std::vector<std::string>& known) {
    std::string text = "unknown \"" + std::string(name) + "\"; expected ";
    for (std::size_t k = 0; k < known.size(); ++k)
        text.append(k == 0 ? "" : k + 1 == known.size() ? " or " : ", ").append(known[k]);
    return text + did_you_mean_clause(name, known);
}

void require_fields(const json& object, std::initializer_list<const char*> names) {
    if (!object.is_object())
        throw json_field_error(std::string("expected an object, found a value of type ") +
                               object.type_name());
    for (const char* name : names)
        if (!object.contains(name)) throw json_field_error("\"" + std::string(name) + "\" is missing");
}

namespace detail {

void throw_for_field(const char* field) {
    try {
        throw;
    } catch (const json::exception& e) {
        throw json_field_error("\"" + std::string(field) + "\": " + e.what());
    }
}

}  // namespace detail
}  // namespace carousel
