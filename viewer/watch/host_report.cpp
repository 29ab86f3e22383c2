#include "viewer/watch/host_report.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace carousel::viewer {
namespace {

using telemetry::event_kind;

/// The stages whose names begin with `prefix`; "": those of this host.
std::vector<seat_report> seats_of(const run::ps_answer& a, const std::string& prefix) {
    std::vector<seat_report> out;
    for (const run::ps_stage& row : a.stages) {
        const std::string name = row.name.value_or("?");
        if (prefix.empty() ? name.find('/') != std::string::npos : !name.starts_with(prefix)) continue;
        const bool several = std::count_if(a.stages.begin(), a.stages.end(),
                                           [&](const auto& each) { return each.name == row.name; }) > 1;
        out.push_back({row, several ? fmt::format("{}.{}", name, row.instance.value_or(0)) : name});
    }
    return out;
}

template <typename T, typename Same>
const T* first_of(const std::vector<T>& in, Same same) {
    const auto at = std::find_if(in.begin(), in.end(), same);
    return at == in.end() ? nullptr : &*at;
}

}  // namespace

std::optional<telemetry::stage_shares> seat_report::shares() const noexcept {
    if (!busy) return std::nullopt;
    return telemetry::stage_shares{*busy, wait_input.value_or(0), wait_output.value_or(0),
                                   wait_own.value_or(0), wait_turn.value_or(0)};
}

std::vector<seat_report> seat_reports(const run::ps_answer& a) { return seats_of(a, ""); }

std::vector<host_report> host_reports(const run::ps_answer& a) {
    std::vector<host_report> out;
    for (const run::ps_host& h : a.hosts) out.push_back({h, run::describe(h), seats_of(a, h.name + "/")});
    return out;
}

const seat_report* report_of(const std::vector<seat_report>& all, const telemetry::snapshot& block,
                             u32 seat) noexcept {
    if (seat >= block.seats.size()) return nullptr;
    const telemetry::seat_view& s = block.seats[seat];
    return first_of(all, [&](const seat_report& r) {
        return r.name == block.stage_name(s.stage) && r.instance == s.instance;
    });
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
        for (const seat_report& s : h.seats) {
            const seat_report* old =
                first_of(was->seats, [&](const seat_report& o) { return o.label == s.label; });
            if (old == nullptr || old->restarts >= s.restarts) continue;
            add(event_kind::warning,
                fmt::format("{} (pid {} there) was replaced{}", s.label, old->pid.value_or(0),
                            s.last_exit ? ": " + *s.last_exit : ""));
        }
    }
    return out;
}

}  // namespace carousel::viewer
