#pragma once
// Tables of the keys of a section of a pipeline file: each row describes how one key is read and printed, its
// valid values and its meaning. Messages, `validate --json`, `carousel explain` and the reference of keys
// (pipelines/docs/keys.md) are made from these tables. Internal to the reading of pipeline files.

#include <cstddef>
#include <string>
#include <vector>

#include "spec/pipeline_keys.hpp"
#include "spec/section_reader.hpp"

namespace carousel::supervisor {

/// The values that a key accepts: a range of numbers, the words of a table, or a text that describes other
/// values.
class valid_values {
public:
    using words_function = std::string (*)();
    constexpr valid_values(const number_range* range) noexcept : range_(range) {}
    constexpr valid_values(words_function words) noexcept : words_(words) {}
    constexpr valid_values(const char* text) noexcept : text_(text) {}

    [[nodiscard]] constexpr const number_range* range() const noexcept { return range_; }
    [[nodiscard]] std::string text() const {
        return range_ != nullptr ? range_->text() : words_ != nullptr ? words_() : text_;
    }

private:
    const number_range* range_ = nullptr;
    words_function words_ = nullptr;
    const char* text_ = "";
};

/// Returns the words of a table as a file spells them: `"process" or "mps"`.
template <const auto& table>
[[nodiscard]] std::string words_of() {
    std::string text;
    for (std::size_t k = 0; k < table.size(); ++k)
        text += std::string(k == 0 ? "" : k + 1 == table.size() ? " or " : ", ") + '"' + table[k].word + '"';
    return text;
}

template <typename Spec>
struct key_row {
    const char* key;
    void (*read)(section_reader& r, const char* key, Spec& to);  ///< the value in `to` is the default
    nlohmann::json (*value)(const Spec& from);
    valid_values values;
    const char* meaning;
    /// Description of the default; null: the default is the value that a default-constructed Spec has.
    const char* otherwise = nullptr;
};

template <typename Spec, std::size_t N>
void read_all(const key_row<Spec> (&rows)[N], section_reader& r, Spec& to) {
    for (const key_row<Spec>& row : rows) row.read(r, row.key, to);
}

template <typename Spec, std::size_t N>
[[nodiscard]] nlohmann::json values_of(const key_row<Spec> (&rows)[N], const Spec& from) {
    nlohmann::json out = nlohmann::json::object();
    for (const key_row<Spec>& row : rows) out[row.key] = row.value(from);
    return out;
}

/// Appends a description of each row of the table.
template <typename Spec, std::size_t N>
void describe_all(const key_row<Spec> (&rows)[N], const char* section, std::vector<key_description>& to) {
    const Spec fresh{};
    for (const key_row<Spec>& row : rows)
        to.push_back({section, row.key, row.values.range(), row.values.text(),
                      row.otherwise != nullptr ? row.otherwise : '`' + row.value(fresh).dump() + '`',
                      row.meaning});
}

}  // namespace carousel::supervisor
