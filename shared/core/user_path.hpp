#pragma once
// Paths as a user writes them: relative to the working directory, or as a pattern of names.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace carousel {

/// Throws config_error: the working directory was deleted, or can't be read.
[[nodiscard]] std::filesystem::path working_directory();
/// `path` from the root. Throws as working_directory() does, for a relative path only.
[[nodiscard]] std::filesystem::path absolute_path(const std::filesystem::path& path);

/// In a pattern of names ("frame_%05d.png") "%%" is a percent sign. Only what the user wrote is a pattern: a
/// folder that a program puts in front of it must pass through here.
[[nodiscard]] std::string as_pattern(std::string_view text);
/// The text of a pattern that has no number's place; nothing: it has one.
[[nodiscard]] std::optional<std::string> literal_text(std::string_view pattern);
/// A pattern from the root, without "." and "..": the working directory's percent signs stand for themselves.
[[nodiscard]] std::string absolute_pattern(const std::string& pattern);

}  // namespace carousel
