#include "spec/section_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/user_input.hpp"

namespace carousel::supervisor {
namespace {

constexpr std::size_t longest_shown = 80;

std::string shown(const nlohmann::json& value) {
    std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    if (text.size() > longest_shown) text = text.substr(0, longest_shown) + "...";
    return text;
}

}  // namespace

bool number_range::contains(f64 value) const noexcept {
    return (value >= low && value <= high) || (*zero != 0 && value == 0);
}

std::string number_range::text() const {
    const std::string of_zero = *zero != 0 ? fmt::format(", or 0 for {}", zero) : "";
    const std::string of_words = *words != 0 ? fmt::format(", or {}", words) : "";
    return whole ? fmt::format("a whole number from {:.0f} to {:.0f}{}{}", low, high, of_zero, of_words)
                 : fmt::format("a number from {} to {}{}{}", low, high, of_zero, of_words);
}

void section_reader::refuse_value(const std::string& key, const document_entry& e,
                                  const std::string& expected) {
    refuse(e.value_at, fmt::format("{} = {}: expected {}", key, shown(e.value), expected));
}

const document_entry* section_reader::take(const std::string& key) {
    known_.insert(key);
    return section_->find(key);
}

u64 section_reader::integer(const std::string& key, u64 fallback, const number_range& range) {
    const document_entry* e = take(key);
    if (e == nullptr) return fallback;
    if (!e->value.is_number_integer() || !range.contains(e->value.get<f64>()))
        refuse_value(key, *e, range.text());
    return e->value.get<u64>();
}

f64 section_reader::number(const std::string& key, f64 fallback, const number_range& range) {
    const document_entry* e = take(key);
    if (e == nullptr) return fallback;
    if (!e->value.is_number() || !range.contains(e->value.get<f64>())) refuse_value(key, *e, range.text());
    return e->value.get<f64>();
}

bool section_reader::flag(const std::string& key, bool fallback) {
    const document_entry* e = take(key);
    if (e == nullptr) return fallback;
    if (!e->value.is_boolean()) refuse_value(key, *e, "true or false");
    return e->value.get<bool>();
}

std::string section_reader::text(const std::string& key, const std::string& fallback,
                                 const std::string& expected) {
    const document_entry* e = take(key);
    if (e == nullptr) return fallback;
    if (!e->value.is_string()) refuse_value(key, *e, expected);
    return e->value.get<std::string>();
}

std::size_t section_reader::index_of(const std::string& key, const document_entry& e,
                                     const std::vector<std::string>& words) {
    const std::string expected = fmt::format("\"{}\"", fmt::join(words, "\" or \""));
    if (!e.value.is_string()) refuse_value(key, e, expected);
    const std::string word = e.value.get<std::string>();
    const auto at = std::find(words.begin(), words.end(), word);
    if (at == words.end()) refuse_value(key, e, expected + did_you_mean_clause(word, words));
    return static_cast<std::size_t>(at - words.begin());
}

std::vector<std::string> section_reader::texts(const std::string& key, const std::string& expected) {
    const document_entry* e = take(key);
    if (e == nullptr) return {};
    if (!e->value.is_array()) refuse_value(key, *e, expected);
    std::vector<std::string> out;
    for (const nlohmann::json& each : e->value) {
        if (!each.is_string()) refuse_value(key, *e, expected);
        out.push_back(each.get<std::string>());
    }
    return out;
}

void section_reader::refuse_unknown() const {
    const std::vector<std::string> known(known_.begin(), known_.end());
    for (const auto& [key, entry] : section_->keys) {
        if (known_.count(key) != 0) continue;
        refuse(entry.key_at, fmt::format("unknown key \"{}\" in {}; its keys are {}{}", key, section_->title,
                                         fmt::join(known, ", "), did_you_mean_clause(key, known)));
    }
}

}  // namespace carousel::supervisor
