#pragma once
// What `carousel validate` and `--dry-run` print: the pipeline as it was understood.

#include <string>
#include <vector>

#include "core/json.hpp"
#include "spec/describe.hpp"
#include "spec/pipeline_file.hpp"
#include "supervisor/plan/run_setup.hpp"

namespace carousel::supervisor {

inline constexpr std::size_t paper_columns = 110;  ///< how wide texts are where there is no terminal

/// Stages, what they read, write and run, in lines of at most `width` columns. No device is looked for.
[[nodiscard]] std::string plan_text(const pipeline& p, const std::vector<stage_description>& all,
                                    std::size_t width = paper_columns);
[[nodiscard]] nlohmann::json plan_json(const pipeline& p, const std::vector<stage_description>& all);

/// What plan_text can't know without the machine: the devices that were chosen, rings and assets with the
/// memory that they take, how the run would end and where its report would go.
[[nodiscard]] std::string placement_text(const run_setup& s, std::size_t width = paper_columns);

/// "carousel.image.rgba8 {color: u8[720][1280][4]}"; "-" for none.
[[nodiscard]] std::string format_text(const nlohmann::json& format);

}  // namespace carousel::supervisor
