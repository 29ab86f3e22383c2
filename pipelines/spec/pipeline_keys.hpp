#pragma once
// The keys of a pipeline file: their types, ranges and defaults, one section at a time. What depends on more than one section is
// in pipeline_check.hpp. Internal to the reading of pipeline files.

#include "spec/pipeline_document.hpp"

namespace carousel::supervisor {

inline constexpr u32 max_extent = 16384;  ///< pixels a side: the kernels' limit
inline constexpr u32 max_in_flight = 16, max_instances = 16;
inline constexpr u32 min_window = 8;         ///< its upper end is the control block's
inline constexpr std::size_t max_name = 47;  ///< the control block's fields

/// The stage keys that the supervisor knows; all others are the stage's own.
[[nodiscard]] const std::vector<std::string>& stage_keys();

void read_pipeline_keys(const document_section& s, pipeline& p);
/// `p` gives the defaults.
[[nodiscard]] stage_spec read_stage_keys(const document_section& s, const pipeline& p);
[[nodiscard]] link_spec read_link_keys(const document_section& s);

}  // namespace carousel::supervisor
