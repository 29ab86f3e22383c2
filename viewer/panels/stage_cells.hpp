#pragma once
// Cells of the stages table shared by rows of this host and of remote hosts, and the remote rows.

#include <imgui.h>

#include <string>

#include "viewer/session/model.hpp"

namespace carousel::viewer {

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

}  // namespace carousel::viewer
