#pragma once
// Plain text tables, and human-readable numbers.

#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::supervisor {

/// Columns as wide as their widest cell, two blanks between them, no trailing blanks.
class table {
public:
    /// A header that begins with '>' makes its column right-aligned.
    explicit table(std::vector<std::string> headers);
    /// Missing cells are empty; extra cells are an error (assertion).
    void add(std::vector<std::string> cells);
    [[nodiscard]] std::string text() const;
    /// One step of shrinking for a narrow screen: reduces the column with this header to as little as `least`
    /// characters; 0: removes the column.
    struct sacrifice {
        const char* header;
        std::size_t least = 0;
    };
    /// Applies the steps in order until the lines are at most `width` columns wide (0: no limit). Truncated
    /// cells end with an ellipsis.
    void fit(std::size_t width, const std::vector<sacrifice>& order);
    [[nodiscard]] bool has(const std::string& header) const noexcept;
    [[nodiscard]] bool empty() const noexcept { return rows_.empty(); }

private:
    [[nodiscard]] std::vector<std::size_t> widths() const;
    void drop(std::size_t column);
    std::vector<std::string> headers_;
    std::vector<bool> right_;
    std::vector<std::vector<std::string>> rows_;
};

[[nodiscard]] std::string human_bytes(u64 bytes);  ///< "512 B", "1.5 MiB"
[[nodiscard]] std::string human_seconds(f64 s);    ///< "0.4s", "12s", "3m 20s", "2h 5m", "3d 4h"
[[nodiscard]] std::string human_rate(f64 per_s);   ///< "0", "0.52", "59.9", "1204"
/// Number of columns of a UTF-8 text (one per code point), control characters as one.
[[nodiscard]] std::size_t width_of(const std::string& text) noexcept;
/// At most `width` columns of a text without colours; a truncated text ends with an ellipsis.
[[nodiscard]] std::string shortened(const std::string& text, std::size_t width);
/// The text in lines of at most `width` columns, broken at blanks, or after a slash or comma if there is no
/// blank; lines after the first begin with `indent` blanks.
[[nodiscard]] std::string wrapped(const std::string& text, std::size_t width, std::size_t indent);
/// The text with control characters, which could move a terminal's cursor, replaced by '?'.
[[nodiscard]] std::string printable(const std::string& text);

}  // namespace carousel::supervisor
