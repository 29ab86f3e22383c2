#include "bench/threads/shipped_stages.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "core/errors.hpp"
#include "stages/display/display.hpp"
#include "stages/fragment/fragment.hpp"
#include "stages/fused/fused.hpp"
#include "stages/geometry/geometry.hpp"
#include "stages/sharpen/sharpen.hpp"
#include "stages/vertex/vertex.hpp"

namespace carousel::bench {
namespace {

struct shipped_stage {
    const char* program;
    std::unique_ptr<stage> (*make)();
};
template <typename Stage>
std::unique_ptr<stage> made() {
    return std::make_unique<Stage>();
}
constexpr shipped_stage all[] = {
    {"carousel-geometry", made<stages::geometry>}, {"carousel-vertex", made<stages::vertex>},
    {"carousel-fragment", made<stages::fragment>}, {"carousel-fused", made<stages::fused>},
    {"carousel-sharpen", made<stages::sharpen>},   {"carousel-display", made<stages::display>},
};

}  // namespace

std::unique_ptr<stage> make_shipped_stage(const std::string& stage_name, const std::string& run) {
    const std::string program = std::filesystem::path(run).filename();
    std::string known;
    for (const shipped_stage& s : all) {
        if (program == s.program) return s.make();
        known += (known.empty() ? "" : ", ") + std::string(s.program);
    }
    throw config_error(fmt::format(
        "--modes none: stage \"{}\" runs {}; only stages that Carousel ships can run in one process: {}",
        stage_name, program, known));
}

}  // namespace carousel::bench
