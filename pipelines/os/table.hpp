#pragma once
// Plain text tables, and human-readable numbers.

#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"

namespace carousel::supervisor {

/// A text table. Each column is as wide as its widest cell; two blanks separate columns, and lines have no
/// trailing blanks.
class table {
public:
    /// A header that begins with '>' makes its column right-aligned.
    explicit table(std::vector<std::string> headers);
    /// Missing cells are empty; extra cells are an error (assertion).
    void add(std::vector<std::string> cells);
    [[nodiscard]] std::string text() const;
    /// One step that makes the table narrower: the column with this header is reduced to `least` characters
    /// or more; 0: the column is removed.
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
/// Returns the number of columns of a UTF-8 text: one per code point, also for control characters.
[[nodiscard]] std::size_t width_of(const std::string& text) noexcept;
/// Returns a text without colours, truncated to `width` columns; a truncated text ends with an ellipsis.
[[nodiscard]] std::string shortened(const std::string& text, std::size_t width);
/// Returns the text in lines of at most `width` columns. A line ends at a blank or, if it contains no blank,
/// after a slash or comma; lines after the first begin with `indent` blanks.
[[nodiscard]] std::string wrapped(const std::string& text, std::size_t width, std::size_t indent);
/// Returns the text with a visible escape, as \n or \x1b, instead of each control character that is not in
/// `keep`, because control characters could move a terminal's cursor or change its state. C1 controls are
/// escaped too, because some terminals interpret them.
[[nodiscard]] std::string printable(std::string_view text, std::string_view keep = "");

}  // namespace carousel::supervisor
