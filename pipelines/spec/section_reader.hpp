#pragma once
// Typed reads from a section of a pipeline file, and the valid values of its numbers.

#include <set>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "spec/pipeline_document.hpp"
#include "spec/words.hpp"

namespace carousel::supervisor {

// The valid values of a numeric key of a pipeline file: the range that is checked, documented and printed.
// Bounds are exact: each of them is below 2^53.

struct number_range {
    f64 low = 0, high = 0;                                  ///< both included
    const char* unit = "";                                  ///< "ms", "frames/s"
    const char* zero = "";                                  ///< if not empty: 0 is also valid, and has this
                                                            ///< meaning
    const char* words = "";                                 ///< if not empty: these words are valid, too
    bool whole = true;                                      ///< integers only
    [[nodiscard]] bool contains(f64 value) const noexcept;  ///< false for NaN
    /// "a whole number from 10 to 3600000, or 0 for none"
    [[nodiscard]] std::string text() const;
};

// Typed reads from one section of a pipeline file; every error contains its place in the file. Internal to
// the reading of pipeline files.

class section_reader {
public:
    explicit section_reader(const document_section& s) : section_(&s) {}

    // Each function notes that the key is known, and returns the value or the fallback. Throws config_error
    // at the value's place.
    /// Returns a whole number within `range`.
    [[nodiscard]] u64 integer(const std::string& key, u64 fallback, const number_range& range);
    [[nodiscard]] f64 number(const std::string& key, f64 fallback, const number_range& range);
    [[nodiscard]] bool flag(const std::string& key, bool fallback);
    [[nodiscard]] std::string text(const std::string& key, const std::string& fallback,
                                   const std::string& expected = "a text in quotes");
    /// Returns one of the table's words.
    template <typename Value, std::size_t N>
    [[nodiscard]] Value choice(const std::string& key, Value fallback, const word_table<Value, N>& table) {
        std::vector<std::string> words;
        for (const word_for<Value>& each : table) words.emplace_back(each.word);
        const document_entry* e = take(key);
        return e == nullptr ? fallback : table[index_of(key, *e, words)].value;
    }
    [[nodiscard]] std::vector<std::string> texts(const std::string& key, const std::string& expected);

    /// Notes the key and returns its entry, or null.
    [[nodiscard]] const document_entry* take(const std::string& key);
    /// Throws for an unexpected value: "PLACE: KEY = VALUE: expected EXPECTED".
    [[noreturn]] static void refuse_value(const std::string& key, const document_entry& e,
                                          const std::string& expected);

    /// Throws for the first key that none of these functions has read.
    void refuse_unknown() const;
    [[nodiscard]] const std::set<std::string>& known() const noexcept { return known_; }
    [[nodiscard]] const document_section& section() const noexcept { return *section_; }

private:
    [[nodiscard]] static std::size_t index_of(const std::string& key, const document_entry& e,
                                              const std::vector<std::string>& words);

    const document_section* section_;
    std::set<std::string> known_;
};

}  // namespace carousel::supervisor
