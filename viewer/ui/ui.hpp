#pragma once
// Small widgets that the panels share. Every button has a name, under which tests find its rectangle, and
// says its key.

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
/// Rectangles of the frame that is being drawn; begin_marks() forgets those of the last one.
void begin_marks();
[[nodiscard]] const std::vector<widget>& marks() noexcept;
/// Notes the last item, or a rectangle, under a name.
void mark(std::string_view name);
void mark(std::string_view name, ImVec2 low, ImVec2 high);

/// A button named NAME; `keys` ("K") and `help` make its tooltip.
bool button(std::string_view name, const char* label, const char* keys, const char* help, bool danger = false,
            bool enabled = true);
/// A button that stays down.
bool toggle(std::string_view name, const char* label, const char* keys, const char* help, bool& value);
/// Text at the right edge of the present table cell.
void right_text(std::string_view text, ImU32 color = 0);
void text(std::string_view text, ImU32 color = 0);
void small_text(std::string_view text, ImU32 color = 0);
/// A tooltip for the last item.
void tip(std::string_view text);
/// Shortened with "..." to fit `width` pixels in the present font.
[[nodiscard]] std::string fitted(std::string_view text, f32 width);

/// "59.8", "1234": a rate or a time with three digits that matter; "-" when it isn't known.
[[nodiscard]] std::string number(f64 value, bool known = true);
/// "12 s", "3 min 05 s".
[[nodiscard]] std::string duration(f64 seconds);
/// "3.5 MiB".
[[nodiscard]] std::string bytes(f64 count);

}  // namespace carousel::viewer::ui
