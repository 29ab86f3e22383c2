#pragma once
// The settings of the stages, such as the materials or the strength of the sun: keys of the pipeline file,
// which do not change while a process runs. `carousel reload` changes them, by a restart of the stage.

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace carousel::viewer {

/// Keys and values as text, by the name of the stage. Stages without settings are missing.
using stage_settings = std::map<std::string, std::vector<std::pair<std::string, std::string>>>;

/// Reads pipeline.json of the run's folder. Empty if it can't be read.
[[nodiscard]] stage_settings read_stage_settings(const std::string& run_folder);

}  // namespace carousel::viewer
