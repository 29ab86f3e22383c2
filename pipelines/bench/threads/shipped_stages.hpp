#pragma once
// The classes of the shipped stages, by program name.

#include <memory>
#include <string>

#include <carousel/stage.hpp>

namespace carousel::bench {

/// `run`: as in a pipeline file, the program's name or a path to it. Throws config_error for any other
/// program, because its class is not part of this program.
[[nodiscard]] std::unique_ptr<stage> make_shipped_stage(const std::string& stage_name,
                                                        const std::string& run);

}  // namespace carousel::bench
