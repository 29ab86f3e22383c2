#pragma once
// The picture's view settings, below it: ring and plane, range of values and colour map, and the ring shown
// next to it.

#include "viewer/panels/panel.hpp"

namespace carousel::viewer {

/// Draws one row per picture.
void draw_style(model& m);
/// Height of the rows, pixels.
[[nodiscard]] f32 style_height(const model& m);
/// Returns true if it handled the key.
bool style_key(model& m, const key_press& k);

}  // namespace carousel::viewer
