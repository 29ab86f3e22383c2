#pragma once
// Cells of the table of stages that rows of this host and of others share, and the rows of the others.

#include <imgui.h>

#include <string>

#include "viewer/session/model.hpp"

namespace carousel::viewer {

/// "running" is good, "failed" is bad, ...
[[nodiscard]] ImU32 state_color(const std::string& state);
/// Busy, waiting for input, waiting for output: shares of one bar; what is missing is idle or not yet
/// counted.
void draw_shares(const telemetry::stage_shares& t);
/// In the next column, at its right end; 0: in the colour of text.
void number_cell(const std::string& text, ImU32 color = 0);
/// Kill, stop or cont., restart. `alive`: there is a process to be hit.
void stage_buttons(model& m, u32 seat, const std::string& label, bool alive, bool paused);
void stage_buttons(model& m, const remote_seat& seat, bool alive);

/// The other hosts of the pipeline with their stages, a row each, as their supervisors tell: there is no
/// control block of theirs here.
void draw_remote_stages(model& m);
[[nodiscard]] std::size_t remote_rows(const model& m) noexcept;

}  // namespace carousel::viewer
