#pragma once
// What the command line says about a pipeline file, as overrides of its keys. Values are checked where the
// file's are; here only their form is.

#include <optional>
#include <string>
#include <vector>

#include "spec/pipeline_file.hpp"

namespace carousel::supervisor {

/// The options of `carousel run` and `carousel validate` that stand for keys, as they were written.
struct pipeline_options {
    std::optional<std::string> device, frames, fps, size, mesh, keep, name, allow_dead_letters, record_to;
    /// PATTERN: of all displays that write pictures; STAGE=PATTERN: of one; the later wins
    std::vector<std::string> out;
    std::vector<std::string> record;  ///< stages whose rings are recorded
    std::vector<std::string> set;     ///< KEY=VALUE; applied first, in order: the other options win
    bool insecure = false;            ///< insecure = true of all hosts
};

/// Throws config_error that names the option: a form that can't be read.
[[nodiscard]] std::vector<key_override> overrides_from(const pipeline_options& o);

/// The same options as words of a command line, for who reads the file on another host.
[[nodiscard]] std::vector<std::string> words_of(const pipeline_options& o);

/// A value as in a pipeline file (TOML); a bare word is a text. "[640, 480]", "1000", "true", "torus-knots",
/// "".
[[nodiscard]] nlohmann::json value_from(const std::string& text);

/// Seconds, 0 or more. Throws config_error that names the option.
[[nodiscard]] f64 seconds_from(const std::string& option, const std::string& text);

}  // namespace carousel::supervisor
