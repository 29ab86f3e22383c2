#include "chaos/choice.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/errors.hpp"

namespace carousel::supervisor::chaos {
namespace {

std::string why_none(fault f, const std::string& file) {
    if (needs_gpu(f))
        return fmt::format("no stage of {} runs on a GPU here; choose --device cuda:0, or other faults",
                           file);
    const std::string dry_run_hint = fmt::format("(for the cause see `carousel run {} --dry-run`)", file);
    if (needs_input(f))
        return fmt::format("no stage of {} has an input that is guarded {}; choose other faults", file,
                           dry_run_hint);
    if (needs_output(f))
        return fmt::format(
            "no stage of {} has gaps or canaries after the slots of its rings {}; choose other faults", file,
            dry_run_hint);
    return fmt::format(
        "each stage of {} can write to the whole control block (see block_guard of `carousel ps --json`); "
        "choose other faults",
        file);
}

}  // namespace

bool can_take(const victim& v, fault f) noexcept {
    return (!needs_gpu(f) || v.on_gpu) && (!needs_input(f) || v.guarded) && (!needs_output(f) || v.gapped) &&
           (f != fault::scribble_control || v.closed);
}

std::vector<fault> choose_kinds(const std::vector<fault>& requested, const std::vector<victim>& seats,
                                const std::string& file) {
    const auto any_can = [&](fault f) {
        return std::any_of(seats.begin(), seats.end(), [f](const victim& v) { return can_take(v, f); });
    };
    std::vector<fault> kinds = requested;
    if (requested.empty())
        for (const fault_row& row : fault_table)
            if (any_can(row.kind)) kinds.push_back(row.kind);
    for (const fault f : kinds)
        if (!any_can(f)) throw config_error(fmt::format("--faults {}: {}", name_of(f), why_none(f, file)));
    return kinds;
}

}  // namespace carousel::supervisor::chaos
