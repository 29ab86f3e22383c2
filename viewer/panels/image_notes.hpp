#pragma once
// What stands in the picture: the scale of its values, what its frame carries, why two pictures are not of
// one frame.

#include <imgui.h>

#include "viewer/session/model.hpp"

namespace carousel::viewer {

/// Where the picture lies on the screen, and the panel's room for it.
struct picture_place {
    ImVec2 low, high;  ///< of the whole picture
    ImVec2 room_low, room_high;
};

void draw_notes(const picture_model& p, const picture_place& at, ImDrawList* d);

}  // namespace carousel::viewer
