#include "chaos/over_hosts.hpp"

#include <cmath>
#include <string>

#include "core/json.hpp"
#include "core/types.hpp"

namespace carousel::supervisor::chaos {
namespace {

using nlohmann::json;

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
