#pragma once
// Keys whose values are words: one table {word, value} per key, used by parsing, messages and listings.

#include <array>
#include <cstddef>

namespace carousel::supervisor {

template <typename Value>
struct word_for {
    const char* word;
    Value value;
};

template <typename Value, std::size_t N>
using word_table = std::array<word_for<Value>, N>;

/// Returns the word of a value; "?": the table has no such value, e.g. a number outside the enumeration.
template <typename Value, std::size_t N>
[[nodiscard]] constexpr const char* word_of(const word_table<Value, N>& table, Value value) noexcept {
    for (const word_for<Value>& each : table)
        if (each.value == value) return each.word;
    return "?";
}

}  // namespace carousel::supervisor
