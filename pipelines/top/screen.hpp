#pragma once
// The text of the interactive screen of `carousel top`, computed only from its arguments: the tables with the
// selected stage, as far as the screen has room, or what the user has opened instead; and the lines with the
// keys at the bottom.

#include <string>
#include <vector>

#include "top/interaction.hpp"
#include "top/top.hpp"

namespace carousel::supervisor {

/// Returns the last lines of the screen: the question or the result, if any, and the keys. At most a third of
/// `rows`, but at least one line.
[[nodiscard]] std::vector<std::string> footer_lines(const interaction& ui, bool color, std::size_t width,
                                                    std::size_t rows);

/// Returns the lines above the footer, at most in.rows of them. `text`: the lines of the output that is shown
/// in mode text.
[[nodiscard]] std::vector<std::string> body_lines(top_input in, interaction& ui,
                                                  const std::vector<std::string>& text);

/// Appends the footer so that it ends at the last row of the screen.
[[nodiscard]] std::vector<std::string> with_footer(std::vector<std::string> body,
                                                   const std::vector<std::string>& footer, std::size_t rows);

}  // namespace carousel::supervisor
