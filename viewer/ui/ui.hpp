#pragma once
// Small widgets shared by the panels. Every button has a name, by which tests find its rectangle, and shows
// its key in the tooltip.

#include <imgui.h>

#include <span>
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
/// Sets the tooltip of the last item, also if the item is disabled.
void tip(std::string_view text);
/// Returns the text; if it is wider than `width` pixels in the current font, it is shortened and ends with
/// "...".
[[nodiscard]] std::string fitted(std::string_view text, f32 width);

/// Joins parts by " · ". Parts at the end for which there is no room in `width` pixels are omitted.
[[nodiscard]] std::string fitting_parts(std::span<const std::string> parts, f32 width);

/// Keeps the selected row of a scrolling list visible. Used by one list.
class row_follower {
public:
    /// To be called before the rows are drawn. `height`: the visible height of the list. Afterwards the list
    /// follows the selection in this frame if another row is selected or the height has changed, but not if
    /// the user has scrolled.
    void begin(u32 selected, f32 height) noexcept;
    /// To be called after the selected row was drawn between `low` and `high`, which are screen positions.
    /// `covered`: height of the rows at the top that do not scroll. Scrolls if the row is not wholly visible.
    void at_row(f32 low, f32 high, f32 covered = 0) const;

private:
    u32 selected_ = ~0U;
    f32 height_ = 0;
    bool follows_ = false;
};

/// Returns a rate or a time as text with three significant digits: "59.8", "1234"; "-" if it is not known.
[[nodiscard]] std::string number(f64 value, bool known = true);
/// "12 s", "3 min 05 s".
[[nodiscard]] std::string duration(f64 seconds);
/// "3.5 MiB".
[[nodiscard]] std::string bytes(f64 count);

}  // namespace carousel::viewer::ui
