#pragma once
// The picture that the dashboard shows to all its viewers: the plane of a ring, its colours, and the ring
// shown next to it.
//
// POST /picture {KEY: VALUE, ...}, with the token; a missing key keeps its value:
//   stage, plane: texts, "": the default; STAGE.OUTPUT names any output, also a first one
//   compare, compare_plane: another ring; "": none
//   range, compare_range: "auto", "extremes", "LOW..HIGH" · colours, compare_colours: "auto", "grey",
//   "viridis"
// Returns {ok, message}. "request" of the picture in /status.json has all of these keys.
//
// GET /pixel.json?x=X&y=Y, in pixels of the whole picture:
//   {stage, plane, x, y, frame, text}: the pixel's exact value, its position in its own picture, and its
//   frame; null: nothing is known there

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "viewer/watch/picture_choice.hpp"

namespace carousel::viewer::web {

struct picture_request {
    picture_choice what;
    picture_styles styles;
    bool operator==(const picture_request&) const = default;
};

[[nodiscard]] nlohmann::json picture_request_json(const picture_request& w);
/// Applies a request's body to `now`. `rings`: maps every accepted name of a ring to the ring's own name.
/// Returns nullopt, with a sentence in `why`, if the body is invalid.
[[nodiscard]] std::optional<picture_request> read_picture_request(
    const std::string& body, const std::map<std::string, std::string>& rings, picture_request now,
    std::string& why);
[[nodiscard]] nlohmann::json shown_json(const shown_picture& p);
[[nodiscard]] std::string pixel_json(const std::optional<pointed_pixel>& p,
                                     const std::vector<shown_picture>& shown);

}  // namespace carousel::viewer::web
