#pragma once
// The parts of panels that are implemented in separate files.

#include <imgui.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "parameters/parameter_schema.hpp"
#include "viewer/panels/panel.hpp"
#include "viewer/session/model.hpp"

namespace carousel::viewer {

// The view settings, which are drawn below the picture: its ring and plane, the range of values, the colour
// map, and the ring whose picture is shown next to the first one.

/// Draws them, for one picture or two. Returns the number of lines, which depends on the width of the panel.
int draw_style(model& m);
/// Returns the height of the lines in pixels.
[[nodiscard]] f32 style_height(int lines);
/// Returns true if the settings have handled the key.
bool style_key(model& m, const key_press& k);

// Draws the notes over the picture: the scale of its values, the metadata of its frame, and the reason why
// two pictures do not show the same frame.

/// The picture's rectangle on the screen, and the rectangle of the panel in which the picture can be drawn.
struct picture_place {
    ImVec2 low, high;  ///< rectangle of the whole picture
    ImVec2 room_low, room_high;
};

void draw_notes(const picture_model& p, const picture_place& at, ImDrawList* d);

// The picture of one slot, in a window over the panels.

/// Opens the window for a slot, and requests the picture of the frame in it.
void open_slot(model& m, const telemetry::link_view& ring, u32 slot);
/// Returns true if the window was open.
bool close_slot(model& m);
void draw_slot_window(model& m, picture_store& store);

// The rows of remote hosts in the stages table, and the cells that are the same in the rows of this host and
// of remote hosts.

/// Returns the colour of a state: good for "running", bad for "failed", and so on.
[[nodiscard]] ImU32 state_color(const std::string& state);
/// Draws one bar with three shares of the time: busy, waiting for input, waiting for output. The rest of the
/// bar is idle time, or time that is not counted yet.
void draw_shares(const telemetry::stage_shares& t);
/// Draws the text right-aligned in the next column. If `color` is 0, uses the text colour.
void number_cell(const std::string& text, ImU32 color = 0);
/// Returns a number of bytes as text; "-" if there are none, or if their number is unknown.
[[nodiscard]] std::string bytes_text(u64 bytes);
/// Draws the buttons kill, stop or continue, and restart. `label`: the seat's name in commands. `alive`: true
/// if there is a process that can be signalled. `keys`: true if the user can select this seat and then send
/// commands to it by keys.
void stage_buttons(model& m, const std::string& label, bool alive, bool paused, bool keys);

/// Draws the other hosts of the pipeline, with one row per stage. The data comes from the reports of these
/// hosts' supervisors, because their control blocks are not available here.
void draw_remote_stages(model& m);
[[nodiscard]] std::size_t remote_rows(const model& m) noexcept;

// The controls for parameter fields. The kind, range and role of a field determine its control.

/// The row of numbers into which the user is typing. All its values are set at once when the user leaves the
/// row, so a number is never set while the user is still typing it.
struct typed_row {
    std::string field;  ///< "": none
    std::array<f64, 4> value{};
};

/// Returns false for two kinds of fields: hidden fields, which only files and `carousel set` set, and the
/// fields of the camera, which the orbit controls set.
[[nodiscard]] bool is_shown(const ring::parameter& p) noexcept;
[[nodiscard]] const char* label_of(const ring::parameter& p) noexcept;

/// Draws the control of a field; tests find it as "scene." + the field's name. `key` is the shortcut that the
/// tooltip shows. Returns true if the bytes have changed.
bool draw_parameter(const ring::parameter& p, std::span<std::byte> values, const char* key, typed_row& typed);

/// degrees_slider() draws a slider in degrees for a value in radians; number_slider() draws a plain slider.
/// Tests find them by `name`. Both return true if the value has changed.
bool degrees_slider(const char* label, const std::string& name, f32& radians, f32 low, f32 high);
bool number_slider(const char* label, const std::string& name, f32& value, f32 low, f32 high,
                   const char* format);

}  // namespace carousel::viewer
