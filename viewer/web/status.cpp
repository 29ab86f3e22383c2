#include "viewer/web/status.hpp"

#include <algorithm>
#include <cmath>

#include "core/enum_names.hpp"
#include "core/json.hpp"
#include "device/backend.hpp"
#include "telemetry/bottleneck.hpp"
#include "viewer/web/requests.hpp"

namespace carousel::telemetry {
BOOST_DESCRIBE_ENUM(event_kind, info, good, warning, bad)
}

namespace carousel::viewer::web {
namespace {

using nlohmann::json;
constexpr std::size_t most_events = 100;

/// Rounds to four digits, which are sufficient for clients.
f64 rounded(f64 v) {
    if (!std::isfinite(v) || v == 0) return 0;
    const f64 scale = std::pow(10.0, 3 - std::floor(std::log10(std::abs(v))));
    return std::abs(v) >= 1000 ? std::round(v) : std::round(v * scale) / scale;
}

f64 age_s(u64 then, u64 now) { return rounded(now > then ? static_cast<f64>(now - then) / 1e9 : 0.0); }
json age_or_null(u64 then, u64 now) { return then == 0 ? json() : json(age_s(then, now)); }
json text_or_null(const std::string& text) { return text.empty() ? json() : json(text); }
json number_or_null(bool known, f64 v) { return known ? json(rounded(v)) : json(); }
const char* device_name(u32 kind) { return kind == 1 ? "cuda" : "cpu"; }

// The supervisor's report has more states than the control block (backoff, failed, down); if there is no
// report, the control block is used.
std::string state_of(const view& v, u32 seat) {
    if (seat >= v.snap.seats.size()) return "";
    const telemetry::seat_view& s = v.snap.seats[seat];
    const seat_report* r = v.report_of(seat);
    return s.paused ? "stopped" : r != nullptr && r->state ? *r->state : telemetry::name_of(s.state);
}

json optional_or_null(const std::optional<f64>& v) { return v ? json(rounded(*v)) : json(); }

/// Returns the supervisor's report on a process of this host or another one.
json seat_json(const seat_report& r) {
    return {{"label", r.label},
            {"pid", r.pid.value_or(0) != 0 ? json(*r.pid) : json()},
            {"state", r.state.value_or("?")},
            {"paused", r.is_paused()},
            {"restarts", r.restarts.value_or(0)},
            {"last_exit", r.last_exit},
            {"cpu_percent", optional_or_null(r.cpu_percent)},
            {"memory_bytes", r.memory_bytes.value_or(0) > 0 ? json(*r.memory_bytes) : json()},
            {"age_s", optional_or_null(r.age_s)}};
}

/// Values in the control block replace the values of the supervisor's report, because the report may be half
/// a second old.
json process_json(const view& v, u32 seat, u64 now) {
    const telemetry::seat_view& s = v.snap.seats[seat];
    const seat_report* r = v.report_of(seat);
    json out = seat_json(r != nullptr ? *r : seat_report{});
    const bool alive = s.pid != 0 && s.state != ring::entry_state::fenced;
    out.update({{"label", v.snap.seat_label(seat)},
                {"instance", s.instance},
                {"pid", alive ? json(s.pid) : json()},
                {"state", state_of(v, seat)},
                {"paused", s.paused},
                {"restarts", s.restarts()},
                {"age_s", age_or_null(s.live_since_ns, now)},
                {"jobs_in_flight", s.jobs_in_flight}});
    return out;
}

json shares_json(const std::optional<telemetry::stage_shares>& known) {
    const telemetry::stage_shares t = known.value_or(telemetry::stage_shares{});
    const auto share = [&](f64 v) { return number_or_null(known.has_value(), v); };
    return {{"busy", share(t.busy)},
            {"wait_input", share(t.wait_input)},
            {"wait_output", share(t.wait_output)},
            {"wait_own", share(t.wait_own)},
            {"wait_turn", share(t.wait_turn)}};
}

json stage_json(const view& v, std::size_t k, u64 now) {
    const telemetry::stage_view& s = v.snap.stages[k];
    const bool rated = k < v.rates.stages.size() && v.rates.span_s > 0;
    const telemetry::stage_rates r = rated ? v.rates.stages[k] : telemetry::stage_rates{};
    const bool sink = s.is_sink();
    json processes = json::array();
    for (u32 seat = s.first_seat; seat < s.first_seat + s.seats; ++seat)
        processes.push_back(process_json(v, seat, now));
    json out{
        {"name", s.name},
        {"device", s.seats > 0 ? json(device_name(v.snap.seats[s.first_seat].device)) : json()},
        {"frames", s.frames},
        {"frames_per_second", number_or_null(rated, r.frames_per_second)},
        {"latency_p50_ms", number_or_null(r.latency_p50_ms > 0, r.latency_p50_ms)},
        {"latency_p99_ms", number_or_null(r.latency_p99_ms > 0, r.latency_p99_ms)},
        {"end_to_end_p50_ms", number_or_null(sink && r.end_to_end_p50_ms > 0, r.end_to_end_p50_ms)},
        {"end_to_end_p99_ms", number_or_null(sink && r.end_to_end_p99_ms > 0, r.end_to_end_p99_ms)},
        {"from_capture_p50_ms", number_or_null(sink && r.from_capture_p50_ms > 0, r.from_capture_p50_ms)},
        {"from_capture_p99_ms", number_or_null(sink && r.from_capture_p99_ms > 0, r.from_capture_p99_ms)},
        {"tombstone_frames", s.tombstones},
        {"torn_frames", s.torn},
        {"in_flight", s.in_flight},
        {"processes", processes}};
    out.update(shares_json(rated ? std::optional(r.time) : std::nullopt));
    out["settings"] = json::array();
    if (const auto of = v.files.settings.find(s.name); of != v.files.settings.end())
        for (const auto& [key, value] : of->second)
            out["settings"].push_back({{"name", key}, {"value", value}});
    return out;
}

json host_json(const host_report& h) {
    json stages = json::array();
    for (const seat_report& s : h.seats) {
        json& out = stages.emplace_back(seat_json(s));
        out["frames_per_second"] = optional_or_null(s.frames_per_second);
        out.update(shares_json(s.shares()));
    }
    return {{"name", h.name},
            {"address", h.address},
            {"state", h.state},
            {"clock_ahead_ms", h.clock_ahead_ms ? json(*h.clock_ahead_ms) : json()},
            {"clock_error_ms", h.clock_error_ms ? json(*h.clock_error_ms) : json()},
            {"text", h.text},
            {"stages", stages}};
}

json readers_json(const view& v, const telemetry::link_view& l) {
    json out = json::array();
    for (const telemetry::group_view& g : l.groups) {
        const bool blocking = g.state == ring::group_state::blocking;
        out.push_back({{"stage", g.stage != shm::none ? v.snap.stage_name(g.stage) : "viewer"},
                       {"kind", g.state == ring::group_state::latest ? "latest"
                                : blocking                           ? "blocking"
                                                                     : "closed"},
                       {"lag", g.lag},
                       {"leased", g.leases},
                       {"skipped", g.skipped}});
    }
    return out;
}

json ring_json(const view& v, std::size_t k) {
    using telemetry::slot_phase;
    const telemetry::link_view& l = v.snap.links[k];
    const bool rated = k < v.rates.links.size() && v.rates.span_s > 0;
    const telemetry::link_rates r = rated ? v.rates.links[k] : telemetry::link_rates{};
    json slots = json::array();
    for (const telemetry::slot_view& s : l.slots) {
        const bool has_frame =
            s.phase == slot_phase::ready || s.phase == slot_phase::leased || s.phase == slot_phase::done;
        slots.push_back(
            {{"state", telemetry::name_of(s.phase)}, {"frame", has_frame ? json(s.ring_sequence) : json()}});
    }
    return {{"stage", l.name},
            {"slot_bytes", l.slot_bytes},
            {"memory",
             l.memory <= 2 ? json(device::name_of(static_cast<device::memory_kind>(l.memory))) : json()},
            {"window", l.window},
            {"newest_frame", l.newest > l.tail ? json(l.newest - 1) : json()},
            {"sent_per_second", number_or_null(rated, r.sent_per_second)},
            {"received_per_second", number_or_null(rated, r.received_per_second)},
            {"bytes_per_second", number_or_null(rated, r.bytes_per_second)},
            {"slots", slots},
            {"readers", readers_json(v, l)}};
}

/// The number of frames and the frames per second of the slowest sink.
struct delivery {
    u64 frames = 0;
    f64 per_second = 0;
    bool known = false;
};
delivery delivered(const view& v) {
    delivery d;
    for (std::size_t k = 0; k < v.snap.stages.size(); ++k) {
        if (!v.snap.stages[k].is_sink()) continue;
        const telemetry::stage_rates r =
            k < v.rates.stages.size() ? v.rates.stages[k] : telemetry::stage_rates{};
        d.frames = d.known ? std::min(d.frames, v.snap.stages[k].frames) : v.snap.stages[k].frames;
        d.per_second = d.known ? std::min(d.per_second, r.frames_per_second) : r.frames_per_second;
        d.known = true;
    }
    return d;
}

telemetry::bottleneck limit_of(const view& v) {
    return v.phase == run_phase::running ? telemetry::find_bottleneck(v.snap, v.rates)
                                         : telemetry::bottleneck{};
}

std::string text_of_limit(const view& v, const telemetry::bottleneck& limit) {
    return telemetry::describe(limit, v.snap.stage_name(limit.stage), v.snap.fps);
}

/// Returns the state, and a text with the state and the stages that the run waits for. Both come from the
/// supervisor's report or, if there is no report, from the control block.
std::pair<std::string, std::string> run_state(const view& v) {
    using kind = telemetry::bottleneck::kind;
    if (v.phase != run_phase::running) return {name_of(v.phase), name_of(v.phase)};
    if (!v.led) return {"unsupervised", "no supervisor"};
    if (!v.whole.state.empty())
        return {v.whole.state, v.whole.state_text.empty() ? v.whole.state : v.whole.state_text};
    const telemetry::bottleneck limit = limit_of(v);
    if (limit.what == kind::paused) return {"paused", "paused: " + text_of_limit(v, limit)};
    if (limit.what == kind::down) return {"waiting", "waiting: " + text_of_limit(v, limit)};
    return {"running", "running"};
}

json pipeline_json(const view& v, u64 now) {
    const telemetry::snapshot& s = v.snap;
    const delivery d = delivered(v);
    const telemetry::whole_latency l = telemetry::whole_latency_of(v.rates);
    const auto known = [](f64 ms) { return number_or_null(ms > 0, ms); };
    u64 restarts = 0;
    for (const telemetry::seat_view& seat : s.seats) restarts += seat.restarts();
    const bool counted = s.end != ring::end_unknown && s.end != ring::end_stopping;
    const telemetry::bottleneck limit = limit_of(v);
    const auto [state, state_text] = run_state(v);
    return {{"name", v.run.name},
            {"state", state},
            {"state_text", state_text},
            {"hindrance", hindrance(v)},
            {"file", text_or_null(v.run.file)},
            {"run_id", s.run_id},
            {"width", s.width},
            {"height", s.height},
            {"frames_per_second_wanted", s.fps},
            {"frames_wanted", counted ? json(s.end) : json()},
            {"supervisor_pid", v.run.supervisor.pid},
            {"age_s", age_s(s.created_ns, now)},
            {"frames", d.frames},
            {"frames_per_second", number_or_null(d.known && v.rates.span_s > 0, d.per_second)},
            {"end_to_end_p50_ms", known(l.end_to_end_p50_ms)},
            {"end_to_end_p99_ms", known(l.end_to_end_p99_ms)},
            {"from_capture_p50_ms", known(l.from_capture_p50_ms)},
            {"from_capture_p99_ms", known(l.from_capture_p99_ms)},
            {"restarts", restarts},
            {"bottleneck", telemetry::bottleneck_json(limit, s.stage_name(limit.stage), s.fps)}};
}

json crash_json(const view& v, u64 now) {
    const auto& c = v.events.last_crash();
    if (!c) return {};
    const bool back = c->back_ns != 0;
    const std::string follows = back ? "" : telemetry::describe_vacancy(*c, state_of(v, c->seat));
    return {{"stage", c->label},
            {"how", text_or_null(c->how)},
            {"asked", c->asked == ring::requested_end::down      ? json("down")
                      : c->asked == ring::requested_end::restart ? json("restart")
                                                                 : json()},
            {"text", telemetry::describe(*c)},
            {"follows", text_or_null(follows)},
            {"old_pid", c->old_pid},
            {"new_pid", back ? json(c->new_pid) : json()},
            {"age_s", age_s(c->died_ns, now)},
            {"back_after_s", back ? json(age_s(c->died_ns, c->back_ns)) : json()}};
}

/// Returns the name of the run's folder, which identifies the run in requests.
std::string folder_name(const run::record& r) { return r.folder.substr(r.folder.rfind('/') + 1); }

std::string text_of(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace); }

template <typename F>
json column(const view& v, F value) {
    json out = json::array();
    for (const telemetry::history_sample& h : v.past.samples()) out.push_back(rounded(value(h)));
    return out;
}

bool every_sink_has_a_frame(const view& v) {
    return std::all_of(v.snap.stages.begin(), v.snap.stages.end(),
                       [](const telemetry::stage_view& s) { return !s.is_sink() || s.frames > 0; });
}

}  // namespace

