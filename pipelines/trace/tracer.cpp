#include "trace/tracer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "control/client.hpp"
#include "control/mapped_ring.hpp"
#include "control/ps_message.hpp"
#include "control/request_message.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"
#include "os/event_loop.hpp"
#include "telemetry/frame_facts.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;
constexpr u64 lease_ms = 3000, renew_ns = 400 * ns_per_ms, poll_every_ns = 5 * ns_per_ms,
              fill_every_ns = 10 * ns_per_ms;
/// Interval at which the tracer checks whether the run continues, and with which control block.
constexpr u64 poll_run_every_ns = 50 * ns_per_ms;
constexpr f64 begun_patience_s = 2;
constexpr std::size_t most_facts = 200'000;  ///< maximum number of frames whose metadata is kept
/// How long the tracer waits for frames that are in progress when the recording time is over.
constexpr u64 patience_ns = 500 * ns_per_ms;

}  // namespace

tracer::tracer(const run::record& run, f64 wait_s) {
    begin_ns_ = now_ns();
    ask(run, wait_s);
    if (!refused_.empty())
        throw shm_error(fmt::format("pipeline \"{}\" can't be traced: {}", run.name, refused_));
    reader_.emplace(*rings_, begin_ns_);
    first_ = least_tail();
}

u64 tracer::least_tail() const noexcept {
    u64 t = ~u64{0};
    const shm::control_block& c = run_->block();
    for (u32 k = 0; k < std::min(c.links, shm::max_links); ++k) t = std::min(t, ring::load(c.link[k].tail));
    return t;
}

bool tracer::through() const noexcept {
    const u64 end = ring::load(run_->block().end);
    return end != ring::end_unknown && end != ring::end_stopping && least_tail() >= end;
}

// One request renews the lease under which stages write timestamps, and its reply has the new notes. A
// supervisor that does not reply may have died, or another one may be about to replace it.
void tracer::ask(const run::record& run, f64 wait_s) {
    requested_ns_ = now_ns();
    try {
        for (;;) {
            const json reply =
                run::client(run).ask(run::trace_request{lease_ms, since_}, wait_s, begun_patience_s);
            if (const run::verdict v = run::read_verdict(reply); !v.ok) {
                refused_ = v.message.value_or("it reported no cause");
                return;
            }
            const u64 before = since_;
            run::trace_answer a = run::read_trace(reply);
            const u64 last = a.last;
            take(run, std::move(a));
            if (since_ == last || since_ == before) return;
        }
    } catch (const shm_error&) {
        if (!run_) throw;
    } catch (const config_error& e) {
        refused_ = e.what();
    }
}

void tracer::take(const run::record& run, run::trace_answer a) {
    since_ = a.next;
    if (!run_) run_.emplace(run);
    if (!rings_) rings_.emplace(shm::trace_segment::attach(a.run_id, false));
    for (run::trace_note& n : a.notes)
        notes_.push_back({n.time_ns, n.seat, n.epoch, std::move(n.kind), std::move(n.text)});
}

// The lease for timestamps is in the control block, and only a supervisor can grant it, so the request is
// sent at once when there is a new block or a new supervisor.
void tracer::poll_run(u64 now) {
    if (now - run_polled_ns_ < poll_run_every_ns) return;
    run_polled_ns_ = now;
    const run::observation s = run_->poll();
    for (const run::run_update& n : s.updates)
        updates_.push_back(fmt::format("{} after {:.2f} s", n.text, static_cast<f64>(now - begin_ns_) / 1e9));
    gone_ = s.liveness.state == run::liveness::over;
    if (!gone_ && !s.updates.empty()) ask(run_->run(), 0);
}

// Returns the format of a link, for the names of planes that a frame uses only in part. The format is
// requested once per link, and only when a frame uses a plane only in part.
const ring::frame_format* tracer::format_of(u32 link) {
    const auto known = formats_.find(link);
    if (known != formats_.end()) return known->second ? &*known->second : nullptr;
    std::optional<ring::frame_format>& f = formats_[link];
    try {
        const u32 stage = run_->block().link[link].stage;
        f = run::map_ring(run_->block(), run_->run().socket(),
                          telemetry::read_snapshot(run_->block()).stage_name(stage))
                .format;
    } catch (const error&) {  // the trace then has only the metadata
    }
    return f ? &*f : nullptr;
}

