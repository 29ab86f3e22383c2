#pragma once
// Requests to the dashboard: the checks of each request, the choice of the picture, and the parameters.

#include <nlohmann/json_fwd.hpp>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "viewer/watch/picture_choice.hpp"
#include "viewer/web/watcher.hpp"

namespace carousel::viewer::web {

// The checks that a request passes before it is answered. The dashboard is for the users of this machine. If
// a request's Host header is neither an IP address nor a name of this machine, the header contains the name
// of another site, which resolves to this machine's address (DNS rebinding). Such a request is refused,
// except for paths that any monitoring system may read. Actions also need the token, which no other site
// knows (core/secret.hpp).

/// True if `host`, the value of the Host header, is an IP address, "localhost", this machine's own name or
/// one of `names` (--http-host), with or without a port. Case is ignored.
[[nodiscard]] bool is_own_host(std::string_view host, const std::vector<std::string>& names = {});
/// True for /metrics, /healthz and /readyz, which are answered whatever Host the request has.
[[nodiscard]] bool is_open_to_any_host(std::string_view path) noexcept;

/// A request target in one of the forms that a server must accept (RFC 9112, 3.2).
struct request_target {
    std::string_view authority;  ///< the host and port in a target of the absolute form, which override the
                                 ///< Host header; "" if the target has the origin form
    std::string_view path, query;
};
/// Splits "/status.json?x=1" or "http://host:8080/status.json?x=1"; nullopt for any other form.
[[nodiscard]] std::optional<request_target> split_target(std::string_view target) noexcept;

/// Returns the value of `key` in "a=1&b=2"; "" if it is missing. The value is not percent-decoded, because
/// values are hexadecimal tokens and numbers.
[[nodiscard]] std::string_view query_value(std::string_view query, std::string_view key) noexcept;

// The picture that the dashboard shows to all its viewers: a plane of a ring, its colours, and the ring whose
// picture is shown next to it.
// POST /picture {KEY: VALUE, ...}, with the token; a missing key keeps its value:
//   stage, plane: texts, "": the default; STAGE.OUTPUT names any output, also a stage's first one
//   compare, compare_plane: another ring; "": none
//   Each of the following also with the prefix compare_, for the second picture:
//   channel: "all" or one of the picture's "channels" · range: "auto", "extremes", "LOW..HIGH"
//   colours: "auto" or one of the picture's "maps" · exposure, tone_map: texts, for the map "light"
// Returns {ok, message}. "request" of the picture in /status.json has all of these keys.
// GET /pixel.json?x=X&y=Y, in pixels of the whole picture:
//   {stage, plane, x, y, frame, text}: the pixel's exact value, its position in its own picture, and its
//   frame; null: nothing is known there

struct picture_request {
    picture_choice what;
    picture_styles styles;
    bool operator==(const picture_request&) const = default;
};

[[nodiscard]] nlohmann::json picture_request_json(const picture_request& w);
/// Applies a request's body to `now`. `rings` maps every accepted name of a ring to the ring's own name. If
/// the body is invalid, returns nullopt and sets `why` to a sentence.
[[nodiscard]] std::optional<picture_request> read_picture_request(
    const std::string& body, const std::map<std::string, std::string>& rings, picture_request now,
    std::string& why);
[[nodiscard]] nlohmann::json shown_json(const shown_picture& p);
[[nodiscard]] std::string pixel_json(const std::optional<pointed_pixel>& p,
                                     const std::vector<shown_picture>& shown);

// The parameters of the watched run, for the dashboard and for programs.
// /parameters.json, and "parameters" of /status.json; null if the pipeline has none or its supervisor has not
// reported them yet:
//   type · number: changes since the start · from: the first frame of the newest set
//   fields [{name, kind "number" | "integer" | "flag" | "choice", count, initial [...] (a choice: its
//            index), low, high, usual_low, usual_high (equal: there is no usual range), step (0: none),
//            label, unit, role, below, choices [...]}]
//     each field has all keys, as in ring::parameter
//   values {name: value}: the values for future frames, in the form of POST /parameters
// POST /parameters {name: value, ...}, POST /parameters/reset: {ok, message, from}

[[nodiscard]] nlohmann::json parameters_of(const view& v);
[[nodiscard]] std::string parameters_json(const view& v);

/// Returns the values in a request's body, {name: value}. If the body contains none, returns null and sets
/// `why` to a sentence.
[[nodiscard]] nlohmann::json values_in(const std::string& body, std::string& why);

}  // namespace carousel::viewer::web
