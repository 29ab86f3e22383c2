#include "trace/remote_traces.hpp"

#include <unistd.h>

#include <algorithm>
#include <future>

#include "control/client.hpp"
#include "control/ps_message.hpp"
#include "control/request_message.hpp"
#include "control/trace_message.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "os/event_loop.hpp"

namespace carousel::supervisor {
namespace {

constexpr u64 start_patience_ns = 3 * ns_per_s, write_patience_ns = 60 * ns_per_s;
constexpr u64 keep_every_ns = 2 * ns_per_s, poll_remote_ns = 50 * ns_per_ms, step_ns = 10 * ns_per_ms;
constexpr f64 remote_timeout_s = 3;
/// Each request takes one tick of two supervisors, 40 ms; this many requests in flight yield 13 MB/s.
constexpr u64 parts_at_once = 8;

/// Throws carousel::error if the request is refused or gets no reply.
run::trace_file_answer request_remote(const run::record& run, const run::trace_file_request& r) {
    const nlohmann::json answer = run::client(run).ask(r, 0, remote_timeout_s);
    if (const run::verdict v = run::read_verdict(answer); !v.ok)
        throw shm_error(v.message.value_or("it reported no cause"));
    return run::read_trace_file(answer);
}

}  // namespace

remote_traces::~remote_traces() {
    state_ = state::cancel;
    for (const auto& p : parts_)
        if (p->thread.joinable()) p->thread.join();
}

void remote_traces::begin(f64 wait_s) {
    const run::ps_answer ps =
        run::read_ps(run::client(run_).ask(run::ps_request{}, wait_s, remote_timeout_s));
    if (ps.hosts.empty()) return;
    interrupts stop;
    for (const run::ps_host& h : ps.hosts) {
        parts_.push_back(std::make_unique<part>());
        part& p = *parts_.back();
        p.host = h.name;
        p.thread = std::thread([this, &p] { attend(p); });
    }
    const auto waits = [](const auto& p) { return !p->records && !p->done; };
    for (const u64 until = now_ns() + start_patience_ns;
         now_ns() < until && std::any_of(parts_.begin(), parts_.end(), waits);)
        if (stop.sleep(step_ns)) throw config_error("interrupted before anything was recorded");
}

void remote_traces::attend(part& p) const noexcept {
    try {
        record_part(p);
    } catch (const std::exception& e) {
        p.problem = e.what();
    }
    p.done = true;
}

void remote_traces::rest(u64 ns) const {
    const state before = state_;
    for (const u64 until = now_ns() + ns; now_ns() < until && state_ == before;)
        ::usleep(static_cast<u32>(step_ns / 1000));
    if (state_ == state::cancel) throw shm_error("interrupted before it was complete");
}

// A remote host stops a recording that is not polled for some time.
void remote_traces::record_part(part& p) const {
    const u64 id = request_remote(run_, {.host = p.host}).id;
    while (state_ == state::record) {
        try {
            p.records = request_remote(run_, {.host = p.host, .id = id}).records;
        } catch (const error&) {  // ignored here, because the host may be reachable again soon; the last
                                  // request reports the error
        }
        rest(p.records ? keep_every_ns : poll_remote_ns);
    }
    run::trace_file_answer first = request_remote(run_, {.host = p.host, .id = id, .stop = true});
    for (const u64 until = now_ns() + write_patience_ns; first.bytes == 0;) {
        if (now_ns() > until) throw shm_error("it was not written within a minute");
        rest(poll_remote_ns);
        first = request_remote(run_, {.host = p.host, .id = id, .stop = true});
    }
    std::string text = std::move(first.text);
    // The parts are fetched in order, with several requests in flight.
    for (u64 at = run::trace_part; at < first.bytes; rest(0)) {
        std::vector<std::future<run::trace_file_answer>> coming;
        for (; at < first.bytes && coming.size() < parts_at_once; at += run::trace_part)
            coming.push_back(std::async(std::launch::async, [this, &p, id, at] {
                return request_remote(run_, {.host = p.host, .id = id, .stop = true, .at = at});
            }));
        for (std::future<run::trace_file_answer>& c : coming) text += c.get().text;
    }
    if (text.size() != first.bytes) throw shm_error("the transfer is incomplete");
    p.text = std::move(text);
    try {
        (void)request_remote(run_, {.host = p.host, .id = id, .stop = true, .at = first.bytes});
    } catch (const error&) {  // an error is ignored, because the host removes the file later in any case
    }
}

std::vector<telemetry::named_trace> remote_traces::collect(
    const std::map<std::string, telemetry::trace_clock>& clocks) {
    if (parts_.empty()) return {};
    interrupts stop;
    state_ = state::fetch;
    const auto is_pending = [](const auto& p) { return !p->done; };
    while (std::any_of(parts_.begin(), parts_.end(), is_pending))
        if (stop.sleep(step_ns)) state_ = state::cancel;
    std::vector<telemetry::named_trace> out;
    for (const auto& p : parts_) {
        p->thread.join();
        if (p->problem.empty() && clocks.count(p->host) == 0)
            p->problem = "the offset of its clock is not known yet";
        if (p->problem.empty())
            out.push_back({p->host, std::move(p->text)});
        else
            problems_[p->host] = p->problem;
    }
    return out;
}

}  // namespace carousel::supervisor
