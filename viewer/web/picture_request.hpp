#pragma once
// Which picture the page shows, to all who look: which plane of which ring, in which colours, and which
// other beside it.
//
// POST /picture {KEY: VALUE, ...}, with the token; what isn't named stays as it is:
//   stage, plane: texts, "" as at first; STAGE.OUTPUT names any output, a first one, too
//   beside, beside_plane: another ring; "" none
//   range, beside_range: "auto", "extremes", "LOW..HIGH" · colours, beside_colours: "auto", "grey", "viridis"
// It answers {ok, message}. "request" of the picture in /status.json has these keys, all of them.
//
// GET /pixel.json?x=X&y=Y, pixels of the whole picture:
//   {stage, plane, x, y, frame, text}: what lies there, exactly, its own place, and of which frame it is;
//   null: nothing that is known

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
/// What a request's body changes. `rings`: the names that those of the run have, and to each the ring's own.
/// Nothing, with a sentence in `why`: it can't be.
[[nodiscard]] std::optional<picture_request> read_picture_request(
    const std::string& body, const std::map<std::string, std::string>& rings, picture_request now,
    std::string& why);
[[nodiscard]] nlohmann::json shown_json(const shown_picture& p);
[[nodiscard]] std::string pixel_json(const std::optional<pointed_pixel>& p,
                                     const std::vector<shown_picture>& shown);

}  // namespace carousel::viewer::web
