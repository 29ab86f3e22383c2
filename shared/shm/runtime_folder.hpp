#pragma once
// Folders of this user for runs and spaces, one per run and one per space, and the files in them.

#include <string>

namespace carousel::shm {

/// $XDG_RUNTIME_DIR/NAME if the variable names a folder of this user, otherwise /tmp/NAME-UID; not created.
[[nodiscard]] std::string runtime_folder(const std::string& name);
/// Creates a folder of this user with mode 0700, or checks an existing one. Throws shm_error if it belongs to
/// another user, is not a folder, or cannot be created.
void make_private_folder(const std::string& folder);
/// Writes a file of such a folder atomically (temporary file, rename), mode 0600: a reader finds either the
/// old or the new text, even if the writer is killed while writing. Throws shm_error.
void write_whole_file(const std::string& path, const std::string& text);

inline constexpr std::size_t longest_folder_name = 40;
/// True for a valid folder name: letters, digits, - _ and inner dots, at most 40 characters, no leading -.
[[nodiscard]] bool is_folder_name(const std::string& name) noexcept;

}  // namespace carousel::shm
