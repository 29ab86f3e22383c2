#pragma once
// Parses JSON text from a socket, a file or another program. The library parses any nesting without
// recursion, but it copies, compares and prints a value recursively. A text of 120 KB with 60,000 nested
// arrays would therefore overflow the stack of a process that handles the parsed value. These functions are
// therefore the only place that parses JSON; they limit the size and the nesting of the text before the
// library reads it.

#include <cstddef>
#include <string>
#include <string_view>

#include "core/json.hpp"
#include "core/types.hpp"

namespace carousel {

/// The limits of one channel.
struct json_limits {
    std::size_t bytes;  ///< length of the text
    u32 depth;          ///< nesting depth of arrays and objects
};

/// Largest nesting depth of any text.
inline constexpr u32 max_json_depth = 64;
/// Largest nesting depth of settings and parameters of a pipeline file. Messages and documents that contain
/// such settings may have a greater depth.
inline constexpr u32 max_settings_depth = 16;

/// The limits per kind of channel. A request may be forwarded to the supervisor of another host and be saved
/// in a document of the run, so the limits of each channel below are larger than those of the channel above
/// it.
namespace json_channel {
inline constexpr json_limits message{200 * 1024, 32};  ///< one datagram of a local socket, or one HTTP body
inline constexpr json_limits host_message{std::size_t{16} << 20U, 48};  ///< message between two supervisors
/// A file that a Carousel program has written, or the output of a program that it has started.
inline constexpr json_limits document{std::size_t{64} << 20U, max_json_depth};
/// A file of the user that may be large: a model, a trace.
inline constexpr json_limits asset{std::size_t{1} << 30U, max_json_depth};
}  // namespace json_channel

/// The text exceeds its limits.
class json_limit_error : public nlohmann::json::exception {
public:
    explicit json_limit_error(const std::string& what) : exception(0, what.c_str()) {}
};

/// Returns the value of `text`. Throws nlohmann::json::exception if the text is not JSON or exceeds the
/// limits.
[[nodiscard]] nlohmann::json parse_json(std::string_view text, const json_limits& limits);
/// Returns the value of `text`, or a discarded value (neither an object nor an array) if parse_json would
/// throw.
[[nodiscard]] nlohmann::json parse_json_or_discard(std::string_view text, const json_limits& limits);
/// Returns the value of a document, or a discarded value if the file can't be read or parsed.
[[nodiscard]] nlohmann::json read_json_file(const std::string& path);
/// Returns the number of nested arrays and objects; 0 for a number or a string.
[[nodiscard]] u32 json_depth(const nlohmann::json& value);

}  // namespace carousel
