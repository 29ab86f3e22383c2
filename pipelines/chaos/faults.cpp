#include "chaos/faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/errors.hpp"
#include "core/user_input.hpp"

namespace carousel::supervisor::chaos {
namespace {

std::string why_none(fault f, const std::string& file) {
    if (needs_gpu(f))
        return fmt::format("no stage of {} runs on a GPU here; choose --device cuda:0, or other faults",
                           file);
    const std::string dry_run_hint = fmt::format("(for the cause see `carousel run {} --dry-run`)", file);
    if (needs_input(f))
        return fmt::format("no stage of {} has a guarded input {}; choose other faults", file, dry_run_hint);
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

std::vector<std::string> fault_names() {
    std::vector<std::string> out;
    for (const fault_row& row : fault_table) out.emplace_back(row.name);
    return out;
}

std::vector<fault> faults_from(const std::string& text) {
    std::vector<fault> out;
    const std::vector<std::string> known = fault_names();
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find(',', at), text.size());
        const std::string word = text.substr(at, end - at);
        at = end + 1;
        const auto found = std::find(known.begin(), known.end(), word);
        if (found == known.end())
            throw config_error(fmt::format("--faults {}: unknown fault \"{}\"; expected a list of {}{}", text,
                                           word, fmt::join(known, ","), did_you_mean_clause(word, known)));
        const fault f = fault_table[static_cast<std::size_t>(found - known.begin())].kind;
        if (std::find(out.begin(), out.end(), f) == out.end()) out.push_back(f);
    }
    return out;
}

plan::plan(u64 seed, std::vector<fault> kinds, f64 mean_wait_s)
    : state_(seed), kinds_(std::move(kinds)), mean_wait_s_(mean_wait_s) {
    CAROUSEL_ASSERT(!kinds_.empty());
    for (const fault f : kinds_) weights_ += row_of(f).weight;
}

// Uses splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014), because the
// standard library's distributions differ between implementations.
u64 plan::random() noexcept {
    u64 z = state_ += 0x9e37'79b9'7f4a'7c15ULL;
    z = (z ^ z >> 30U) * 0xbf58'476d'1ce4'e5b9ULL;
    z = (z ^ z >> 27U) * 0x94d0'49bb'1331'11ebULL;
    return z ^ z >> 31U;
}
f64 plan::fraction() noexcept { return static_cast<f64>(random() >> 11U) * 0x1p-53; }

step plan::next() {
    step s;
    s.number = number_++;
    u64 at = random() % weights_;
    for (const fault f : kinds_) {
        s.kind = f;
        if (at < row_of(f).weight) break;
        at -= row_of(f).weight;
    }
    s.wait_s = -std::log1p(-fraction()) * mean_wait_s_;
    s.victim_index = random() >> 1U;
    s.supervisor_gap_s = fraction() * 0.4;
    return s;
}

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
