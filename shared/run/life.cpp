#include "run/life.hpp"

#include <fmt/format.h>

#include <optional>

#include "core/errors.hpp"
#include "telemetry/run_life.hpp"

namespace carousel::run {
namespace {

bool goes_on_alone(const record& r) {
    try {
        return telemetry::living_stages(shm::segment::observe(r.run_id).block()) > 0;
    } catch (const error&) {
        return false;
    }
}

}  // namespace

std::vector<record> watchable_runs() {
    std::vector<record> runs = recorded_runs();
    std::erase_if(runs, [](const record& r) { return !is_alive(r) && !goes_on_alone(r); });
    return runs;
}

life_report look_after(record& r, const shm::control_block& block) {
    if (const std::optional<int> code = telemetry::end_of(block))
        return {life::over, 0, fmt::format("exit code {}", *code)};
    std::optional<record> present = read_record(r.folder);
    const bool replaced = present && present->run_id != r.run_id;
    if (present && !replaced) r = std::move(*present);  // perhaps of another supervisor
    if (!replaced && is_alive(r)) return {};
    const u32 stages = telemetry::living_stages(block);
    // The supervisor may have said its last word, and gone, since we looked for it.
    if (const std::optional<int> code = telemetry::end_of(block))
        return {life::over, 0, fmt::format("exit code {}", *code)};
    if (replaced) return {life::over, 0, "a new run has taken its place"};
    if (stages > 0) return {life::alone, stages, ""};
    return {life::over, 0, "its supervisor was killed, and none of its stages is left"};
}

std::string alone_text(u32 stages) {
    return fmt::format("supervisor gone, {} {} on", stages, stages == 1 ? "stage goes" : "stages go");
}

std::optional<shm::segment> made_anew(const record& r, const shm::control_block& watched) noexcept try {
    shm::segment present = shm::segment::observe(r.run_id);
    if (!telemetry::is_made_anew(watched, present.block())) return std::nullopt;
    return present;
} catch (const error&) {
    return std::nullopt;
}

std::string made_anew_text(const record& r) { return r.name + " begins again with new memory"; }

}  // namespace carousel::run
