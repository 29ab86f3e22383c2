#pragma once
// Secrets: tokens that are valid for one start of a program, and files with a secret that several hosts
// share.

#include <string>
#include <string_view>

namespace carousel {

// A secret that authorises its holder. The secret is created when the program starts, printed once, and
// compared in constant time.

/// Returns 32 hexadecimal digits from the kernel's random numbers. Throws shm_error.
[[nodiscard]] std::string new_token();
/// The time of the comparison depends only on the lengths of the texts. An empty token matches nothing.
[[nodiscard]] bool same_token(std::string_view given, std::string_view token) noexcept;

// A file readable only by its owner (mode 0600) that holds a secret shared by several hosts.

/// Returns the secret without the line end. `what` names the file in messages: "the token of a link". Throws
/// config_error if the file can't be opened, is a symbolic link or not a regular file, belongs to another
/// user, is accessible to others, or holds fewer than 16 bytes.
[[nodiscard]] std::string read_secret(const std::string& path, const std::string& what);
/// Creates or replaces the file atomically (temporary file, rename), mode 0600. Throws output_error.
void write_secret(const std::string& path, const std::string& secret);
/// Returns a new secret from the kernel's random numbers: 64 hexadecimal digits. Throws shm_error.
[[nodiscard]] std::string new_secret();

}  // namespace carousel
