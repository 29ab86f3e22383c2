#pragma once
// How the picture is looked at, below it: which ring and plane, which range of values in which colours, and
// which other ring beside it.

#include "viewer/panels/panel.hpp"

namespace carousel::viewer {

/// A row a picture.
void draw_style(model& m);
/// What its rows take, pixels.
[[nodiscard]] f32 style_height(const model& m);
/// True: the key was one of these.
bool style_key(model& m, const key_press& k);

}  // namespace carousel::viewer
