#pragma once
// A file of its owner's alone (mode 0600) that holds what several hosts know and nobody else.

#include <string>

namespace carousel {

/// Its text without the line's end. `what` names it in messages: "the token of a link". Throws config_error:
/// it isn't there, isn't this user's, others may read it, or it holds fewer than 16 bytes.
[[nodiscard]] std::string read_secret(const std::string& path, const std::string& what);
/// Makes it whole (temporary file, rename), mode 0600. Throws output_error.
void write_secret(const std::string& path, const std::string& secret);
/// Fresh, from the kernel's random numbers: 64 hexadecimal digits. Throws shm_error.
[[nodiscard]] std::string new_secret();

}  // namespace carousel
