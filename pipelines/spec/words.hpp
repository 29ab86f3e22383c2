#pragma once
// Keys whose values are words: one table {word, value} per key, used by parsing, messages and listings.

#include <array>
#include <cstddef>

#include "core/types.hpp"

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

// The conditions under which a stage that has ended is started again.

/// Restart policy of a stage in the pipeline file.
enum class restart_policy : u8 { always, on_failure, no };
/// The words that the file uses.
inline constexpr word_table<restart_policy, 3> restart_words{{{"always", restart_policy::always},
                                                              {"on-failure", restart_policy::on_failure},
                                                              {"no", restart_policy::no}}};

}  // namespace carousel::supervisor