std::string hindrance(const view& v) {
    using kind = telemetry::bottleneck::kind;
    if (v.phase != run_phase::running) return v.notice.empty() ? "no pipeline is running" : v.notice;
    if (!v.led) return v.notice.empty() ? "no supervisor controls the run" : v.notice;
    // The supervisor's report distinguishes a stage that is down from a stage that is starting; the control
    // block does not.
    const std::string& known = v.whole.limit_kind;
    if (known == "down" || known == "paused" || known == "vacant") return v.whole.limit_text;
    const telemetry::bottleneck limit = limit_of(v);
    return limit.what == kind::paused || limit.what == kind::down ? text_of_limit(v, limit) : "";
}

std::string status_json(const view& v, const picture_status& p, const stream_status& stream,
                        const client_rights& rights, u64 now) {
    json out{{"version", 2},
             {"phase", name_of(v.phase)},
             {"notice", v.notice},
             {"may_act", rights.may_act},
             {"read_only", rights.read_only},
             {"pipeline", nullptr},
             {"crash", nullptr},
             {"problems", v.whole.problems}};
    out["stages"] = out["rings"] = out["events"] = out["choices"] = out["hosts"] = json::array();
    if (v.phase != run_phase::running)
        for (const run::record& r : v.choices)
            out["choices"].push_back(
                {{"name", folder_name(r)}, {"pid", r.supervisor.pid}, {"file", text_or_null(r.file)}});
    if (v.phase != run_phase::waiting) {
        out["pipeline"] = pipeline_json(v, now);
        out["crash"] = crash_json(v, now);
        for (std::size_t k = 0; k < v.snap.stages.size(); ++k) out["stages"].push_back(stage_json(v, k, now));
        for (std::size_t k = 0; k < v.snap.links.size(); ++k) out["rings"].push_back(ring_json(v, k));
        for (const host_report& h : v.hosts) out["hosts"].push_back(host_json(h));
    }
    out["parameters"] = parameters_of(v);
    const auto& events = v.events.events();
    for (std::size_t k = events.size() - std::min(events.size(), most_events); k < events.size(); ++k)
        out["events"].push_back({{"age_s", age_s(events[k].time_ns, now)},
                                 {"kind", enum_name(events[k].kind)},
                                 {"text", events[k].text}});
    json shown = json::array();
    for (const shown_picture& s : p.shown) shown.push_back(shown_json(s));
    out["picture"] = {{"width", p.width},
                      {"height", p.height},
                      {"stage", text_or_null(p.stage)},
                      {"frame", p.taken_ns != 0 ? json(p.ring_sequence) : json()},
                      {"age_s", age_or_null(p.taken_ns, now)},
                      {"way", text_or_null(p.path)},
                      {"problem", text_or_null(p.problem)},
                      {"watchers", p.streams},
                      {"most_watchers", stream.most},
                      {"stream_open", stream.open},
                      {"carries", shown.empty() ? json::array() : shown.front().at("carries")},
                      {"shown", shown},
                      {"note", p.note},
                      {"request", picture_request_json(p.request)},
                      {"discarded", p.losses.revoked + p.losses.torn + p.losses.tombstones}};
    return text_of(out);
}

