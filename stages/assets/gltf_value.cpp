#include <cmath>

#include <fmt/format.h>

#include "stages/assets/gltf_document.hpp"
#include "stages/sdk/configuration.hpp"

namespace carousel::stages {
namespace {

bool is_whole(const nlohmann::json& j, u64 low, u64 high) {
    return j.is_number_unsigned() && j.get<u64>() >= low && j.get<u64>() <= high;
}

/// A value for a message, at most 80 characters long.
std::string shown(const nlohmann::json& j) {
    return j.is_structured() ? (j.is_array() ? "[...]" : "{...}")
                             : j.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace).substr(0, 80);
}

}  // namespace

void gltf_value::refuse(std::string_view why) const {
    throw settings_error("mesh", fmt::format("{}: {}", place_, why));
}

const nlohmann::json* gltf_value::get(const char* key) const {
    const auto found = json_->find(key);
    return found == json_->end() ? nullptr : &*found;
}

bool gltf_value::is_number(const char* key) const {
    const nlohmann::json* const j = get(key);
    return j != nullptr && j->is_number();
}

const nlohmann::json& gltf_value::array(const char* key) const {
    static const nlohmann::json none = nlohmann::json::array();
    const nlohmann::json* const j = get(key);
    if (j != nullptr && !j->is_array()) {
        refuse(fmt::format("\"{}\" = {}: expected a list", key, shown(*j)));
    }
    return j != nullptr ? *j : none;
}

std::optional<gltf_value> gltf_value::find(const char* key) const {
    const nlohmann::json* const j = get(key);
    if (j == nullptr) {
        return std::nullopt;
    }
    if (!j->is_object()) {
        refuse(fmt::format("\"{}\" = {}: expected an object", key, shown(*j)));
    }
    return gltf_value(*j, fmt::format("{}: {}", place_, key));
}

gltf_value gltf_value::member(const char* key) const {
    auto found = find(key);
    if (!found) {
        refuse(fmt::format("it has no \"{}\"", key));
    }
    return *std::move(found);
}

u64 gltf_value::integer(const char* key, u64 low, u64 high) const {
    const nlohmann::json* const j = get(key);
    if (j == nullptr) {
        refuse(fmt::format("it has no \"{}\"", key));
    }
    if (!is_whole(*j, low, high)) {
        refuse(fmt::format("\"{}\" = {}: expected a whole number from {} to {}", key, shown(*j), low, high));
    }
    return j->get<u64>();
}

u64 gltf_value::integer_or(const char* key, u64 otherwise, u64 low, u64 high) const {
    return get(key) == nullptr ? otherwise : integer(key, low, high);
}

std::string gltf_value::text_or(const char* key, const std::string& otherwise) const {
    const nlohmann::json* const j = get(key);
    if (j != nullptr && !j->is_string()) {
        refuse(fmt::format("\"{}\" = {}: expected a text", key, shown(*j)));
    }
    return j != nullptr ? j->get<std::string>() : otherwise;
}

bool gltf_value::flag_or(const char* key, bool otherwise) const {
    const nlohmann::json* const j = get(key);
    if (j != nullptr && !j->is_boolean()) {
        refuse(fmt::format("\"{}\" = {}: expected true or false", key, shown(*j)));
    }
    return j != nullptr ? j->get<bool>() : otherwise;
}

f64 gltf_value::number_or(const char* key, f64 otherwise) const {
    const nlohmann::json* const j = get(key);
    if (j == nullptr) {
        return otherwise;
    }
    if (!j->is_number() || !std::isfinite(j->get<f64>())) {
        refuse(fmt::format("\"{}\" = {}: expected a finite number", key, shown(*j)));
    }
    return j->get<f64>();
}

bool gltf_value::numbers(const char* key, std::span<f64> out) const {
    if (get(key) == nullptr) {
        return false;
    }
    const nlohmann::json& j = array(key);
    bool sound = j.size() == out.size();
    for (std::size_t i = 0; sound && i < out.size(); ++i) {
        sound = j[i].is_number();
        out[i] = sound ? j[i].get<f64>() : 0.0;
        sound = sound && std::isfinite(out[i]);
    }
    if (!sound) {
        refuse(fmt::format("\"{}\": expected {} finite numbers", key, out.size()));
    }
    return true;
}

std::vector<f32> gltf_value::number_list(const char* key, u64 most) const {
    const u64 size = count(key);
    if (size > most) refuse(fmt::format("\"{}\" has {} numbers; at most {} are expected", key, size, most));
    std::vector<f32> out(size);
    if (size > 0) read_floats(*this, key, out);
    return out;
}

std::optional<gltf_value> gltf_value::extension(const char* name) const {
    const auto extensions = find("extensions");
    return extensions ? extensions->find(name) : std::nullopt;
}

u64 gltf_value::count(const char* key) const { return array(key).size(); }

gltf_value gltf_value::at(const char* key, u64 i) const {
    gltf_value v(array(key)[i], fmt::format("{}: {}[{}]", place_, key, i));
    if (!v.json_->is_object()) {
        v.refuse(fmt::format("{}: expected an object", shown(*v.json_)));
    }
    return v;
}

u64 gltf_value::integer_at(const char* key, u64 i, u64 high) const {
    const nlohmann::json& j = array(key)[i];
    if (!is_whole(j, 0, high)) {
        refuse(fmt::format("\"{}\"[{}] = {}: expected a whole number from 0 to {}", key, i, shown(j), high));
    }
    return j.get<u64>();
}

std::string gltf_value::text_at(const char* key, u64 i) const {
    const nlohmann::json& j = array(key)[i];
    if (!j.is_string()) {
        refuse(fmt::format("\"{}\"[{}] = {}: expected a text", key, i, shown(j)));
    }
    return j.get<std::string>();
}

f32 number_within(const gltf_value& from, const char* key, f64 otherwise, f64 low, f64 high) {
    const f64 x = from.number_or(key, otherwise);
    if (!(x >= low && x <= high))
        from.refuse(fmt::format("\"{}\" = {}: expected a number from {} to {}", key, x, low, high));
    return static_cast<f32>(x);
}

void read_floats(const gltf_value& from, const char* key, std::span<f32> out) {
    std::vector<f64> exact(out.size());
    if (!from.numbers(key, exact)) return;
    for (std::size_t k = 0; k < out.size(); ++k) {
        if (!(std::abs(exact[k]) <= largest_float))
            from.refuse(fmt::format("\"{}\": {} is out of the range of a float", key, exact[k]));
        out[k] = static_cast<f32>(exact[k]);
    }
}

}  // namespace carousel::stages
