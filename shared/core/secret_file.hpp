#pragma once
// A file readable only by its owner (mode 0600) that holds a secret shared by several hosts.

#include <string>

namespace carousel {

/// Returns the secret without the line end. `what` names the file in messages: "the token of a link". Throws
/// config_error if the file can't be opened, is a symbolic link or not a regular file, belongs to another
/// user, is accessible to others, or holds fewer than 16 bytes.
[[nodiscard]] std::string read_secret(const std::string& path, const std::string& what);
/// Creates or replaces the file atomically (temporary file, rename), mode 0600. Throws output_error.
void write_secret(const std::string& path, const std::string& secret);
/// Returns a new secret from the kernel's random numbers: 64 hexadecimal digits. Throws shm_error.
[[nodiscard]] std::string new_secret();

}  // namespace carousel
