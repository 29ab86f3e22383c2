#pragma once
// The parts of panels that have files of their own.

#include <imgui.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "parameters/parameter_schema.hpp"
#include "viewer/panels/panel.hpp"
#include "viewer/session/model.hpp"

namespace carousel::viewer {

// The picture's view settings, below it: ring and plane, range of values and colour map, and the ring shown
// next to it.

/// Draws one row per picture.
void draw_style(model& m);
/// Height of the rows, pixels.
[[nodiscard]] f32 style_height(const model& m);
/// Returns true if it handled the key.
bool style_key(model& m, const key_press& k);

// Draws the notes over the picture: the scale of its values, the metadata of its frame, and the reason why
// two pictures do not show the same frame.

/// The picture's rectangle on the screen, and the panel's room for it.
struct picture_place {
    ImVec2 low, high;  ///< of the whole picture
    ImVec2 room_low, room_high;
};

void draw_notes(const picture_model& p, const picture_place& at, ImDrawList* d);

// Cells of the stages table shared by rows of this host and of remote hosts, and the remote rows.

/// The colour of a state: "running" is good, "failed" is bad, ...
[[nodiscard]] ImU32 state_color(const std::string& state);
/// One bar of the shares busy, waiting for input, waiting for output; the rest is idle or not yet counted.
void draw_shares(const telemetry::stage_shares& t);
/// Right-aligned in the next column. `color` 0: the text colour.
void number_cell(const std::string& text, ImU32 color = 0);
/// "-" if there are none, or their number is unknown.
[[nodiscard]] std::string bytes_text(u64 bytes);
/// Draws the buttons kill, stop or continue, and restart. `label`: the seat's name in commands. `alive`:
/// there is a process that can be signalled. `keys`: the seat can be selected for keys.
void stage_buttons(model& m, const std::string& label, bool alive, bool paused, bool keys);

/// Draws the other hosts of the pipeline with one row per stage, as their supervisors report them: their
/// control blocks are not available here.
void draw_remote_stages(model& m);
[[nodiscard]] std::size_t remote_rows(const model& m) noexcept;

// The controls for parameter fields, selected by kind, range and role.

/// The text being typed into a row of numbers. The row is set as a whole when the user leaves it, never
/// partially typed.
struct typed_row {
    std::string field;  ///< "": none
    std::array<f64, 4> value{};
};

/// Returns false for hidden fields (which only files and `carousel set` use) and for the camera fields that
/// the orbit controls.
[[nodiscard]] bool is_shown(const ring::parameter& p) noexcept;
[[nodiscard]] const char* label_of(const ring::parameter& p) noexcept;

/// Draws the control, marked "scene." + its name. `key`: the shortcut, for the tooltip. Returns true if the
/// bytes changed.
bool draw_parameter(const ring::parameter& p, std::span<std::byte> values, const char* key, typed_row& typed);

/// A slider in degrees for a value in radians, and a plain slider. Marked as `name`. Return true if the value
/// changed.
bool degrees_slider(const char* label, const std::string& name, f32& radians, f32 low, f32 high);
bool number_slider(const char* label, const std::string& name, f32& value, f32 low, f32 high,
                   const char* format);

}  // namespace carousel::viewer
