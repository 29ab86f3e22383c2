#pragma once
// Checks on the text of a TOML file that the TOML library itself does not make.

#include <string>

namespace carousel::supervisor {

/// Throws config_error with the place for a control character, or a key with more parts than the permitted
/// nesting depth of settings.
void check_toml_text(const std::string& text, const std::string& file);

}  // namespace carousel::supervisor
