#include "viewer/web/status.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace carousel::viewer::web {
namespace {

using telemetry::snapshot;

std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text) {
        if (c == '\\' || c == '"') out += '\\';
        out += c == '\n' ? ' ' : c;
    }
    return out;
}

class writer {
public:
    explicit writer(std::string pipeline) : pipeline_(escaped(pipeline)) {}
    void family(const char* name, const char* type, const char* help) {
        name_ = name;
        fmt::format_to(std::back_inserter(text_), "# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
    }
    /// `labels`: the text that follows the label of the pipeline: `stage="fragment"` or "".
    void value(const std::string& labels, f64 v, const char* suffix = "") {
        fmt::format_to(std::back_inserter(text_), "{}{}{{pipeline=\"{}\"{}{}}} {}\n", name_, suffix,
                       pipeline_, labels.empty() ? "" : ",", labels, v);
    }
    [[nodiscard]] std::string text() && { return std::move(text_); }

private:
    std::string pipeline_, text_;
    const char* name_ = "";
};

std::string label(const char* key, const std::string& value) {
    return fmt::format("{}=\"{}\"", key, escaped(value));
}

std::string seat_labels(const snapshot& s, u32 seat) {
    return fmt::format("{},stage_instance=\"{}\"", label("stage", s.stage_name(s.seats[seat].stage)),
                       s.seats[seat].instance);
}

template <typename F>
void each_stage(writer& w, const snapshot& s, const char* name, const char* type, const char* help, F value) {
    w.family(name, type, help);
    for (const telemetry::stage_view& st : s.stages) w.value(label("stage", st.name), value(st));
}

f64 seconds(u64 ns) { return static_cast<f64>(ns) / 1e9; }

void stages(writer& w, const snapshot& s) {
    using stage = telemetry::stage_view;
    each_stage(w, s, "carousel_frames_total", "counter", "Frames that a stage has committed.",
               [](const stage& st) { return static_cast<f64>(st.frames); });
    each_stage(
        w, s, "carousel_tombstone_frames_total", "counter",
        "Frames that a stage forwarded without a payload, because they were given up after max_attempts.",
        [](const stage& st) { return static_cast<f64>(st.tombstones); });
    each_stage(w, s, "carousel_torn_frames_total", "counter",
               "Frames that were overwritten while they were read, as their status words showed; must be 0.",
               [](const stage& st) { return static_cast<f64>(st.torn); });
    each_stage(w, s, "carousel_stage_busy_seconds_total", "counter",
               "Time with a frame in progress, counted while it lasts; summed over instances.",
               [](const stage& st) { return seconds(st.time.busy_ns); });
    each_stage(w, s, "carousel_stage_wait_input_seconds_total", "counter",
               "Time without an input frame, or before a source's next frame is due.",
               [](const stage& st) { return seconds(st.time.wait_input_ns); });
    each_stage(w, s, "carousel_stage_wait_output_seconds_total", "counter",
               "Time without a free slot in the stage's output ring, because readers have not finished.",
               [](const stage& st) { return seconds(st.time.wait_output_ns); });
    each_stage(w, s, "carousel_stage_wait_own_seconds_total", "counter",
               "Time spent waiting for the stage's own earlier frames.",
               [](const stage& st) { return seconds(st.time.wait_own_ns); });
    each_stage(w, s, "carousel_stage_wait_turn_seconds_total", "counter",
               "Time spent waiting for another stage's turn on the GPU.",
               [](const stage& st) { return seconds(st.time.wait_turn_ns); });
}

// Metrics about the other hosts of the pipeline. The counters of those hosts' stages are not among them,
// because each host reports these counters in its own metrics.
void hosts(writer& w, const std::vector<host_report>& all) {
    if (all.empty()) return;
    w.family("carousel_host_up", "gauge", "1 while another host of the pipeline answers.");
    for (const host_report& h : all) w.value(label("host", h.name), h.is_there() ? 1 : 0);
    w.family("carousel_host_clock_ahead_seconds", "gauge",
             "Offset of the other host's monotonic clock from the monotonic clock of this host.");
    for (const host_report& h : all)
        if (h.clock_ahead_ms) w.value(label("host", h.name), *h.clock_ahead_ms / 1e3);
    w.family("carousel_host_clock_error_seconds", "gauge",
             "Uncertainty of carousel_host_clock_ahead_seconds.");
    for (const host_report& h : all)
        if (h.clock_error_ms) w.value(label("host", h.name), *h.clock_error_ms / 1e3);
}

void seats(writer& w, const snapshot& s) {
    w.family("carousel_stage_up", "gauge", "1 while a process of the stage is running.");
    for (u32 k = 0; k < s.seats.size(); ++k)
        w.value(seat_labels(s, k), s.seats[k].state == ring::entry_state::live ? 1 : 0);
    w.family("carousel_stage_restarts_total", "counter", "Processes that replaced a dead process.");
    for (u32 k = 0; k < s.seats.size(); ++k) w.value(seat_labels(s, k), s.seats[k].restarts());
}

u64 count(const telemetry::bucket_counts& b) {
    u64 sum = 0;
    for (const u64 n : b) sum += n;
    return sum;
}

void latency(writer& w, const view& v) {
    const snapshot& s = v.snap;
    const auto quantiles = [&](const std::string& stage, const telemetry::bucket_counts& recent,
                               const telemetry::bucket_counts& all) {
        for (const f64 q : {0.5, 0.9, 0.99})
            w.value(fmt::format("{},quantile=\"{}\"", stage, q),
                    count(recent) == 0 ? std::nan("") : telemetry::percentile_ms(recent, q) / 1e3);
        w.value(stage, static_cast<f64>(count(all)), "_count");
    };
    const auto recent = [&](std::size_t k) {
        return k < v.rates.stages.size() ? v.rates.stages[k] : telemetry::stage_rates{};
    };
    w.family("carousel_stage_latency_seconds", "summary",
             "From a stage's claim of a frame to its commit; quantiles of the last 2 seconds.");
    for (std::size_t k = 0; k < s.stages.size(); ++k)
        quantiles(label("stage", s.stages[k].name), recent(k).latency, s.stages[k].latency);
    w.family("carousel_end_to_end_latency_seconds", "summary",
             "From the source's claim of a frame to a sink's commit; quantiles of the last 2 seconds.");
    for (std::size_t k = 0; k < s.stages.size(); ++k)
        if (s.stages[k].outputs.empty())
            quantiles(label("stage", s.stages[k].name), recent(k).end_to_end, s.stages[k].end_to_end);
    w.family("carousel_from_capture_latency_seconds", "summary",
             "From the capture time set by the source to a sink's commit; quantiles of the last 2 seconds.");
    for (std::size_t k = 0; k < s.stages.size(); ++k)
        if (s.stages[k].outputs.empty() && count(s.stages[k].from_capture) != 0)
            quantiles(label("stage", s.stages[k].name), recent(k).from_capture, s.stages[k].from_capture);
}

void rings(writer& w, const snapshot& s) {
    using telemetry::slot_phase;
    constexpr std::array phases{slot_phase::free,   slot_phase::fill, slot_phase::ready,
                                slot_phase::leased, slot_phase::done, slot_phase::quarantined};
    w.family("carousel_ring_slots", "gauge", "Slots of a stage's output ring, by state.");
    for (const telemetry::link_view& l : s.links)
        for (const slot_phase p : phases) {
            u64 n = 0;
            for (const telemetry::slot_view& slot : l.slots) n += slot.phase == p ? 1 : 0;
            w.value(fmt::format("{},{}", label("ring", l.name), label("state", telemetry::name_of(p))),
                    static_cast<f64>(n));
        }
    w.family("carousel_ring_bytes_total", "counter", "Bytes sent through a stage's output ring.");
    for (const telemetry::link_view& l : s.links)
        w.value(label("ring", l.name), static_cast<f64>(l.committed) * static_cast<f64>(l.slot_bytes));
    w.family("carousel_ring_skipped_frames_total", "counter", "Frames that a latest reader has skipped.");
    for (const telemetry::link_view& l : s.links)
        for (const telemetry::group_view& g : l.groups)
            if (g.state == ring::group_state::latest && g.stage != shm::none)
                w.value(fmt::format("{},{}", label("ring", l.name), label("reader", s.stage_name(g.stage))),
                        static_cast<f64>(g.skipped));
}

}  // namespace

