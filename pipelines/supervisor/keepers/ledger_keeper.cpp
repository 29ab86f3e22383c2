#include "supervisor/keepers/ledger_keeper.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "ring/words.hpp"
#include "telemetry/ledger_fold.hpp"

namespace carousel::supervisor {
namespace {

bool is_left_out(const shm::stage_block& b, const shm::control_block& c) noexcept {
    for (u32 i = 0; i < std::min(b.inputs, shm::max_inputs); ++i) {
        if (b.input_link[i] >= shm::max_links || b.input_group[i] >= shm::max_blocking) continue;
        const u64 raw = ring::load(c.link[b.input_link[i]].group_state[b.input_group[i]]);
        if (ring::group_word::of(raw).state == ring::group_state::closed) return true;
    }
    return false;
}

}  // namespace

std::string not_counted(const run_setup& s, const shm::control_block& c, u32 stage) {
    if (s.stages[stage].has_output()) return "it is no sink";
    if (s.stages[stage].spec.latest()) return "it reads the newest frames only (group = \"latest\")";
    if (s.stages[stage].spec.skips()) return "frames pass it by while nobody is in it (vacant = \"skip\")";
    if (stage < shm::max_stages && is_left_out(c.stage[stage], c))
        return "it has failed and was left out (optional = true)";
    return "";
}

std::string ledger_keeper::found_committed(u32 stage, u32 seat, u32 epoch, u64 sequence) noexcept {
    if (stage >= setup_->stages.size() || setup_->stages[stage].has_output() ||
        setup_->stages[stage].spec.may_miss())
        return "";
    const std::string& name = setup_->stages[stage].spec.name;
    try {
        const bool told = telemetry::ledger_writer(telemetry::ledger_path(setup_->directory, name))
                              .tell_committed(sequence, telemetry::ledger_committer(seat, epoch));
        return told
                   ? ""
                   : fmt::format("{} has committed frame {} without a record of it: the frame counts as lost",
                                 name, sequence);
    } catch (const std::exception& e) {
        return fmt::format(
            "{}: frame {}, which it had committed when it died, can't be marked and counts as lost: {}", name,
            sequence, e.what());
    }
}

// Below the lowest frame that any counted sink has yet to deliver: a run that is built anew begins there, and
// all ledgers are cut there.
std::string ledger_keeper::tick(u64 now, const shm::control_block& c) {
    if (now - looked_ns_ < ns_per_s) return "";
    looked_ns_ = now;
    try {
        u64 below = ~u64{0};
        std::vector<std::string> ledgers;
        for (u32 k = 0; k < setup_->stages.size(); ++k) {
            if (!not_counted(*setup_, c, k).empty()) continue;
            ledgers.push_back(telemetry::ledger_path(setup_->directory, setup_->stages[k].spec.name));
            const auto reader = telemetry::ledger_reader::open(ledgers.back());
            const u64 kept_from = telemetry::folded_end(ledgers.back());
            if (!reader || reader->size() < kept_from + setup_->kept_records + telemetry::fold_step)
                return "";
            below = std::min(below, reader->first_undelivered(kept_from));
        }
        if (below <= setup_->kept_records) return "";
        for (const std::string& ledger : ledgers)
            telemetry::fold_ledger(ledger, below - setup_->kept_records);
    } catch (const error& e) {
        if (!failed_) {
            failed_ = true;  // once: it is tried again every second
            return fmt::format("{}; the ledger goes on unfolded and grows", e.what());
        }
    }
    return "";
}

}  // namespace carousel::supervisor
