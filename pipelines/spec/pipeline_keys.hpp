#pragma once
// The keys of a pipeline file: one table per section, with a row for each key: how it is read and how its
// value is printed. All lists of keys (messages, `validate --json`, the identity of a run) are made from
// these tables. Checks that involve more than one section are in pipeline_check.hpp.

#include "spec/number_range.hpp"
#include "spec/pipeline_document.hpp"

namespace carousel::supervisor {

inline constexpr u32 max_extent = 16384;  ///< pixels per side: the kernels' limit
inline constexpr u32 max_in_flight = 16, max_instances = 16;
/// Numbers of frames have 40 bits in some words of the control block.
inline constexpr u64 max_frames = 1'000'000'000'000;
inline constexpr std::size_t max_name = 47;  ///< the control block's fields

/// The stage keys that the supervisor knows; all others are for the stage itself.
[[nodiscard]] const std::vector<std::string>& stage_keys();

/// A key whose value is a number, or may be one.
struct numeric_key {
    std::string section, key;  ///< "[pipeline]", "fps"
    number_range range;
};
/// All numeric keys, in the order of the sections.
[[nodiscard]] const std::vector<numeric_key>& numeric_keys();

void read_pipeline_keys(const document_section& s, pipeline& p);
/// `p` has the defaults.
[[nodiscard]] stage_spec read_stage_keys(const document_section& s, const pipeline& p);
[[nodiscard]] link_spec read_link_keys(const document_section& s);

/// The value of every key, defaults included, by its name and spelled as in the file.
[[nodiscard]] nlohmann::json values_of(const pipeline_spec& p);
[[nodiscard]] nlohmann::json values_of(const stage_spec& s);
[[nodiscard]] nlohmann::json values_of(const link_spec& l);

}  // namespace carousel::supervisor
