// Reports on the other hosts of a pipeline: while they run, and when they are done.
#include <fmt/format.h>

#include "core/clock.hpp"
#include "supervisor/hosts/coordinator.hpp"

namespace carousel::supervisor {

using nlohmann::json;

void coordinator::add_to(run::ps_answer& a) const {
    for (const auto& h : hosts_) {
        const std::string& name = h->spec().name;
        const bool there = h->state() == remote_host::host_state::begun && h->connected();
        run::ps_host about{name,
                           h->spec().address,
                           there                                            ? "running"
                           : h->state() == remote_host::host_state::ended   ? "ended"
                           : h->state() == remote_host::host_state::refused ? "refused"
                                                                            : "lost",
                           {},
                           {}};
        if (const auto clock = h->clock(now_ns())) {
            about.clock_ahead_ms = static_cast<f64>(clock->offset_ns) / 1e6;
            about.clock_error_ms = static_cast<f64>(clock->error_ns) / 1e6;
        }
        a.hosts.push_back(about);
        run::ps_answer theirs = run::read_ps(h->ps);
        for (run::ps_stage& s : theirs.stages) {
            s.name = name + "/" + s.name.value_or("?");
            if (!there) s.state = about.state, s.pid.reset();
            a.stages.push_back(std::move(s));
        }
        if (there)
            for (const std::string& problem : theirs.problems) a.problems.push_back(name + ": " + problem);
    }
}

int coordinator::code() const {
    for (const auto& h : hosts_)
        if (h->outcome && !plan_.helps(h->spec().name))
            if (const int code = h->outcome->value("code", 1); code != 0) return code;
    return lost_code_;
}

json coordinator::reports() const {
    json out = json::object();
    for (const auto& h : hosts_) {
        json& one = out[h->spec().name];
        one = h->outcome ? h->outcome->value("report", json()) : json();
        if (!one.is_object()) one = {{"ending", "not known"}};
        one["address"] = h->spec().address;
        if (const auto clock = h->clock(now_ns()))
            one["clock"] = {{"ahead_ms", static_cast<f64>(clock->offset_ns) / 1e6},
                            {"error_ms", static_cast<f64>(clock->error_ns) / 1e6}};
    }
    return out;
}

std::vector<std::string> coordinator::closing_lines() const {
    std::vector<std::string> out;
    for (const auto& h : hosts_)
        if (h->outcome)
            out.push_back(fmt::format("host {}: {}", h->spec().name, h->outcome->value("line", "?")));
    if (!lost_.empty()) out.push_back(lost_);
    return out;
}

}  // namespace carousel::supervisor
