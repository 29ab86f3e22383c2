#pragma once
// Options of the command line that override keys of a pipeline file. Values are checked together with those
// of the file; only their form is checked here.

#include <optional>
#include <string>
#include <vector>

#include "spec/pipeline_file.hpp"

namespace carousel::supervisor {

/// The options of `carousel run` and `carousel validate` that set keys, as they were written.
struct pipeline_options {
    std::optional<std::string> device, frames, fps, size, mesh, keep, name, allow_dead_letters, record_to;
    /// PATTERN: for all displays that write pictures; STAGE=PATTERN: for one display; the
    /// last pattern for a display applies
    std::vector<std::string> out;
    std::vector<std::string> record;  ///< stages whose rings are recorded
    std::vector<std::string> set;     ///< KEY=VALUE; applied first, in order, so the other options take
                                      ///< precedence
    bool insecure = false;            ///< sets insecure = true for all hosts
};

/// If a form cannot be parsed, throws a config_error that names the option.
[[nodiscard]] std::vector<key_override> overrides_from(const pipeline_options& o);

/// Returns the same options as words of a command line, for a supervisor that reads the file on another host.
[[nodiscard]] std::vector<std::string> words_of(const pipeline_options& o);

/// Parses a value as in a pipeline file (TOML); a bare word is a text. "[640, 480]", "1000", "true",
/// "torus-knots", "".
[[nodiscard]] nlohmann::json value_from(const std::string& text);

/// Parses seconds, 0 or more. Throws config_error, which names the option.
[[nodiscard]] f64 seconds_from(const std::string& option, const std::string& text);

}  // namespace carousel::supervisor
