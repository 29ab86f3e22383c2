#include "run/liveness.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "core/errors.hpp"
#include "shm/runtime_folder.hpp"
#include "telemetry/run_end.hpp"

namespace carousel::run {
namespace {

namespace fs = std::filesystem;

bool is_port_lock(const std::string& name) { return name.starts_with("port-") && name.ends_with(".lock"); }

bool has_ports(const std::string& folder) {
    std::error_code failed;
    for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
        if (is_port_lock(at->path().filename().string()) && shm::is_flocked(at->path().string())) return true;
    return false;
}

/// `block`: null if it can't be read.
orphaned_stages orphaned_stages_in(const record& r, const shm::control_block* block) {
    if (!is_of_here(r)) return {shm::has_joined(r.folder) || shm::segment::is_held(r.run_id)};
    const u32 count = block != nullptr ? telemetry::living_stages(*block) : 0;
    return {count > 0, count};
}

}  // namespace

bool has_members(const std::string& folder) { return shm::has_joined(folder) || has_ports(folder); }

orphaned_stages orphaned_stages_of(const record& r) {
    try {
        return orphaned_stages_in(r, &shm::segment::observe(r.run_id).block());
    } catch (const error&) {  // there is no such block here, or it is of another version
        return orphaned_stages_in(r, nullptr);
    }
}

// A stage of an older build holds no lock, so only its entry shows that it is alive.
liveness liveness_of(const record& r, bool lock_is_ours) {
    if (is_alive(r, lock_is_ours)) return liveness::led;
    const bool any = has_members(r.folder) || shm::segment::is_held(r.run_id) || orphaned_stages_of(r).any;
    return any ? liveness::alone : liveness::over;
}

std::vector<record> watchable_runs() {
    std::vector<record> runs = recorded_runs();
    std::erase_if(runs, [](const record& r) { return !is_alive(r) && !orphaned_stages_of(r).any; });
    return runs;
}

liveness_report update_liveness(record& r, const shm::control_block& block) {
    if (const std::optional<int> code = telemetry::end_of(block))
        return {liveness::over, 0, fmt::format("exit code {}", *code)};
    std::optional<record> present = read_record(r.folder);
    const bool replaced = present && present->run_id != r.run_id;
    if (present && !replaced) r = std::move(*present);  // possibly of another supervisor
    if (!replaced && is_alive(r)) return {};
    const orphaned_stages stages = orphaned_stages_in(r, &block);
    // The supervisor may have recorded its end and exited since is_alive() was called.
    if (const std::optional<int> code = telemetry::end_of(block))
        return {liveness::over, 0, fmt::format("exit code {}", *code)};
    if (replaced) return {liveness::over, 0, "a new run has replaced it"};
    if (stages.any) return {liveness::alone, stages.count, ""};
    return {liveness::over, 0, "its supervisor was killed, and none of its stages is left"};
}

std::string alone_text(u32 stages) {
    if (stages == 0) return "no supervisor, stages continue";
    return fmt::format("no supervisor, {} {}", stages, stages == 1 ? "stage continues" : "stages continue");
}

std::optional<shm::segment> recreated_block(const record& r, const shm::control_block& watched) noexcept try {
    shm::segment present = shm::segment::observe(r.run_id);
    if (!telemetry::is_recreated(watched, present.block())) return std::nullopt;
    return present;
} catch (const error&) {
    return std::nullopt;
}

std::string recreated_text(const record& r) { return r.name + " restarts with new memory"; }

}  // namespace carousel::run
