#pragma once
// The plan of a run for its readers: as the text of `carousel validate` and `--dry-run`, and its links as
// `ps` lists them.

#include <string>
#include <vector>

#include "control/ps_message.hpp"
#include "core/json.hpp"
#include "spec/describe.hpp"
#include "spec/pipeline_file.hpp"
#include "supervisor/plan/run_setup.hpp"

namespace carousel::supervisor {

// The text that `carousel validate` and `--dry-run` print. It shows the pipeline as it was parsed.

inline constexpr std::size_t paper_columns = 110;  ///< width of the texts if the output is not a terminal

/// Returns a text in lines of at most `width` columns: for each stage, what it reads, writes and runs. Does
/// not search for devices.
[[nodiscard]] std::string plan_text(const pipeline& p, const std::vector<stage_description>& all,
                                    std::size_t width = paper_columns);
[[nodiscard]] nlohmann::json plan_json(const pipeline& p, const std::vector<stage_description>& all);

/// Returns the part of the text that depends on the machine: the chosen devices, rings and assets with their
/// memory, how the run would end and where its report would be written.
[[nodiscard]] std::string placement_text(const run_setup& s, std::size_t width = paper_columns);

/// "carousel.image.rgba8 {color: u8[720][1280][4]}"; "-" for none.
[[nodiscard]] std::string format_text(const nlohmann::json& format);

// The links of a run in the form in which `ps` lists them: each ring with its format, memory, size and
// readers.

[[nodiscard]] std::vector<run::ps_link> links_of(const run_setup& s);

}  // namespace carousel::supervisor
