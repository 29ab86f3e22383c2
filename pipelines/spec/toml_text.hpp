#pragma once
// Checks on the text of a TOML file that the TOML library does not make itself.

#include <string>

namespace carousel::supervisor {

/// Throws config_error with the place for a control character, or a key of more parts than settings may nest.
void check_toml_text(const std::string& text, const std::string& file);

}  // namespace carousel::supervisor
