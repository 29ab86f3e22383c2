#pragma once
// Draws the notes over the picture: the scale of its values, the metadata of its frame, and the reason why
// two pictures do not show the same frame.

#include <imgui.h>

#include "viewer/session/model.hpp"

namespace carousel::viewer {

/// The picture's rectangle on the screen, and the panel's room for it.
struct picture_place {
    ImVec2 low, high;  ///< of the whole picture
    ImVec2 room_low, room_high;
};

void draw_notes(const picture_model& p, const picture_place& at, ImDrawList* d);

}  // namespace carousel::viewer