// Headers are polled, so some headers are missed in a ring whose frames are replaced faster than the poll
// interval.
void tracer::scan_headers() {
    const shm::control_block& c = run_->block();
    for (u32 l = 0; l < std::min(c.links, shm::max_links); ++l)
        for (u32 s = 0; s < std::min(c.link[l].slots, shm::max_slots); ++s) {
            const auto f = telemetry::facts_in_passing(c, l, s);
            const bool plain = f && f->metadata.empty() && f->used.planes == 0 && f->sampled_frames.empty();
            if (!f || plain || facts_.size() >= most_facts) continue;
            std::string& text = facts_[{c.link[l].stage, f->ring_sequence}];
            if (!text.empty()) continue;
            // The metadata is nested, because a stage may choose any names for its entries.
            json all = json::object();
            if (!f->metadata.empty()) all["metadata"] = telemetry::metadata_json(f->metadata);
            const ring::frame_format* format = f->used.planes != 0 ? format_of(l) : nullptr;
            if (format != nullptr) all["in use"] = telemetry::used_json(*format, f->used);
            for (const u64 n : f->sampled_frames)
                all["sampled"].push_back(n == shm::no_sampled_frame ? json() : json(n));
            text = all.dump(-1, ' ', false, json::error_handler_t::replace);
        }
}

void tracer::poll(u64 now) {
    reader_->poll();
    scan_headers();
    if (now - filled_ns_ < fill_every_ns) return;
    filled_ns_ = now;
    const shm::control_block& c = run_->block();
    telemetry::trace_fill f{now, {}};
    for (u32 k = 0; k < std::min(c.links, shm::max_links); ++k) {
        u32 used = 0;
        for (u32 s = 0; s < std::min(c.link[k].slots, shm::max_slots); ++s)
            used +=
                ring::slot_word::of(ring::load(c.link[k].slot[s])).state != ring::slot_state::free ? 1U : 0U;
        f.buffers.push_back(used);
    }
    fills_.push_back(std::move(f));
}

void tracer::record(f64 seconds, u64 frames) {
    interrupts stop;
    request_clocks();
    const u64 until = begin_ns_ + static_cast<u64>(seconds * 1e9);
    for (u64 now = now_ns(); end_ns_ == 0; now = now_ns()) {
        poll(now);
        poll_run(now);
        const bool enough =
            frames != 0 && least_tail() >= std::max(first_, run_->block().first_ring_sequence) + frames;
        if (gone_ || through()) {
            ending_ = fmt::format("the pipeline ended after {:.2f} s: the trace covers the time until then",
                                  static_cast<f64>(now - begin_ns_) / 1e9);
            end_ns_ = now;
        } else if ((seconds > 0 && now >= until) || enough) {
            end_ns_ = now;
        } else if (stop.sleep(poll_every_ns)) {
            ending_ = fmt::format("interrupted after {:.2f} s", static_cast<f64>(now_ns() - begin_ns_) / 1e9);
            end_ns_ = now_ns();
        } else if (now - requested_ns_ > renew_ns) {
            ask(run_->run(), 0);
        }
    }
    // Waits a short time for frames in progress, because their last timestamps are written after the tail has
    // advanced.
    const u64 wanted = least_tail() + 16;
    for (const u64 limit = now_ns() + (gone_ ? 20 * ns_per_ms : patience_ns);
         now_ns() < limit && (gone_ || least_tail() < wanted);) {
        poll(now_ns());
        if (stop.sleep(poll_every_ns) || (!gone_ && through())) break;
    }
    if (!gone_) ask(run_->run(), 0);
    request_clocks();
}

// Called at the beginning and at the end of the recording, because the run may end in between.
void tracer::request_clocks() {
    try {
        const run::ps_answer ps =
            run::read_ps(run::client(run_->run()).ask(run::ps_request{}, 0, begun_patience_s));
        for (const run::ps_host& h : ps.hosts)
            if (h.clock_ahead_ms && h.clock_error_ms)
                clocks_[h.name] = {*h.clock_ahead_ms, *h.clock_error_ms};
    } catch (const error&) {  // the trace then can't be joined with the other hosts' traces
    }
}

std::string tracer::text(telemetry::trace_summary& out) {
    const telemetry::snapshot shape = telemetry::read_snapshot(run_->block());
    ::usleep(50'000);
    reader_->poll();
    telemetry::trace_content c;
    c.shape = &shape;
    c.attempts = &reader_->attempts();
    c.waits = &reader_->waits();
    c.notes = std::move(notes_);
    c.fills = std::move(fills_);
    c.facts = std::move(facts_);
    c.clocks = clocks_;
    c.begin_ns = begin_ns_;
    c.end_ns = std::max(end_ns_, shape.taken_ns);
    c.overwritten = reader_->overwritten();
    c.unfinished = reader_->unfinished();
    c.ending = ending_;
    return telemetry::trace_json(c, out);
}

}  // namespace carousel::supervisor
