#include "supervisor/engine/block_custodian.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "core/clock.hpp"
#include "core/crash_point.hpp"
#include "ring/check/repair.hpp"
#include "ring/link.hpp"
#include "ring/recovery.hpp"
#include "ring/reentry.hpp"
#include "ring/topology.hpp"
#include "ring/words.hpp"
#include "supervisor/engine/parameters.hpp"
#include "supervisor/engine/run_facts.hpp"
#include "supervisor/plan/memory_plan.hpp"
#include "supervisor/plan/run_setup.hpp"
#include "supervisor/processes/process_table.hpp"
#include "supervisor/processes/watch.hpp"
#include "supervisor/stores/memory_store.hpp"
#include "supervisor/stores/status_reader.hpp"

namespace carousel::supervisor {
namespace {

constexpr std::size_t max_logged_findings = 3;
constexpr u64 save_counters_every_ns = ns_per_s;

void append(std::vector<ring::finding>& all, std::vector<ring::finding> more) {
    all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

block_damage damaged_block(std::vector<ring::finding> found) {
    return {fmt::format("the control block is damaged ({})", findings_text(found)), std::move(found)};
}

/// A counter that has grown by this much between two samples is damaged. For a counter of nanoseconds this
/// amount is 137 s; a counter of frames cannot grow by this amount.
constexpr u64 longest_step = u64{1} << 37U;

void update(shm::stage_counters& kept, const shm::stage_counters& now) {
    static_assert(sizeof(shm::stage_counters) % sizeof(shm::word) == 0);
    const auto* from = reinterpret_cast<const shm::word*>(&now);
    auto* to = reinterpret_cast<shm::word*>(&kept);
    for (std::size_t k = 0; k < sizeof kept / sizeof(shm::word); ++k) {
        const u64 value = from[k].load(std::memory_order_relaxed),
                  before = to[k].load(std::memory_order_relaxed);
        if (value >= before && value - before < longest_step) to[k].store(value, std::memory_order_relaxed);
    }
}

void copy(shm::stage_counters& to, const shm::stage_counters& from) {
    std::memcpy(static_cast<void*>(&to), static_cast<const void*>(&from), sizeof to);
}

}  // namespace

std::string findings_text(const std::vector<ring::finding>& found) {
    std::string text;
    for (std::size_t k = 0; k < std::min(found.size(), max_logged_findings); ++k)
        text += (k == 0 ? "" : "; ") + found[k].text();
    if (found.size() > max_logged_findings)
        text += fmt::format("; and {} more", found.size() - max_logged_findings);
    return text;
}

block_custodian::block_custodian(const run_setup& setup, std::string run_id, memory_store& memory,
                                 live_parameters& parameters, process_table& seats, run_facts& facts)
    : setup_(&setup),
      run_id_(std::move(run_id)),
      memory_(&memory),
      parameters_(&parameters),
      seats_(&seats),
      facts_(&facts),
      audit_(setup.audits_at_deaths_alone) {}

/// Writes the initial contents of a fresh block, which all come from the plan.
void block_custodian::write_plan(shm::control_block& c, u64 first_ring_sequence, u64 end) const {
    ring::plan p = guarded_plan_of(*setup_);
    p.first_ring_sequence = first_ring_sequence;
    p.end = end;
    // above the epochs of the bytes that are still in the rings' memory
    if (segment_ && made_) p.first.epoch = ring::epoch_above(segment_->block(), *made_, known_epochs());
    ring::initialise(c, p);
    c.assets = static_cast<u32>(setup_->assets.size());
    for (u32 k = 0; k < c.assets; ++k) {
        setup_->assets[k].name.copy(c.asset[k].name, sizeof c.asset[k].name - 1);
        c.asset[k].bytes = setup_->assets[k].bytes;
        c.asset[k].maker_stage = setup_->assets[k].maker;
    }
    memory_->enter(c);
    parameters_->write_into(c, first_ring_sequence);
}

std::vector<u32> block_custodian::known_epochs() const {
    std::vector<u32> epochs;
    for (const auto& s : seats_->seats) {
        if (s->successor) epochs.push_back(s->successor.epoch);
        for (const process* p : {s->now.get(), s->standby.get()})
            if (p != nullptr) epochs.push_back(p->incarnation.epoch);
        for (const auto& p : s->gone) epochs.push_back(p->incarnation.epoch);
    }
    return epochs;
}

std::vector<ring::incarnation_id> block_custodian::unfenced_programs() const {
    std::vector<ring::incarnation_id> all;
    for (const auto& s : seats_->seats)
        for (const auto& p : s->gone)
            if (p->port && !p->ended) all.push_back(p->incarnation);
    return all;
}

// A port's program is never killed. Until it is fenced, the buffer that it may write to stays in quarantine.
// A ring without a spare buffer for this gets other memory, so the program writes to memory that no other
// process maps.
void block_custodian::replace_crowded_rings() {
    replaced_ = ring::find_crowded(segment_->block(), *made_, unfenced_programs());
    for (u32 k = 0; k < replaced_.size(); ++k) {
        if (!replaced_[k]) continue;
        seats_->log_line(fmt::format(
            "the ring of {} gets other memory, because programs that have left it may still write to more "
            "of its buffers than it can spare",
            made_->link[k].name));
        memory_->replace_ring(k);
    }
}

void block_custodian::mark_replaced(const std::vector<bool>& renewed) {
    renewed_.resize(std::max(renewed_.size(), renewed.size()), false);
    for (std::size_t k = 0; k < renewed.size(); ++k) renewed_[k] = renewed_[k] || renewed[k];
    replaced_.resize(std::max(replaced_.size(), renewed.size()), false);
    for (std::size_t k = 0; k < renewed.size(); ++k) replaced_[k] = replaced_[k] || renewed[k];
}

void block_custodian::make(u64 first_ring_sequence, u64 end, bool untrusted, const ring::kept_frames* kept) {
    auto fresh = std::make_unique<shm::segment>(shm::segment::create(run_id_));
    shm::control_block& c = fresh->block();
    try {
        write_plan(c, first_ring_sequence, end);
        if (segment_)
            for (const ring::incarnation_id& who : unfenced_programs())
                ring::enter_unfenced(c, segment_->block(), who, replaced_);
        if (segment_ && kept != nullptr) ring::enter_frames(c, segment_->block(), *kept, now_ns());
        c.supervisor.store(static_cast<u64>(getpid()), std::memory_order_relaxed);
        c.supervisor_heartbeat_ns.store(now_ns(), std::memory_order_relaxed);
        // A stop that has found END is not begun again, but a sender and the writers of states must know that
        // this END is not that of the stream.
        const bool is_stopped = stop_requested_ && end_ != ring::end_stopping && end_ != ring::end_unknown;
        c.stop_asked.store(is_stopped ? 1 : 0, std::memory_order_relaxed);
        if (segment_)
            // if there is a former block, this is a rebuild, after which the counters of the run continue
            saved_counters_.restore(c, segment_->block(), c.stages, untrusted);
        crash_here(crash_point::block_filled);
        fresh->publish();
        shm::guard_frames(c);
        made_ = shm::make_private_block();
        shm::copy_words(*made_, c);
    } catch (...) {
        shm::segment::remove(run_id_);
        throw;
    }
    segment_ = std::move(fresh);
    replaced_.clear();
    renewed_.clear();
}

// A ring whose memory cannot be read proves no frame.
block_custodian::status_words block_custodian::read_status_words(const std::string& gpu_helpers) const {
    const shm::control_block& made = *made_;
    status_words words(made.links);
    std::optional<status_reader> gpu;
    const auto log_unread = [&](const std::string& what, const error& e) {
        seats_->log_line(fmt::format("{} is not read: {}", what, e.what()));
    };
    try {
        if (!gpu_helpers.empty() && memory_->has_gpu_ring()) gpu.emplace(gpu_helpers);
    } catch (const error& e) {
        log_unread("GPU memory", e);
    }
    for (u32 k = 0; k < made.links; ++k) {
        if (k < renewed_.size() && renewed_[k]) continue;
        try {
            words[k] = memory_->read_status_words(k, made.link[k].slots, made.link[k].slot_bytes,
                                                  gpu ? &*gpu : nullptr);
        } catch (const error& e) {
            log_unread(fmt::format("the ring of {}", made.link[k].name), e);
        }
    }
    return words;
}

ring::kept_frames block_custodian::find_kept(const ring::reentry_limits& limits,
                                             const status_words& words) const {
    const auto status = [&](u32 link, u32 slot) {
        return slot < words[link].size() ? std::optional(words[link][slot]) : std::nullopt;
    };
    return ring::find_kept_frames(segment_->block(), *made_, limits, status);
}

void block_custodian::join() { segment_ = std::make_unique<shm::segment>(shm::segment::join(run_id_)); }

void block_custodian::begin_checks_again() {
    stop_requested_ = ring::load(made_->stop_asked) != 0;
    deaths_then_ = seats_->account.deaths;
    seen_tails_.clear();
}

/// A supervisor that adopts a run computes the copy from its own plan; values that only the dead supervisor
/// knew come from the block. Memory handles arrive when the stages reconnect.
void block_custodian::copy_from_plan() {
    const shm::control_block& c = segment_->block();
    made_ = shm::make_private_block();
    made_->version = shm::control_version;
    made_->bytes = sizeof(shm::control_block);
    made_->uid = ::getuid();
    made_->created_ns = c.created_ns;
    run_id_.copy(made_->run_id, sizeof made_->run_id - 1);
    write_plan(*made_, c.first_ring_sequence, ring::end_unknown);
    for (u32 k = 0; k < made_->seats; ++k) made_->seat[k].first_epoch = c.seat[k].first_epoch;
    publish_timeouts();  // the dead supervisor may have died between a reload's commit and this call
}

void block_custodian::publish_timeouts() noexcept {
    for (shm::control_block* const c : {made_.get(), &segment_->block()}) {
        c->frame_timeout_ns = setup_->frame_timeout_ns();
        for (u32 k = 0; k < made_->stages; ++k)
            c->stage[k].frame_timeout_ns = setup_->stages[k].spec.frame_timeout_ns();
    }
}

void block_custodian::set_end(u64 end) {
    end_ = end;
    seats_->end = end;
}

std::optional<block_damage> block_custodian::accept_end(u64 found) {
    // a source is at most this number of frames ahead of the last observed tail of its ring
    constexpr u64 max_advance = 1'000'000;
    u64 highest = 0;
    for (const u64 tail : seen_tails_) highest = std::max(highest, tail);
    if (found <= setup_->end && found >= highest && found <= highest + max_advance) {
        set_end(found);
        return {};
    }
    ++facts_->repairs.damaged;
    return damaged_block({{"the run: end", fmt::format("was {}, but the rings are at {}", found, highest)}});
}

void block_custodian::begin_stop() {
    ring::begin_stop(segment_->block());
    stop_requested_ = true;
    set_end(ring::end_stopping);
}

// Tails only grow, so the last observed value is used while a tail is damaged, until the end of the run.
bool block_custodian::all_delivered() const noexcept {
    if (end_ == ring::end_unknown || end_ == ring::end_stopping) return false;
    for (u32 k = 0; k < made_->links; ++k) {
        const u64 seen = k < seen_tails_.size() ? seen_tails_[k] : 0;
        if (std::max(seen, ring::load(segment_->block().link[k].tail)) < end_) return false;
    }
    return true;
}

ring::known_run block_custodian::what_is_known() const {
    ring::known_run known;
    known.end = end_;
    known.surplus = surplus();
    known.tails = seen_tails_;
    // A process may be interrupted, or end, after it has marked a frame and before it has counted the frame.
    // Two threads of each process can be at this point, so the limit is two frames per seat and per process
    // that has died.
    if (deaths_then_ != ~u64{0})
        known.miscounted =
            2 * (u64{made_->seats} + seats_->account.deaths - std::min(deaths_then_, seats_->account.deaths));
    supervisor::fill_known_run(*seats_, known);
    return known;
}

std::vector<ring::finding> block_custodian::check(bool words) const {
    std::vector<ring::finding> found = ring::check_parity(segment_->block(), *made_);
    // the other checks run only if the parity is right, because a damaged word would make other words look
    // damaged, too
    append(found, check_without_parity(words && found.empty()));
    return found;
}

std::vector<ring::finding> block_custodian::check_without_parity(bool words) const {
    const shm::control_block& c = segment_->block();
    const ring::known_run known = what_is_known();
    std::vector<ring::finding> found = ring::check_static(c, *made_);
    append(found, ring::check_known(c, *made_, known));
    if (ring::load(c.stop_asked) != (stop_requested_ ? 1 : 0))
        found.push_back({"the run: stop_asked", "does not have the value that the supervisor set"});
    const u64 now = now_ns(), step = setup_->fps > 0 ? static_cast<u64>(1e9 / setup_->fps) : 0;
    for (const shm::word& due : c.next_source_ns)
        if (const u64 next = ring::load(due); step != 0 && next > now + 2 * step + ns_per_s)
            found.push_back({"the run: next_source_ns",
                             fmt::format("is {:.1f} s in the future, but frames are due every {:.3f} s",
                                         static_cast<f64>(next - now) / 1e9, static_cast<f64>(step) / 1e9)});
    if (words) append(found, ring::check_words(c, *made_, known));
    return found;
}

/// Returns the number of frames beyond a lowered END that other sources may have begun. It is the sum of the
/// windows of all rings, because each ring may be one window ahead of the next ring downstream.
u64 block_custodian::surplus() const noexcept {
    u64 frames = 0;
    for (u32 k = 0; k < made_->links && facts_->stream_ended_by != shm::none; ++k)
        frames += made_->link[k].window;
    return frames;
}

// Repairs single words with one flipped bit. If a word's value follows from the other words and from this
// process's own data, the value is written back after a second check; the run continues, and only the log
// shows the repair. A supervisor that dies before the write leaves the word as it was found. Returns damage
// if the value of a word cannot be determined.
std::optional<block_damage> block_custodian::repair_words() {
    shm::control_block& c = segment_->block();
    const std::vector<ring::damaged_word> damaged = ring::damaged_words(c, *made_);
    std::vector<pending_repair> waits;
    const ring::known_run known = damaged.empty() ? ring::known_run{} : what_is_known();
    u32 checks = 0;
    for (const ring::damaged_word& w : damaged) {
        pending_repair m{w, ring::repaired_value(c, *made_, known, w), 1};
        const auto before = std::find_if(pending_repairs_.begin(), pending_repairs_.end(),
                                         [&](const pending_repair& other) { return other.word.at == w.at; });
        if (before != pending_repairs_.end()) {
            m.checks = before->checks + 1;
            if (m.value && m.value == before->value && ring::write_back(c, *made_, w, *m.value)) {
                ++facts_->repairs.words;
                seats_->log_line(fmt::format("{} was wrong by one bit ({:#x}): repaired to {:#x}",
                                             ring::name_of(*made_, w.at), w.raw, *m.value));
                continue;
            }
        }
        checks = std::max(checks, m.checks);
        waits.push_back(m);
    }
    pending_repairs_ = std::move(waits);
    if (checks < pending_repair::max_checks) return {};
    const std::vector<ring::finding> found = ring::check_parity(c, *made_);
    pending_repairs_.clear();
    ++facts_->repairs.damaged;
    return block_damage{
        fmt::format("the control block is damaged ({}), and the original value can't be determined",
                    found.empty() ? "" : found.front().text()),
        found};
}

// Repairs the parts that no process acts on. One check is enough, because the copy is known to be correct,
// and no other process writes to these parts.
void block_custodian::repair_static_parts() {
    const std::vector<std::string> repaired = ring::repair_static(segment_->block(), *made_, what_is_known());
    if (repaired.empty()) return;
    facts_->repairs.words += repaired.size();
    seats_->log_line(fmt::format(
        "{}{} changed since the start, and no process has acted on it: repaired", repaired.front(),
        repaired.size() == 1 ? " was" : fmt::format(" and {} more were", repaired.size() - 1)));
}

std::optional<block_damage> block_custodian::watch(u64 now) {
    if (std::optional<block_damage> damage = repair_words()) return damage;
    repair_static_parts();
    if (std::vector<ring::finding> found = check_without_parity(false); !found.empty()) {
        ++facts_->repairs.damaged;
        return damaged_block(std::move(found));
    }
    seen_tails_.resize(made_->links);
    for (u32 k = 0; k < made_->links; ++k) {
        const u64 tail = ring::load(segment_->block().link[k].tail);
        seen_tails_[k] = std::max(seen_tails_[k], tail);  // a damaged tail reads as 0
    }
    // the suspicion lasts for a few checks; during this time the counters are not saved
    if (is_suspect()) return {};
    saved_counters_.accept(segment_->block(), made_->stages);
    if (now - counters_saved_ns_ > save_counters_every_ns) {
        saved_counters_.sample(segment_->block(), made_->stages);
        counters_saved_ns_ = now;
    }
    return {};
}

std::optional<block_damage> block_custodian::audit(u64 now) {
    if (seats_->account.deaths != audited_deaths_) audit_.request_audit(now);
    audited_deaths_ = seats_->account.deaths;
    if (!audit_.due(now)) return {};
    std::vector<ring::finding> found = audit_.add_sample(check(true), now);
    if (found.empty()) return {};
    ++facts_->repairs.damaged;
    return damaged_block(std::move(found));
}

// Findings that differ between two checks are not damage.
std::vector<ring::finding> block_custodian::persistent_damage() {
    repair_static_parts();
    std::vector<ring::finding> found = check(true);
    for (int k = 0; k < 2 && !found.empty(); ++k) {
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
        const auto again = check(true);
        std::erase_if(found, [&](const ring::finding& f) {
            return std::find(again.begin(), again.end(), f) == again.end();
        });
    }
    return found;
}

void counter_backup::sample(const shm::control_block& c, u32 stages) {
    const bool first = !kept_;
    if (first) kept_ = std::make_unique<shm::stage_counters[]>(shm::max_stages);
    for (u32 k = 0; k < std::min(stages, shm::max_stages); ++k) {
        if (first)
            copy(kept_[k], c.stage[k].counters);
        else
            update(kept_[k], c.stage[k].counters);
    }
}

void counter_backup::accept(const shm::control_block& c, u32 stages) noexcept {
    for (u32 k = 0; k < std::min(stages, shm::max_stages); ++k)
        torn_[k] = ring::load(c.stage[k].counters.torn);
}

void counter_backup::restore(shm::control_block& fresh, const shm::control_block& old, u32 stages,
                             bool untrusted) {
    sample(old, stages);
    for (u32 k = 0; k < std::min(stages, shm::max_stages); ++k) copy(fresh.stage[k].counters, kept_[k]);
    for (u32 k = 0; untrusted && k < std::min(stages, shm::max_stages); ++k)
        fresh.stage[k].counters.torn.store(torn_[k], std::memory_order_relaxed);
}

}  // namespace carousel::supervisor
