#include "cli/far_traces.hpp"

#include <unistd.h>

#include <algorithm>
#include <future>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "os/interrupts.hpp"
#include "run/answer_message.hpp"
#include "run/client.hpp"
#include "run/ps_message.hpp"
#include "run/trace_message.hpp"

namespace carousel::supervisor {
namespace {

constexpr u64 start_patience_ns = 3 * ns_per_s;
constexpr u64 keep_every_ns = 2 * ns_per_s, poll_far_ns = 50 * ns_per_ms;
constexpr f64 far_patience_s = 10;
/// A part takes a tick of two supervisors, 40 ms; so many on the way at once are 13 MB/s.
constexpr u64 parts_at_once = 8;

/// Throws error: it is refused, or not answered.
run::trace_file_answer ask_far(const run::record& run, const run::trace_file_request& r) {
    const nlohmann::json answer = run::client(run).ask(r, 0, far_patience_s);
    if (const run::verdict v = run::read_verdict(answer); !v.ok)
        throw shm_error(v.message.value_or("it gave no reason"));
    return run::read_trace_file(answer);
}

}  // namespace

void far_traces::begin(f64 wait_s) {
    const run::ps_answer ps = run::read_ps(run::client(run_).ask(run::ps_request{}, wait_s));
    for (const run::ps_host& h : ps.hosts) {
        try {
            recording_[h.name] = ask_far(run_, {.host = h.name}).id;
        } catch (const error& e) {
            problems_[h.name] = e.what();
        }
    }
    const u64 until = now_ns() + start_patience_ns;
    for (const auto& [host, id] : recording_) {
        try {
            while (!ask_far(run_, {.host = host, .id = id}).records && now_ns() < until) ::usleep(20'000);
        } catch (const error&) {  // collect() tells it
        }
    }
    kept_ns_ = now_ns();
}

void far_traces::keep(u64 now) {
    if (now < kept_ns_ + keep_every_ns) return;
    kept_ns_ = now;
    for (const auto& [host, id] : recording_) {
        try {
            (void)ask_far(run_, {.host = host, .id = id});
        } catch (const error&) {  // collect() tells it
        }
    }
}

// Part after part in their order, some of them on the way at once.
std::string far_traces::fetch(const std::string& host, u64 id) const {
    interrupts stop;
    run::trace_file_answer first = ask_far(run_, {.host = host, .id = id, .stop = true});
    for (const u64 until = now_ns() + static_cast<u64>(far_patience_s * 1e9); first.bytes == 0;) {
        if (stop.sleep(poll_far_ns)) throw shm_error("interrupted while it was written");
        if (now_ns() > until) throw shm_error("it is not written within 10 s");
        first = ask_far(run_, {.host = host, .id = id, .stop = true});
    }
    std::string text = std::move(first.text);
    for (u64 at = run::trace_part; at < first.bytes;) {
        std::vector<std::future<run::trace_file_answer>> parts;
        for (; at < first.bytes && parts.size() < parts_at_once; at += run::trace_part)
            parts.push_back(std::async(std::launch::async, [this, &host, id, at] {
                return ask_far(run_, {.host = host, .id = id, .stop = true, .at = at});
            }));
        for (std::future<run::trace_file_answer>& p : parts) text += p.get().text;
        if (stop.sleep(1)) throw shm_error("interrupted while it came over");
    }
    (void)ask_far(run_, {.host = host, .id = id, .stop = true, .at = first.bytes});
    return text;
}

std::vector<telemetry::named_trace> far_traces::collect(
    const std::map<std::string, telemetry::trace_clock>& clocks) {
    for (const auto& [host, id] : recording_) {  // all end at one time
        try {
            (void)ask_far(run_, {.host = host, .id = id, .stop = true});
        } catch (const error&) {  // fetch() tells it
        }
    }
    std::vector<telemetry::named_trace> out;
    for (const auto& [host, id] : recording_) {
        try {
            if (clocks.count(host) == 0)
                throw shm_error("how its clock runs against this one's is not known yet");
            out.push_back({host, fetch(host, id)});
        } catch (const error& e) {
            problems_[host] = e.what();
        }
    }
    return out;
}

}  // namespace carousel::supervisor
