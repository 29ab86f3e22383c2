#pragma once
// Paths as given by a user: relative to the working directory, or as a pattern of file names.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace carousel {

/// Throws config_error if the working directory was deleted or can't be read.
[[nodiscard]] std::filesystem::path working_directory();
/// Returns `path` as an absolute path. A relative path may throw the errors of
/// working_directory().
[[nodiscard]] std::filesystem::path absolute_path(const std::filesystem::path& path);

/// Returns `text` with its percent signs escaped for a pattern of names ("frame_%05d.png"), in which "%%" is
/// a percent sign. Only the part that the user wrote is a pattern, so a folder that a program prepends to it
/// must be converted by this function.
[[nodiscard]] std::string as_pattern(std::string_view text);
/// The text of a pattern without a number placeholder; nothing if the pattern has one.
[[nodiscard]] std::optional<std::string> literal_text(std::string_view pattern);
/// Returns the pattern as an absolute path without "." and ".."; percent signs of the working directory are
/// escaped.
[[nodiscard]] std::string absolute_pattern(const std::string& pattern);

}  // namespace carousel
