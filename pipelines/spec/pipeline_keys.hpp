#pragma once
// The keys of a pipeline file: one table per section (key_table.hpp), from which all lists of keys are made
// (messages, `validate --json`, the identity of a run, the reference). Checks that involve more than one
// section are in pipeline_document.hpp.

#include <optional>

#include "spec/pipeline_document.hpp"
#include "spec/section_reader.hpp"

namespace carousel::supervisor {

inline constexpr u32 max_extent = 16384;  ///< pixels per side: the kernels' limit
inline constexpr u32 max_in_flight = 16, max_instances = 16;
/// Numbers of frames have 40 bits in some words of the control block.
inline constexpr u64 max_frames = 1'000'000'000'000;
inline constexpr std::size_t max_name = 47;  ///< the control block's fields

/// The stage keys that the supervisor knows; all other keys are interpreted by the stage itself.
[[nodiscard]] const std::vector<std::string>& stage_keys();

/// Returns the number in the name of a GPU: 10 for "cuda:10". Returns nullopt if `device` is not "cuda:N"
/// with N of one or two digits and below 64.
[[nodiscard]] std::optional<u32> gpu_number(const std::string& device);

/// A key as the reference and `carousel explain` present it.
struct key_description {
    std::string section, key;   ///< "[pipeline]", "fps"
    const number_range* range;  ///< the range of a key whose value is a number, or may be one; otherwise null
    std::string values;         ///< the values that the key accepts: "a whole number from 1 to 16, or
                                ///< \"auto\""
    std::string default_value;  ///< the default as a file writes it, or a description of it: "the pipeline's"
    std::string meaning;        ///< one or two sentences
};
/// All keys, in the order of the sections. The settings of the stages' own programs are not included.
[[nodiscard]] const std::vector<key_description>& all_keys();
/// Returns the reference of all keys, in Markdown: pipelines/docs/keys.md.
[[nodiscard]] std::string key_reference();

void read_pipeline_keys(const document_section& s, pipeline& p);
/// `p` has the defaults.
[[nodiscard]] stage_spec read_stage_keys(const document_section& s, const pipeline& p);
[[nodiscard]] link_spec read_link_keys(const document_section& s);

/// Returns the value of every key, including defaults, by its name and spelled as in the file.
[[nodiscard]] nlohmann::json values_of(const pipeline_spec& p);
[[nodiscard]] nlohmann::json values_of(const stage_spec& s);
[[nodiscard]] nlohmann::json values_of(const link_spec& l);

}  // namespace carousel::supervisor