std::string metrics_text(const view& v, u64 now) {
    writer w(v.run.name);
    const bool up = v.phase == run_phase::running;
    w.family("carousel_up", "gauge", "1 while the pipeline runs.");
    w.value("", up ? 1 : 0);
    if (!up) return std::move(w).text();
    w.family(
        "carousel_supervisor_up", "gauge",
        "1 while a supervisor controls the run; without one, the stages continue for supervisor_grace_s.");
    w.value("", v.led ? 1 : 0);
    w.family("carousel_frames_can_move", "gauge",
             "0 while a required stage is paused or down, or no supervisor controls the run; else 1.");
    w.value("", hindrance(v).empty() ? 1 : 0);
    stages(w, v.snap);
    seats(w, v.snap);
    hosts(w, v.hosts);
    latency(w, v);
    rings(w, v.snap);
    w.family("carousel_parameter_changes_total", "counter",
             "Times that parameters were set or reset since the run's start.");
    w.value("", static_cast<f64>(v.snap.parameter_number));
    w.family("carousel_run_age_seconds", "gauge", "Time since the run's control block was created.");
    w.value("", seconds(now - std::min(now, v.snap.created_ns)));
    w.family("carousel_supervisor_silence_seconds", "gauge", "Time since the supervisor's last heartbeat.");
    w.value("", seconds(now - std::min(now, v.snap.supervisor_heartbeat_ns)));
    return std::move(w).text();
}

}  // namespace carousel::viewer::web
