#include "viewer/watch/host_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "control/ps_message.hpp"

namespace carousel::viewer {
namespace {

using telemetry::event_kind;

remote_seat seat_of(const run::ps_stage& row, bool several) {
    remote_seat s;
    s.label = row.name.value_or("?");
    if (several) s.label += fmt::format(".{}", row.instance.value_or(0));
    s.state = row.state.value_or("?");
    s.last_exit = row.last_exit.value_or("");
    s.pid = row.pid.value_or(0);
    s.restarts = row.restarts.value_or(0);
    s.frames_per_second = row.frames_per_second;
    s.cpu_percent = row.cpu_percent;
    s.age_s = row.age_s;
    s.memory_bytes = row.memory_bytes.value_or(0);
    if (row.busy)
        s.time = telemetry::stage_shares{*row.busy, row.wait_input.value_or(0), row.wait_output.value_or(0),
                                         row.wait_own.value_or(0), row.wait_turn.value_or(0)};
    return s;
}

template <typename T, typename Same>
const T* first_of(const std::vector<T>& in, Same same) {
    const auto at = std::find_if(in.begin(), in.end(), same);
    return at == in.end() ? nullptr : &*at;
}

}  // namespace

std::vector<host_report> host_reports(const run::ps_answer& a) {
    std::vector<host_report> out;
    for (const run::ps_host& h : a.hosts) {
        host_report& r = out.emplace_back();
        r.name = h.name;
        r.address = h.address;
        r.state = h.state;
        r.clock_ahead_ms = h.clock_ahead_ms;
        r.clock_error_ms = h.clock_error_ms;
        r.text = run::describe(h);
        const std::string prefix = h.name + "/";
        for (const run::ps_stage& row : a.stages) {
            if (!row.name.value_or("").starts_with(prefix)) continue;
            const bool several = std::count_if(a.stages.begin(), a.stages.end(),
                                               [&](const auto& each) { return each.name == row.name; }) > 1;
            r.seats.push_back(seat_of(row, several));
        }
    }
    return out;
}

std::vector<telemetry::run_event> changes(const std::vector<host_report>& before,
                                          const std::vector<host_report>& after, u64 now) {
    std::vector<telemetry::run_event> out;
    const auto add = [&](event_kind kind, std::string text) {
        out.push_back({now, kind, shm::none, std::move(text)});
    };
    for (const host_report& h : after) {
        const host_report* was = first_of(before, [&](const host_report& b) { return b.name == h.name; });
        if (was == nullptr) continue;
        if (was->state != h.state)
            add(h.is_there()         ? event_kind::good
                : h.state == "ended" ? event_kind::info
                                     : event_kind::bad,
                fmt::format("host {}: {}, was {}", h.name, h.state, was->state));
        for (const remote_seat& s : h.seats) {
            const remote_seat* old =
                first_of(was->seats, [&](const remote_seat& o) { return o.label == s.label; });
            if (old == nullptr || old->restarts >= s.restarts) continue;
            add(event_kind::warning, fmt::format("{} (pid {} there) was replaced{}{}", s.label, old->pid,
                                                 s.last_exit.empty() ? "" : ": ", s.last_exit));
        }
    }
    return out;
}

}  // namespace carousel::viewer
