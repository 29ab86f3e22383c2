// engine: a damaged control block, and a run that stalls. Any process of the user may have written anywhere
// in the block, so nothing in it is trusted: its static parts are compared with a copy, END and seats with
// what this process has set, and every word with the protocol (ring/check/block_check.hpp): once per second,
// after each death, and when nothing moves without a reason. A word with one flipped bit is repaired if the
// others determine its value, and a static part that no process acts on is restored from the copy
// (word_repairs.cpp). All other damage is repaired in one way: the block is rebuilt (rebuild.cpp). A run that
// is repaired three times without a frame in between ends.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "core/clock.hpp"
#include "ring/topology.hpp"
#include "supervisor/engine/engine.hpp"
#include "supervisor/engine/lost_frame.hpp"
#include "supervisor/processes/seat_commands.hpp"
#include "supervisor/processes/seat_state.hpp"
#include "supervisor/processes/stall_reasons.hpp"

namespace carousel::supervisor {
namespace {

constexpr u32 most_in_row = 3;
constexpr std::size_t max_logged_findings = 3, max_repair_records = 100;
constexpr u64 figures_every_ns = ns_per_s;

void append(std::vector<ring::finding>& all, std::vector<ring::finding> more) {
    all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

std::string listed(const std::vector<ring::finding>& found) {
    std::string text;
    for (std::size_t k = 0; k < std::min(found.size(), max_logged_findings); ++k)
        text += (k == 0 ? "" : "; ") + found[k].text();
    if (found.size() > max_logged_findings)
        text += fmt::format("; and {} more", found.size() - max_logged_findings);
    return text;
}

}  // namespace

/// Saves the copy that static parts are compared with.
void engine::save_published_block(const shm::control_block& c) {
    made_ = shm::make_private_block();
    shm::copy_words(*made_, c);
}

/// A supervisor that adopts a run computes the copy from its own plan; values that only the dead supervisor
/// knew come from the block. Memory handles arrive when the stages return.
void engine::update_published_block(const shm::control_block& c) {
    made_ = shm::make_private_block();
    made_->version = shm::control_version;
    made_->bytes = sizeof(shm::control_block);
    made_->uid = ::getuid();
    made_->created_ns = c.created_ns;
    run_id_.copy(made_->run_id, sizeof made_->run_id - 1);
    write_plan(*made_, c.first_ring_sequence, ring::end_unknown);
}

void engine::set_end(u64 end) {
    end_ = end;
    if (seats_) seats_->end = end;
}

/// Accepts the END that a stop has found in the words. Returns false if the value is impossible; the block is
/// then repaired.
bool engine::accept_end(u64 found) {
    constexpr u64 max_advance =
        1'000'000;  // no source advances further in one tick beyond the tail last seen of its ring
    u64 highest = 0;
    for (const u64 tail : seen_tails_) highest = std::max(highest, tail);
    if (found <= setup_->end && found >= highest && found <= highest + max_advance) {
        set_end(found);
        return true;
    }
    ++repairs_.damaged;
    const std::vector<ring::finding> findings{
        {"the run: end", fmt::format("was {}, but the rings are at {}", found, highest)}};
    repair(fmt::format("the control block is damaged ({})", listed(findings)), findings);
    return false;
}

// Tails only grow: the last value seen counts while a tail is damaged, until the end of a run.
bool engine::all_delivered() const noexcept {
    if (end_ == ring::end_unknown || end_ == ring::end_stopping) return false;
    for (u32 k = 0; k < made_->links; ++k) {
        const u64 seen = k < seen_tails_.size() ? seen_tails_[k] : 0;
        if (std::max(seen, ring::load(segment_->block().link[k].tail)) < end_) return false;
    }
    return true;
}

ring::known_run engine::what_is_known() const {
    ring::known_run known;
    known.end = end_;
    known.surplus = surplus();
    known.tails = seen_tails_;
    // A process may be interrupted, or end, between marking a frame and counting it: each seat and each
    // process that has died has two threads that can.
    if (deaths_then_ != ~u64{0})
        known.miscounted =
            2 * (u64{made_->seats} + seats_->account.deaths - std::min(deaths_then_, seats_->account.deaths));
    supervisor::fill_known_run(*seats_, known);
    return known;
}

std::vector<ring::finding> engine::check_block(bool words) const {
    std::vector<ring::finding> found = ring::check_parity(segment_->block(), *made_);
    // the consequences of a damaged word look like further damage
    append(found, check_without_parity(words && found.empty()));
    return found;
}

std::vector<ring::finding> engine::check_without_parity(bool words) const {
    const shm::control_block& c = segment_->block();
    const ring::known_run known = what_is_known();
    std::vector<ring::finding> found = ring::check_static(c, *made_);
    append(found, ring::check_known(c, *made_, known));
    if (ring::load(c.stop_asked) != (stop_requested_ ? 1 : 0))
        found.push_back({"the run: stop_asked", "has not the value that the supervisor set"});
    const u64 now = now_ns(), next = ring::load(c.next_source_ns),
              step = setup_->fps > 0 ? static_cast<u64>(1e9 / setup_->fps) : 0;
    if (step != 0 && next > now + 2 * step + ns_per_s)
        found.push_back({"the run: next_source_ns",
                         fmt::format("is {:.1f} s in the future, but frames are due every {:.3f} s",
                                     static_cast<f64>(next - now) / 1e9, static_cast<f64>(step) / 1e9)});
    if (words) append(found, ring::check_words(c, *made_, known));
    return found;
}

// Called in each tick, before any decision is based on the block.
void engine::watch_damage(u64 now) {
    const bool active = phase_ == phase::running || phase_ == phase::draining || phase_ == phase::leaving;
    if (!active || taking_over_since_ns_ != 0) {
        audit_.restart(now);
        return stall_.restart(now);
    }
    const bool damaged = repair_words();
    if (phase_ == phase::rebuilding || phase_ == phase::ending) return;
    repair_static_parts();
    if (const auto found = check_without_parity(false); !found.empty()) {
        ++repairs_.damaged;
        return repair(fmt::format("the control block is damaged ({})", listed(found)), found);
    }
    seen_tails_.resize(made_->links);
    for (u32 k = 0; k < made_->links; ++k) {
        const u64 tail = ring::load(segment_->block().link[k].tail);
        seen_tails_[k] = std::max(seen_tails_[k], tail);  // a damaged tail reads as 0
    }
    if (damaged) return;  // for a few checks
    saved_counters_.accept(segment_->block(), made_->stages);
    if (now - figures_at_ns_ > figures_every_ns) {
        saved_counters_.sample(segment_->block(), made_->stages);
        figures_at_ns_ = now;
    }
    if (phase_ != phase::leaving && audit_words(now)) return;
    if (phase_ != phase::leaving)
        watch_stall(now);
    else
        stall_.restart(now);
}

// True if a word is impossible; it is then repaired. A check takes a few hundred reads and never blocks.
bool engine::audit_words(u64 now) {
    if (seats_->account.deaths != audited_deaths_) audit_.request_audit(now);
    audited_deaths_ = seats_->account.deaths;
    if (!audit_.due(now)) return false;
    const std::vector<ring::finding> found = audit_.add_sample(check_block(true), now);
    if (found.empty()) return false;
    ++repairs_.damaged;
    repair(fmt::format("the control block is damaged ({})", listed(found)), found);
    return true;
}

void engine::watch_stall(u64 now) {
    u64 print = supervisor::fingerprint(*seats_);
    const auto mix = [&](u64 value) { print = (print ^ value) * 0x100'0000'01b3ULL; };
    for (u32 k = 0; k < made_->links; ++k) {
        mix(ring::load(segment_->block().link[k].tail));
        mix(ring::load(segment_->block().link[k].committed));
    }
    for (u32 k = 0; k < made_->stages; ++k) mix(ring::load(segment_->block().stage[k].counters.frames));
    stall_.leave_out(seats_->groups.consume_uncounted_ns(), now);
    stall_.add_sample(print, now);
    const u64 pace = setup_->fps > 0 ? static_cast<u64>(2e9 / setup_->fps) : 0;
    if (setup_->stall_timeout_ns() == 0 || stall_.quiet_ns(now) < setup_->stall_timeout_ns() + pace) {
        if (stall_.quiet_ns(now) == 0) stall_reason_.clear();
        return;
    }
    if (stall_.just_excused(setup_->stall_timeout_ns(), now)) return;
    if (const std::string why = undeliverable(); !why.empty()) {
        stall_.restart(now);
        return seats_->fail("carousel", why, exit_code::stage_failed);
    }
    if (const std::string why = supervisor::stall_reason(*seats_, now); !why.empty()) {
        if (why != stall_reason_)
            seats_->log_line(fmt::format("no frame has moved for {:.1f} s: {}",
                                         static_cast<f64>(stall_.quiet_ns(now)) / 1e9, why));
        stall_reason_ = why;
        return stall_.excuse(now);
    }
    if (!stall_.is_stalled(setup_->stall_timeout_ns(), now)) return;
    ++repairs_.stalls;
    const auto found = check_block(true);
    repair(fmt::format("no frame has moved for {:.1f} s, and no stage has a reason to wait; {}",
                       static_cast<f64>(stall_.quiet_ns(now)) / 1e9,
                       found.empty() ? "all words of the control block are valid, but no frame moves"
                                     : listed(found)),
           found);
}

/// Nothing has moved for a while. Returns a message if the cause is a frame that another host keeps until the
/// sinks here have it (release = "durable") and that can never be written here: both hosts would wait for
/// each other indefinitely.
std::string engine::undeliverable() const try {
    const bool kept_by_receiver =
        std::any_of(setup_->stages.begin(), setup_->stages.end(), [&](const auto& st) {
            return st.receives() && is_sent_durably(setup_->directory, st.spec.name, run_id_);
        });
    if (!kept_by_receiver) return "";
    const auto lost = find_lost_frame(*setup_, *made_, segment_->block(), [&] {
        return find_undelivered_here(*setup_, made_->first_ring_sequence);
    });
    if (!lost) return "";
    return fmt::format(
        "frame {0} is lost: it is not in the files of {1}, and no ring has it any more. The host that sent "
        "it keeps it until {1} has written it (release = \"durable\"), and would wait indefinitely",
        lost->frame, lost->sink);
} catch (const error&) {  // the ledgers cannot be read now: checked again later
    return "";
}

/// A stage that dies repeatedly may only have read damaged words. Words that change between two checks are
/// not damaged.
bool engine::failed_by_damage() {
    if (phase_ == phase::rebuilding || repairs_in_row_ >= most_in_row || taking_over_since_ns_ != 0)
        return false;
    repair_static_parts();
    std::vector<ring::finding> found = check_block(true);
    for (int k = 0; k < 2 && !found.empty(); ++k) {
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
        const auto again = check_block(true);
        std::erase_if(found, [&](const ring::finding& f) {
            return std::find(again.begin(), again.end(), f) == again.end();
        });
    }
    if (found.empty()) return false;
    ++repairs_.damaged;
    repair(fmt::format("{} has failed ({}), but the control block is damaged ({})", seats_->failure->label,
                       seats_->failure->what, listed(found)),
           found);
    return true;
}

void engine::repair(const std::string& what, const std::vector<ring::finding>& found) {
    const u64 frame = first_to_deliver();
    repairs_in_row_ = repairs_in_row_ > 0 && frame <= repaired_at_frame_ ? repairs_in_row_ + 1 : 1;
    repaired_at_frame_ = std::max(repaired_at_frame_, frame);
    repair_record record{now_ns(), frame, found.empty(), {}, {}};
    for (const ring::finding& f : found) record.found.push_back(f.text());
    repair_recorded_ = repairs_.last.size() < max_repair_records;
    if (repair_recorded_) repairs_.last.push_back(std::move(record));
    problems_.report(what, now_ns());
    if (repairs_in_row_ > most_in_row) {
        seats_->fail(
            "carousel",
            fmt::format("{}; the control block was rebuilt {} times, and no frame was delivered in between",
                        what, most_in_row),
            exit_code::stage_failed);
        return end_now("");
    }
    untrusted_ = true;
    rebuild(what);
}

}  // namespace carousel::supervisor
