#include "supervisor/stores/ledger_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "ledger/ledger_fold.hpp"

namespace carousel::supervisor {
namespace {

std::string ledger_of(const run_setup& s, u32 stage) {
    return telemetry::ledger_path(s.directory, s.stages[stage].spec.name);
}

}  // namespace

bool counts_frames(const stage_setup& st) { return st.is_sink() && !st.spec.may_miss(); }

std::string not_counted(const run_setup& s, u32 stage) {
    if (!s.stages[stage].is_sink()) return "it is not a sink";
    if (s.stages[stage].spec.latest()) return "it reads the newest frames only (group = \"latest\")";
    if (s.stages[stage].spec.skips()) return "frames skip it while it has no program (vacant = \"skip\")";
    if (telemetry::frame_claims::load(ledger_of(s, stage)).suspended())
        return "it has failed, and frames skip it (optional = true)";
    return "";
}

telemetry::undelivered_frame find_undelivered_here(const run_setup& s, u64 without_ledger) {
    std::vector<telemetry::counted_sink> sinks;
    for (const stage_setup& st : s.stages)
        if (counts_frames(st)) sinks.push_back({st.spec.name, without_ledger});
    return telemetry::find_undelivered(s.directory, sinks, 0);
}

void begin_claims(const run_setup& s) {
    for (u32 k = 0; k < s.stages.size(); ++k) {
        const bool never_claims = !counts_frames(s.stages[k]);
        const u64 every = s.stages[k].spec.every;
        if (!s.stages[k].is_sink() || (!never_claims && every == 1)) continue;
        telemetry::frame_claims claims = telemetry::frame_claims::load(ledger_of(s, k));
        if (claims.suspended() == never_claims && claims.every() == every) continue;
        claims.take_every(every);
        if (never_claims) claims.suspend(0);
        claims.save(ledger_of(s, k));
    }
}

void reset_claims(const run_setup& s, u32 stage, u64 first) {
    telemetry::frame_claims claims = telemetry::frame_claims::load(ledger_of(s, stage));
    claims.produced_again_from(first);
    claims.save(ledger_of(s, stage));
}

bool ledger_store::claim_suspended(u32 stage) {
    if (const auto known = suspended_.find(stage); known != suspended_.end()) return known->second;
    try {
        return suspended_[stage] = telemetry::frame_claims::load(ledger_of(*setup_, stage)).suspended();
    } catch (const error&) {
        suspended_.erase(stage);
        return false;  // retried at the next tick
    }
}

template <typename F>
std::string ledger_store::change_claim(u32 stage, F&& change) {
    const u64 now = now_ns();
    // at most one attempt per second, because each attempt writes a file
    if (claim_failed_ && now - claim_tried_ns_ < ns_per_s) return "";
    claim_tried_ns_ = now;
    try {
        telemetry::frame_claims claims = telemetry::frame_claims::load(ledger_of(*setup_, stage));
        change(claims);
        claims.save(ledger_of(*setup_, stage));
        suspended_[stage] = claims.suspended();
        claim_failed_ = false;
        return "";
    } catch (const error& e) {
        return std::exchange(claim_failed_, true)
                   ? ""
                   : fmt::format(
                         "{}: the range of frames that its ledger covers can't be written: {}; retrying",
                         setup_->stages[stage].spec.name, e.what());
    }
}

std::string ledger_store::suspend_claim(u32 stage, u64 first) {
    return change_claim(stage, [&](telemetry::frame_claims& claims) { claims.suspend(first); });
}

std::string ledger_store::resume_claim(u32 stage, u64 first) {
    return change_claim(stage, [&](telemetry::frame_claims& claims) { claims.resume(first); });
}

std::string ledger_store::found_committed(u32 stage, u32 seat, u32 epoch, u64 ring_sequence) noexcept {
    if (stage >= setup_->stages.size() || !counts_frames(setup_->stages[stage])) return "";
    const std::string& name = setup_->stages[stage].spec.name;
    try {
        const bool marked =
            telemetry::ledger_writer(telemetry::ledger_path(setup_->directory, name))
                .mark_committed_by_supervisor(ring_sequence, telemetry::ledger_committer(seat, epoch));
        return marked ? ""
                      : fmt::format(
                            "{} has committed frame {} without a ledger record, so the frame counts as lost",
                            name, ring_sequence);
    } catch (const std::exception& e) {
        return fmt::format(
            "{}: frame {}, which it committed before it died, can't be marked and counts as lost: {}", name,
            ring_sequence, e.what());
    }
}

// Folds the records below the lowest frame that any counted sink has not delivered yet: a rebuilt run starts
// at that frame, and all ledgers are truncated at it. The next frame that a sink with `every` takes may be
// far beyond the last frame that exists, so no sink's ledger is folded beyond the ledger's last record.
std::string ledger_store::tick(u64 now, u64 repeats_from) {
    if (now - checked_ns_ < ns_per_s) return "";
    checked_ns_ = now;
    try {
        u64 below = ~u64{0};
        std::vector<std::string> ledgers;
        for (u32 k = 0; k < setup_->stages.size(); ++k) {
            if (!counts_frames(setup_->stages[k]) || claim_suspended(k)) continue;
            ledgers.push_back(ledger_of(*setup_, k));
            const auto reader = telemetry::ledger_reader::open(ledgers.back());
            const u64 kept_from = telemetry::folded_end(ledgers.back());
            if (!reader || reader->size() < kept_from + setup_->kept_records + telemetry::fold_step)
                return "";
            below = std::min({below, reader->first_undelivered(kept_from), reader->size()});
        }
        if (below <= setup_->kept_records || ledgers.empty()) return "";
        const u64 all = below - setup_->kept_records;
        const u64 folded = std::min(all, std::max(repeats_from, all - std::min(all, most_for_repeats)));
        for (const std::string& ledger : ledgers) telemetry::fold_ledger(ledger, folded);
    } catch (const error& e) {
        if (!failed_) {
            failed_ = true;  // a failure is reported once, and retried every second
            return fmt::format("{}; the ledger is not compacted and grows", e.what());
        }
    }
    return "";
}

}  // namespace carousel::supervisor
