#pragma once
// The search in the events: which events contain the words that the user has typed. Pure functions.

#include <string_view>

namespace carousel::viewer {

/// Returns true if every word of `query`, which are separated by spaces, occurs in the event's text or in the
/// name of its stage. The case of ASCII characters is ignored; other bytes are compared unchanged. An
/// empty query matches every event.
[[nodiscard]] bool event_matches(std::string_view query, std::string_view stage,
                                 std::string_view text) noexcept;

}  // namespace carousel::viewer