std::string history_json(const view& v, u64 now) {
    json out;
    out["age_s"] = json::array();
    for (const telemetry::history_sample& h : v.past.samples())
        out["age_s"].push_back(std::round(static_cast<f64>(now - h.time_ns) / 1e7) / 100);
    out["end_to_end_p99_ms"] = column(v, [](const auto& h) { return h.end_to_end_p99_ms; });
    out["stages"] = out["rings"] = out["deaths"] = json::array();
    for (std::size_t k = 0; k < v.snap.stages.size(); ++k)
        out["stages"].push_back(
            {{"name", v.snap.stages[k].name},
             {"frames_per_second",
              column(v, [k](const auto& h) { return k < h.stage_fps.size() ? h.stage_fps[k] : 0.0F; })},
             {"latency_p99_ms", column(v, [k](const auto& h) {
                  return k < h.stage_p99_ms.size() ? h.stage_p99_ms[k] : 0.0F;
              })}});
    for (std::size_t k = 0; k < v.snap.links.size(); ++k)
        out["rings"].push_back({{"stage", v.snap.links[k].name},
                                {"bytes_per_second", column(v, [k](const auto& h) {
                                     return k < h.link_bytes_per_second.size() ? h.link_bytes_per_second[k]
                                                                               : 0.0F;
                                 })}});
    for (const telemetry::restart_mark& m : v.past.marks())
        out["deaths"].push_back({{"age_s", age_s(m.time_ns, now)}, {"stage", v.snap.stage_name(m.stage)}});
    return text_of(out);
}

probe_answer health(const view& v) {
    const std::string why = hindrance(v);
    if (v.phase != run_phase::running || !v.led) return {false, why};
    if (!v.notice.empty()) return {false, v.notice};
    return {true, why.empty() ? "ok" : why};
}

probe_answer readiness(const view& v) {
    probe_answer a = health(v);
    if (!a.ok) return a;
    const std::string why = hindrance(v), &state = v.whole.state;
    if (!why.empty()) return {false, why};
    if (state == "stopping" || state == "ending" || state == "done" || state == "rebuilding")
        return {false, "the run is " + state};
    if (!every_sink_has_a_frame(v)) return {false, "no frame has reached every sink yet"};
    return a;
}

}  // namespace carousel::viewer::web
