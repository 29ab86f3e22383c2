#include "telemetry/trace_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/errors.hpp"
#include "core/json.hpp"
#include "core/json_text.hpp"
#include "core/types.hpp"

namespace carousel::telemetry {
namespace {

using nlohmann::json;
constexpr i64 processes_a_host = 1000;  ///< range of process numbers per host
constexpr i64 threads_a_host = 10'000 * processes_a_host;

json trace_from(const std::string& text, const std::string& origin) {
    json t = parse_json_or_discard(text, json_channel::asset);
    const json other = t.is_object() ? t.value("otherData", json()) : json();
    if (!other.is_object() || !other.value("begin_ns", json()).is_number_unsigned() ||
        !t.value("traceEvents", json()).is_array())
        throw config_error(
            fmt::format("the trace of {} was not written by `carousel trace` of this version", origin));
    return t;
}

/// Shifts an event's process and thread numbers so that they follow the numbers of the preceding hosts. In a
/// metadata event the name is prefixed with the host's name.
void rename(json& event, const std::string& host, i64 number) {
    if (const json pid = event.value("pid", json()); pid.is_number())
        event["pid"] = pid.get<i64>() + number * processes_a_host;
    if (const json tid = event.value("tid", json()); tid.is_number() && tid != 0)
        event["tid"] = tid.get<i64>() + number * threads_a_host;
    if (event.value("ph", "") != "M") return;
    json& args = event["args"];
    if (args.contains("sort_index"))
        args["sort_index"] = args["sort_index"].get<i64>() + number * threads_a_host;
    if (args.contains("name")) args["name"] = host + "/" + args["name"].get<std::string>();
}

/// The flow of a frame begins with its first bar over all hosts and ends with its last one.
void join_flows(json& events) {
    std::map<u64, std::vector<json*>> by_frame;
    for (json& e : events)
        if (const std::string ph = e.value("ph", ""); ph == "s" || ph == "t" || ph == "f")
            by_frame[e.value("id", u64{0})].push_back(&e);
    for (auto& [ring_sequence, all] : by_frame) {
        std::stable_sort(all.begin(), all.end(), [](const json* a, const json* b) {
            return a->value("ts", 0.0) < b->value("ts", 0.0);
        });
        for (std::size_t k = 0; k < all.size(); ++k) {
            json& e = *all[k];
            e["ph"] = k == 0 ? "s" : k + 1 == all.size() ? "f" : "t";
            if (k == 0)
                e.erase("bp");
            else
                e["bp"] = "e";
        }
    }
}

}  // namespace

std::string join_traces(const std::string& coordinator, const std::vector<named_trace>& others,
                        std::vector<std::string>* warnings) {
    json all = trace_from(coordinator, "the host of `carousel run`");
    json& about = all["otherData"];
    const json clocks = about.value("clocks", json::object());
    about["joined"] = json::array();
    i64 number = 0;
    for (const named_trace& o : others) {
        json t = trace_from(o.text, "host " + o.host);
        if (!clocks.contains(o.host)) {
            std::string known;
            for (const auto& c : clocks.items()) known += (known.empty() ? "" : ", ") + c.key();
            throw config_error(fmt::format("the coordinator's trace has no clock of host {}; it has {}",
                                           o.host, known.empty() ? "none" : known));
        }
        const json& clock = clocks[o.host];
        const f64 apart_us = (static_cast<f64>(t["otherData"]["begin_ns"].get<u64>()) -
                              static_cast<f64>(about["begin_ns"].get<u64>())) /
                             1e3,
                  shift_us = apart_us - clock.value("ahead_ms", 0.0) * 1e3;
        ++number;
        for (json& e : t["traceEvents"]) {
            rename(e, o.host, number);
            if (e.contains("ts")) e["ts"] = e["ts"].get<f64>() + shift_us;
            all["traceEvents"].push_back(std::move(e));
        }
        const u64 overwritten = t["otherData"].value("records_overwritten", u64{0}),
                  missing = t["otherData"].value("missing_bars", u64{0});
        if (warnings != nullptr && (overwritten > 0 || missing > 0))
            warnings->push_back(fmt::format(
                "on host {}, {} stamps were overwritten before they were read, and {} bars are missing",
                o.host, overwritten, missing));
        about["joined"].push_back({{"host", o.host},
                                   {"records_overwritten", overwritten},
                                   {"missing_bars", missing},
                                   {"shifted_ms", shift_us / 1e3},
                                   {"error_ms", clock.value("error_ms", json())}});
    }
    join_flows(all["traceEvents"]);
    return all.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace carousel::telemetry
