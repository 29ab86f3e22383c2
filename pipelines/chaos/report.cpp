#include "chaos/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "core/clock.hpp"
#include "core/json.hpp"
#include "core/types.hpp"
#include "os/table.hpp"
#include "supervisor/engine/report.hpp"
#include "supervisor/stores/run_log.hpp"

namespace carousel::supervisor::chaos {
namespace {

using nlohmann::json;
/// longest time from a fault to its detection; it is long because a stopped stage may be downstream of other
/// stages that miss their deadlines
constexpr u64 longest_hang_ns = 60 * ns_per_s;

/// Results of one kind of fault.
struct account {
    u64 count = 0;
    std::vector<f64> detection, fence, takeover, pause;
};

json samples(const std::vector<f64>& ms) {
    return {{"count", ms.size()},
            {"p50", quantile(ms, 0.5)},
            {"p99", quantile(ms, 0.99)},
            {"max", quantile(ms, 1)}};
}

f64 ms_between(u64 from, u64 to) { return to > from ? static_cast<f64>(to - from) / 1e6 : 0; }

/// Returns whether `r` is the death of the process that the fault `d` has hit. The death must be detected
/// after the fault, because pids are reused.
bool led_to(const done& d, const recovery& r) {
    return r.pid == d.pid && r.seat == d.seat && r.seen_ns >= d.time_ns &&
           r.seen_ns - d.time_ns <= longest_hang_ns;
}

/// Returns the death that a fault caused, or null. Each death is used once.
const recovery* death_of(const done& d, const std::vector<recovery>& all, std::vector<bool>& taken) {
    for (std::size_t k = 0; k < all.size(); ++k) {
        if (taken[k] || !led_to(d, all[k])) continue;
        taken[k] = true;
        return &all[k];
    }
    return nullptr;
}

/// An MPS domain can end several times in a run; the ends are numbered. Returns the numbers of those ends
/// that were caused by a fault that chaos injected into one of the domain's processes. Such a fault also
/// kills the domain's other processes. Deaths in any other end count as deaths that chaos did not cause.
std::set<u64> ends_by_faults(const outcome& o, const std::vector<recovery>& all) {
    std::set<u64> out;
    for (const recovery& r : all)
        if (r.domain_end != 0 &&
            std::any_of(o.faults.begin(), o.faults.end(), [&](const done& d) { return led_to(d, r); }))
            out.insert(r.domain_end);
    return out;
}

/// True if stages have moved between devices, which ends every process ("restarted").
bool has_moves(const outcome& o) {
    const json moved = o.report.is_object() ? o.report.value("fallback", json()) : json();
    return moved.is_object() && !moved.value("changes", json::array()).empty();
}

struct joined {
    std::map<fault, account> kinds;
    std::vector<recovery> untouched;  ///< deaths that chaos did not cause
};

joined join(const outcome& o) {
    joined out;
    std::vector<recovery> all;
    for (const json& j : o.report.is_null() ? json::array() : o.report.value("recoveries", json::array()))
        all.push_back(recovery_from(j));
    std::vector<bool> taken(all.size());
    u64 last = ~u64{0};
    for (const done& d : o.faults) {
        account& a = out.kinds[d.kind];
        a.count += d.number != last ? 1 : 0;
        last = d.number;
        u64 over = d.responding_ns;
        if (d.kind == fault::supervisor) {
            a.takeover.push_back(ms_between(d.time_ns, d.responding_ns));
        } else if (const recovery* r = death_of(d, all, taken)) {
            a.detection.push_back(ms_between(d.time_ns, r->seen_ns));
            if (r->fenced_ns != 0) a.fence.push_back(ms_between(r->seen_ns, r->fenced_ns));
            if (r->followed_ns != 0) a.takeover.push_back(ms_between(d.time_ns, r->followed_ns));
            over = std::max(r->followed_ns, r->seen_ns);
        }
        a.pause.push_back(longest_pause_ms(o.pauses, d.stage, d.time_ns, std::max(over, d.time_ns)));
    }
    const std::set<u64> ends = ends_by_faults(o, all);
    const bool moves = has_moves(o);
    for (std::size_t k = 0; k < all.size(); ++k) {
        const bool ours = taken[k] || std::any_of(o.faults.begin(), o.faults.end(),
                                                  [&](const done& d) { return d.pid == all[k].pid; });
        // The supervisor reports whether the fault was shared.
        const bool shared = all[k].shared && ends.contains(all[k].domain_end);
        const bool moved = moves && all[k].how == "restarted";
        if (!ours && !shared && !moved && all[k].seen_ns >= o.begun_ns && all[k].seen_ns <= o.ended_ns)
            out.untouched.push_back(all[k]);
    }
    return out;
}

/// Returns true if the two hashes can be compared: they must have the same name, and neither ledger may have
/// several hashes. Otherwise adds the reason to `out`.
bool comparable(const json& ours, const json& theirs, const std::string& where,
                std::vector<std::string>& out) {
    const json a = ours.value("image_hash_of", json()), b = theirs.value("image_hash_of", json());
    const auto several = [](const json& r, const json& name) {
        return !name.is_null() && r.value("image_hash", json()).is_null();
    };
    if (a == b && !several(ours, a) && !several(theirs, b)) return true;
    out.push_back(fmt::format("{}image_hash can't be compared: it covers {}, that of the fault-free run {}",
                              where, a.dump(), b.dump()));
    return false;
}

/// Compares the sinks one by one: by their hashes if the stage provides a hash, and by their counts if it
/// does not (both runs have the same number of frames).
void compare(const outcome& o, std::vector<std::string>& out) {
    const json &r = o.report, &calm = o.calm;
    const bool alike = r.value("not_comparable", json()).is_null();  // the run's own report states whether
                                                                     // runs are comparable
    if (alike && comparable(r, calm, "", out) && calm["image_hash"] != r["image_hash"])
        out.push_back("image_hash differs from that of the fault-free run");
    if (calm["frames"] != r["frames"])
        out.push_back(
            fmt::format("frames: {}, in the fault-free run {}", r["frames"].dump(), calm["frames"].dump()));
    const json none = json::array(), ours = r.value("sinks", none), theirs = calm.value("sinks", none);
    const auto differs = [&](std::size_t k, const char* key) {
        if (const json a = ours[k].value(key, json()), b = theirs[k].value(key, json()); a != b)
            out.push_back(fmt::format("{}: {} {}, in the fault-free run {}", ours[k].value("stage", "?"), key,
                                      a.dump(), b.dump()));
    };
    for (std::size_t k = 0; k < std::min(ours.size(), theirs.size()); ++k) {
        if (alike && k > 0 && comparable(ours[k], theirs[k], ours[k].value("stage", "?") + ": ", out))
            differs(k, "image_hash");
        differs(k, "records");
    }
}

std::vector<std::string> failures_of(const outcome& o, const joined& j) {
    std::vector<std::string> out;
    const json& r = o.report;
    if (o.interrupted && o.faults.empty()) return {"interrupted before the first fault"};
    if (r.is_null())
        return {fmt::format("the run wrote no report (it ended with: {})",
                            o.exit_code < 0 ? "none within 90 s" : fmt::format("exit code {}", o.exit_code))};
    if (o.exit_code != 0) out.push_back(fmt::format("the run ended with exit code {}", o.exit_code));
    if (o.ended_early) out.push_back("the run ended before all faults were injected");
    for (const char* key : {"lost", "repeated", "torn", "dead_letter_count"}) {
        const json n = r.value(key, json(0));
        if (n.is_null())
            out.push_back(
                fmt::format("{}: not counted, because no sink that reads every frame was left", key));
        else if (n != 0)
            out.push_back(fmt::format("{}: {}", key, n.dump()));
    }
    // A run that stalled may have delivered all frames, but no fault of chaos may cause a stall.
    if (const u64 n = r.value("stalls", u64{0}); n > 0)
        out.push_back(
            fmt::format("the run stalled {} times without an identified cause, and was rebuilt (the report's "
                        "`stalls` and `repairs`)",
                        n));
    if (const u64 n = r.value("damaged", u64{0}); n > 0)
        out.push_back(
            fmt::format("words of the control block were damaged {} times, and the run was rebuilt (the "
                        "report's `damaged` and `repairs`)",
                        n));
    if (!o.calm.is_null()) compare(o, out);
    const json mps = r.value("mps", json());
    if (mps.is_object() && mps.value("abandoned", false))
        out.push_back(fmt::format(
            "the MPS domain was abandoned after it had ended {} times, so later faults were not tested in it",
            mps.value("domain_faults", u64{0})));
    if (!j.untouched.empty()) {
        const recovery& first = j.untouched.front();
        out.push_back(fmt::format("{} processes died without an injected fault; the first: {} (pid {}), {}",
                                  j.untouched.size(), first.seat, first.pid,
                                  first.how.empty() ? "cause unknown" : first.how));
    }
    const auto killed = j.kinds.find(fault::supervisor);
    const u64 supervisors = killed == j.kinds.end() ? 0 : killed->second.count,
              adopted = r.value("taken_over", u64{0});
    if (adopted != supervisors)
        out.push_back(fmt::format("{} supervisors were killed, but {} takeovers of a run were counted",
                                  supervisors, adopted));
    for (const std::string& l : o.leaked) out.push_back("left over: " + l);
    if (o.gpu_mib_after > o.gpu_mib_before)
        out.push_back(
            fmt::format("GPU memory in use: {} MiB before, {} MiB after", o.gpu_mib_before, o.gpu_mib_after));
    return out;
}

std::string three(const json& s) {
    if (s.value("count", 0) == 0) return "-";
    return fmt::format("{:.1f} / {:.1f} / {:.1f}", s["p50"].get<f64>(), s["p99"].get<f64>(),
                       s["max"].get<f64>());
}

/// A value that none of the hosts has counted stays null.
void add_number(json& to, const json& from, const char* key) {
    const json more = from.value(key, json());
    if (!more.is_number()) return;
    json& sum = to[key];
    sum = sum.is_number() ? json(sum.get<u64>() + more.get<u64>()) : more;
}

void add_names(json& to, const json& from, const char* list, const char* name, const std::string& host) {
    for (json one : from.value(list, json::array())) {
        one[name] = host + "/" + one.value(name, "?");
        to[list].push_back(std::move(one));
    }
}

/// Converts times to this host's clock and adds the clock's error bound, so that a death is never reported
/// before its cause.
void move_times(json& recovery, const json& clock) {
    const f64 by_ms = clock.value("error_ms", 0.0) - clock.value("ahead_ms", 0.0);
    const auto by = static_cast<i64>(std::llround(by_ms * 1e6));
    for (const char* key :
         {"signalled_ns", "seen_ns", "fenced_ns", "followed_ns", "started_ns", "attached_ns", "ready_ns"})
        if (const u64 at = recovery.value(key, u64{0}); at != 0)
            recovery[key] = static_cast<u64>(static_cast<i64>(at) + by);
}

}  // namespace

json make_report(const settings& s, const outcome& o) {
    const joined j = join(o);
    const std::vector<std::string> failures = failures_of(o, j);
    json kinds = json::object();
    u64 count = 0;
    for (const auto& [kind, a] : j.kinds) {
        count += a.count;
        kinds[std::string(name_of(kind))] = {{"count", a.count},
                                             {"detection_ms", samples(a.detection)},
                                             {"fence_ms", samples(a.fence)},
                                             {"takeover_ms", samples(a.takeover)},
                                             {"others_longest_pause_ms", samples(a.pause)}};
    }
    const auto of_run = [&](const char* key) {
        return o.report.is_null() ? json() : o.report.value(key, json());
    };
    json out{{"passed", failures.empty()},
             {"failures", failures},
             {"interrupted", o.interrupted},
             {"file", s.file},
             {"device", of_run("device")},
             {"size", of_run("size")},
             {"seed", s.seed},
             {"rate", s.rate},
             {"seconds", static_cast<f64>(o.ended_ns - o.begun_ns) / 1e9},
             {"faults", count},
             {"kinds", kinds},
             {"frames", of_run("frames")},
             {"frames_per_second", of_run("frames_per_second")},
             {"lost", of_run("lost")},
             {"repeated", of_run("repeated")},
             {"torn", of_run("torn")},
             {"dead_letters", of_run("dead_letter_count")},
             {"restarts", of_run("restarts")},
             {"kills_at", of_run("kills_at")},
             {"taken_over", of_run("taken_over")},
             {"stalls", of_run("stalls")},
             {"damaged", of_run("damaged")},
             {"mps", of_run("mps")},
             {"fallback", of_run("fallback")},
             {"untouched_deaths", j.untouched.size()},
             {"untouched", recoveries_json(j.untouched)},
             {"image_hash", of_run("image_hash")},
             {"image_hash_of", of_run("image_hash_of")},
             {"not_comparable", of_run("not_comparable")},
             {"leaked", o.leaked},
             {"spent", json::array()},
             {"cpus", std::thread::hardware_concurrency()}};
    for (const auto& [on, seconds] : o.spent_s) out["spent"].push_back({{"on", on}, {"seconds", seconds}});
    for (const char* key : {"standby_takeovers", "standby_missed"}) out[key] = of_run(key);
    out["calm"] = o.calm.is_null() ? json()
                                   : json{{"image_hash", o.calm["image_hash"]},
                                          {"image_hash_of", o.calm.value("image_hash_of", json())},
                                          {"frames", o.calm["frames"]},
                                          {"frames_per_second", o.calm["frames_per_second"]}};
    if (o.gpu_mib_before >= 0)
        out["gpu_memory_mib"] = {{"before", o.gpu_mib_before}, {"after", o.gpu_mib_after}};
    return out;
}

std::string report_text(const json& r) {
    table t(
        {"fault", ">count", ">detected, ms", ">reaped, ms", ">recovered, ms", ">others' longest pause, ms"});
    for (const auto& [kind, a] : r["kinds"].items())
        t.add({kind, std::to_string(a["count"].get<u64>()), three(a["detection_ms"]), three(a["fence_ms"]),
               three(a["takeover_ms"]), three(a["others_longest_pause_ms"])});
    std::string text = t.text() + "(p50 / p99 / max)\n";
    const auto shown = [&](const char* key) { return r[key].is_null() ? "?" : r[key].dump(); };
    text += fmt::format(
        "{} faults in {}, seed {}: {} frames, lost {}, repeated {}, torn {}, dead letters {}, unexpected "
        "deaths {}\n",
        r["faults"].get<u64>(), human_seconds(r["seconds"].get<f64>()), r["seed"].get<u64>(), shown("frames"),
        shown("lost"), shown("repeated"), shown("torn"), shown("dead_letters"), shown("untouched_deaths"));
    if (r["calm"].is_object()) {
        const json& calm = r["calm"];
        text += r["image_hash"].is_null() && calm["image_hash"].is_null()
                    ? fmt::format(
                          "image_hash not compared (no sink records hashes); frames counted instead: {}, and "
                          "{} in the fault-free run",
                          shown("frames"), calm["frames"].dump())
                : r["not_comparable"].is_string()
                    ? fmt::format(
                          "image_hash not compared ({}); frames counted instead: {}, and {} in the "
                          "fault-free run",
                          r["not_comparable"].get<std::string>(), shown("frames"), calm["frames"].dump())
                    : fmt::format("image_hash {}, in the fault-free run {}", shown("image_hash"),
                                  calm["image_hash"].dump());
        text += fmt::format("; {:.1f} frames/s, in the fault-free run {:.1f}\n",
                            r.value("frames_per_second", 0.0), calm["frames_per_second"].get<f64>());
    }
    std::string spent;
    for (const json& each : r["spent"])
        spent += fmt::format("{}{} {}", spent.empty() ? "" : ", ", each["on"].get<std::string>(),
                             human_seconds(each["seconds"].get<f64>()));
    if (!spent.empty()) text += "time spent on: " + spent + "\n";
    const json missed = r["standby_missed"].is_object() ? r["standby_missed"] : json::object();
    u64 fresh = 0;
    for (const auto& each : missed.items()) fresh += each.value().get<u64>();
    if (const u64 ready = r["standby_takeovers"].is_number() ? r["standby_takeovers"].get<u64>() : 0;
        ready + fresh > 0)
        text += fmt::format(
            "standbys took over {} times; {} times no standby could ({} not started yet, {} starting, {} not "
            "used because the previous process had delivered no frame)\n",
            ready, fresh, missed.value("none", 0), missed.value("starting", 0), missed.value("untried", 0));
    for (const json& f : r["failures"]) text += "FAILED: " + f.get<std::string>() + "\n";
    return text;
}

json over_hosts(json report) {
    const json hosts = report.is_object() ? report.value("hosts", json()) : json();
    if (!hosts.is_object()) return report;
    for (const auto& [name, part] : hosts.items()) {
        for (const char* key :
             {"lost", "repeated", "torn", "dead_letter_count", "restarts", "stalls", "damaged"})
            add_number(report, part, key);
        const json kills = part.value("kills_at", json::object());
        for (const auto& each : kills.items()) add_number(report["kills_at"], kills, each.key().c_str());
        if (report.value("image_hash_of", json()).is_null() && report.value("image_hash", json()).is_null())
            for (const char* key : {"image_hash", "image_hash_of"}) report[key] = part.value(key, json());
        add_names(report, part, "sinks", "stage", name);
        json recoveries = part.value("recoveries", json::array());
        for (json& r : recoveries) move_times(r, part.value("clock", json::object()));
        add_names(report, {{"recoveries", std::move(recoveries)}}, "recoveries", "seat", name);
    }
    return report;
}

}  // namespace carousel::supervisor::chaos
