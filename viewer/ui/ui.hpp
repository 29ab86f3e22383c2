#pragma once
// Small widgets shared by the panels. Every button has a name, by which tests find its rectangle, and shows
// its key in the tooltip.

#include <imgui.h>

#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"

namespace carousel::viewer::ui {

struct widget {
    std::string name;
    f32 x = 0, y = 0, width = 0, height = 0;  ///< pixels of the window
};
/// marks() returns the widgets' rectangles in the frame that is being drawn; begin_marks() clears those of
/// the last frame.
void begin_marks();
[[nodiscard]] const std::vector<widget>& marks() noexcept;
/// Records under a name the rectangle of the last item, or the given rectangle.
void mark(std::string_view name);
void mark(std::string_view name, ImVec2 low, ImVec2 high);

/// Draws a button with the name `name`. The tooltip consists of `keys` ("K") and `help`. Returns true when
/// pressed.
bool button(std::string_view name, const char* label, const char* keys, const char* help, bool danger = false,
            bool enabled = true);
/// Draws a button that stays pressed while `value` is true.
bool toggle(std::string_view name, const char* label, const char* keys, const char* help, bool& value);
/// Draws text at the right edge of the current table cell.
void right_text(std::string_view text, ImU32 color = 0);
void text(std::string_view text, ImU32 color = 0);
void small_text(std::string_view text, ImU32 color = 0);
/// Sets the tooltip of the last item.
void tip(std::string_view text);
/// Returns the text; if it is wider than `width` pixels in the current font, it is shortened and ends with
/// "...".
[[nodiscard]] std::string fitted(std::string_view text, f32 width);

/// Returns a rate or a time as text with three significant digits: "59.8", "1234"; "-" if it is not known.
[[nodiscard]] std::string number(f64 value, bool known = true);
/// "12 s", "3 min 05 s".
[[nodiscard]] std::string duration(f64 seconds);
/// "3.5 MiB".
[[nodiscard]] std::string bytes(f64 count);

}  // namespace carousel::viewer::ui
