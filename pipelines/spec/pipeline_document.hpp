#pragma once
// A pipeline file as it was written: sections, keys, values and their places. Values are not interpreted
// here; overrides from the command line are applied to the sections that contain their keys. Internal to the
// reading of pipeline files (pipeline_file.hpp).

#include <map>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "spec/pipeline_file.hpp"

namespace carousel::supervisor {

using document_entry = placed_value;

struct document_section {
    std::string title;  ///< "[pipeline]", "stage \"vertex\"", for messages
    source_position at;
    std::map<std::string, document_entry> keys;
    [[nodiscard]] const document_entry* find(const std::string& key) const noexcept;
    /// The value if it is a text, else "".
    [[nodiscard]] std::string text(const std::string& key) const;
};

struct document {
    std::string file;
    document_section pipeline, parameters;
    std::vector<document_section> stages;
    std::map<std::string, document_section> links;
    std::map<std::string, document_section> hosts;
};

/// Parses TOML. Throws config_error for syntax errors, unknown sections and values of a type that no key
/// takes.
[[nodiscard]] document read_document(const std::string& text, const std::string& file);

/// Sets a value. If the path does not lead to a key of a section, throws a config_error that names the
/// option.
void apply_override(document& d, const key_override& o);

/// Returns the title of a stage's section, for messages only; the title changes when the stage is renamed.
[[nodiscard]] std::string stage_title(const document_section& s, std::size_t index);

// Checks of the text of a TOML file, in addition to those of the TOML library.

/// Throws config_error with the place for a control character, or a key with more parts than the permitted
/// nesting depth of settings.
void check_toml_text(const std::string& text, const std::string& file);

// Checks of a pipeline file that involve more than one section: names, links, cycles, groups, limits.
// Internal to the reading of pipeline files.

/// Resolves inputs, fills has_output, input_indices and links, and puts producers before consumers. Throws
/// config_error.
void check_and_wire(pipeline& p);

}  // namespace carousel::supervisor
