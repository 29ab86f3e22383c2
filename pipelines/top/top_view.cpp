#include "top/top.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "os/table.hpp"

namespace carousel::supervisor {
namespace {

using telemetry::slot_phase;
constexpr std::size_t shown_events = 8;
constexpr const char* off = "\x1b[0m";

/// Returns a line without colours, truncated to `width` columns.
std::string truncate(const std::string& text, std::size_t width) {
    if (width == 0 || width_of(text) <= width) return text;
    std::string out;
    std::size_t columns = 0;
    for (const char c : text) {
        if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U && ++columns > width) break;
        out += c;
    }
    return out;
}

std::vector<std::string> lines_of(const table& t) {
    std::vector<std::string> lines;
    const std::string text = t.text();
    for (std::size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
        lines.push_back(text.substr(at, end - at));
    return lines;
}

class screen_text {
public:
    explicit screen_text(const top_input& in) : in_(&in) {}
    void add(const std::string& text, const char* color = "") {
        const std::string line = truncate(text, in_->width);
        lines_.push_back(in_->color && *color != 0 ? color + line + off : line);
    }
    /// Adds a line that ends with slot letters, each in its colour.
    void add_slots(const std::string& text, std::size_t slots) {
        const std::string line = truncate(text, in_->width);
        if (!in_->color) return add(line);
        const std::size_t begin = std::min(line.size(), text.size() - slots);
        std::string out = line.substr(0, begin);
        for (std::size_t k = begin; k < line.size(); ++k) {
            const char* c = line[k] == 'w'   ? "\x1b[33m"
                            : line[k] == 'R' ? "\x1b[32m"
                            : line[k] == 'r' ? "\x1b[36m"
                            : line[k] == '!' ? "\x1b[31m"
                                             : "\x1b[2m";
            out += c + std::string(1, line[k]) + off;
        }
        lines_.push_back(out);
    }
    [[nodiscard]] std::vector<std::string> take() { return std::move(lines_); }

private:
    const top_input* in_;
    std::vector<std::string> lines_;
};

/// Returns the supervisor's row of a seat: rows are in the order of seats.
const run::ps_stage* row_of(const run::ps_answer& ps, const telemetry::snapshot& s, u32 seat) {
    if (seat >= ps.stages.size()) return nullptr;
    const run::ps_stage& row = ps.stages[seat];
    return row.name.value_or("") == s.stage_name(s.seats[seat].stage) ? &row : nullptr;
}

std::string state_of(const telemetry::seat_view& s, const run::ps_stage* row) {
    if (s.paused) return "stopped";
    // Between two replies of the supervisor, the control block has more recent data about which processes are
    // alive; only the supervisor knows the states backoff and failed.
    if (row != nullptr && row->state.value_or("") != "running") return row->state.value_or("?");
    return telemetry::name_of(s.state);
}

std::string text_or(const std::optional<std::string>& text) { return text.value_or("-"); }

std::string number_or(const std::optional<f64>& number, std::string (*as)(f64)) {
    return number ? as(*number) : "-";
}

std::string milliseconds(f64 ms) { return ms > 0 ? fmt::format("{:.{}f}", ms, ms < 9.95 ? 2 : 1) : "-"; }

/// Returns the second line: the latency through the whole pipeline, and the pipeline's bottleneck.
std::string second_line(const top_input& in) {
    const telemetry::snapshot& s = *in.snap;
    const telemetry::whole_latency l = telemetry::whole_latency_of(*in.rates);
    std::string text;
    const auto add = [&text](const char* what, f64 p50, f64 p99) {
        if (p50 > 0)
            text += fmt::format("{}{} {} ms (p99 {})", text.empty() ? "" : "; ", what, milliseconds(p50),
                                milliseconds(p99));
    };
    add("end to end", l.end_to_end_p50_ms, l.end_to_end_p99_ms);
    const telemetry::bottleneck b = telemetry::find_bottleneck(s, *in.rates);
    const std::string limit = telemetry::describe(b, s.stage_name(b.stage), s.fps);
    if (!limit.empty()) text += (text.empty() ? "" : "; ") + limit;
    // added last, because a narrow screen truncates the end of the line
    add("from capture", l.from_capture_p50_ms, l.from_capture_p99_ms);
    return text;
}

void add_head(screen_text& p, const top_input& in) {
    const telemetry::snapshot& s = *in.snap;
    const run::ps_pipeline& pipeline_row = in.ps.pipeline;
    u64 delivered = ~u64{0};
    f64 rate = 0;
    for (std::size_t k = 0; k < s.links.size(); ++k) {
        const u32 reader = s.links[k].groups.empty() ? shm::none : s.links[k].groups.front().stage;
        if (reader >= s.stages.size() || !s.stages[reader].is_sink()) continue;  // sinks' rings only
        if (s.links[k].tail < delivered)
            rate = in.rates->links.size() > k ? in.rates->links[k].received_per_second : 0;
        delivered = std::min(delivered, s.links[k].tail);
    }
    p.add(
        printable(fmt::format("{}: {}, device {}, up {}, {} frames, {} frames/s", s.pipeline,
                              text_or(pipeline_row.state_text ? pipeline_row.state_text : pipeline_row.state),
                              text_or(pipeline_row.device), number_or(pipeline_row.uptime_s, human_seconds),
                              delivered == ~u64{0} ? 0 : delivered, human_rate(rate))),
        "\x1b[1m");
    if (const std::string more = second_line(in); !more.empty()) p.add(printable(more));
    if (!in.notice.empty()) p.add(in.notice, "\x1b[31m");
}

struct shown_stage : stage_row {
    std::vector<std::string> figures;  ///< cells of the columns after STATE
    std::optional<std::string> last_exit;
    u32 stage = shm::none;  ///< index into snapshot::stages; none: of another host
};

std::vector<shown_stage> shown_stages(const top_input& in) {
    const telemetry::snapshot& s = *in.snap;
    std::vector<shown_stage> out;
    for (u32 k = 0; k < s.seats.size(); ++k) {
        const telemetry::seat_view& seat = s.seats[k];
        const run::ps_stage* row = row_of(in.ps, s, k);
        const run::ps_stage known = row != nullptr ? *row : run::ps_stage{};
        const telemetry::stage_rates r =
            seat.stage < in.rates->stages.size() ? in.rates->stages[seat.stage] : telemetry::stage_rates{};
        const bool alive = seat.state == ring::entry_state::live || seat.state == ring::entry_state::starting;
        shown_stage& each = out.emplace_back();
        each.label = s.seat_label(k);
        each.state = state_of(seat, row);
        each.pid = alive && seat.pid != 0 ? std::to_string(seat.pid) : "-";
        each.last_exit = known.last_exit;
        each.stage = seat.stage;
        each.figures = {number_or(known.age_s, human_seconds),
                        std::to_string(seat.restarts()),
                        text_or(known.last_exit),
                        human_rate(r.frames_per_second),
                        fmt::format("{:.0f}%", r.time.busy * 100),
                        milliseconds(r.latency_p50_ms),
                        milliseconds(r.latency_p99_ms),
                        k < in.rates->cpu.size() ? fmt::format("{:.0f}%", in.rates->cpu[k] * 100) : "-",
                        known.memory_bytes ? human_bytes(*known.memory_bytes) : "-",
                        text_or(known.device)};
    }
    for (const run::ps_stage& remote : in.ps.stages) {  // rows of other hosts, as reported by their
                                                        // supervisors
        const std::string name = remote.name.value_or("");
        if (name.find('/') == std::string::npos) continue;
        const auto instances =
            std::count_if(in.ps.stages.begin(), in.ps.stages.end(),
                          [&](const run::ps_stage& other) { return other.name.value_or("") == name; });
        shown_stage& each = out.emplace_back();
        each.label = instances > 1 ? fmt::format("{}.{}", name, remote.instance.value_or(0)) : name;
        each.state = remote.state.value_or("?");
        each.pid = remote.pid ? std::to_string(*remote.pid) : "-";
        each.figures = {number_or(remote.age_s, human_seconds),
                        std::to_string(remote.restarts.value_or(0)),
                        text_or(remote.last_exit),
                        number_or(remote.frames_per_second, human_rate),
                        remote.busy ? fmt::format("{:.0f}%", *remote.busy * 100) : "-",
                        "-",
                        "-",
                        remote.cpu_percent ? fmt::format("{:.0f}%", *remote.cpu_percent) : "-",
                        remote.memory_bytes ? human_bytes(*remote.memory_bytes) : "-",
                        text_or(remote.device)};
    }
    return out;
}

const char* color_of_row(const stage_row& row, bool selected) {
    if (selected) return "\x1b[30;46m";
    if (row.state == "running" || row.state == "done") return "";
    return row.state == "failed" || row.state == "dead" || row.state == "dying" ? "\x1b[31m" : "\x1b[33m";
}

/// Returns the index of the first ring that the stage writes, or reads if it writes none.
std::size_t ring_of(const telemetry::snapshot& s, u32 stage) {
    if (stage >= s.stages.size()) return top_sections::npos;
    const std::vector<u32>& own =
        s.stages[stage].outputs.empty() ? s.stages[stage].inputs : s.stages[stage].outputs;
    return own.empty() ? top_sections::npos : own.front();
}

void add_stages(top_sections& to, const top_input& in) {
    const char* const name_title = in.marks ? "  STAGE" : "STAGE";
    table t({name_title, ">PID", "STATE", ">AGE", ">RESTARTS", "LAST EXIT", ">FRAMES/S", ">BUSY", ">P50 MS",
             ">P99 MS", ">CPU", ">MEMORY", "DEVICE"});
    const std::vector<shown_stage> rows = shown_stages(in);
    std::string exits;
    for (const shown_stage& each : rows) {
        const char* mark = !in.marks ? "" : each.label == in.selected ? "> " : "  ";
        std::vector<std::string> cells{mark + each.label, each.pid, each.state};
        cells.insert(cells.end(), each.figures.begin(), each.figures.end());
        t.add(std::move(cells));
        if (each.last_exit)
            exits += fmt::format("{}{} {}", exits.empty() ? "" : ", ", each.label, *each.last_exit);
        to.ring_of_row.push_back(ring_of(*in.snap, each.stage));
    }
    t.fit(in.width, {{"DEVICE"},
                     {"LAST EXIT"},
                     {"MEMORY"},
                     {"AGE"},
                     {"CPU"},
                     {"RESTARTS"},
                     {"PID"},
                     {name_title, 12},
                     {"P50 MS"},
                     {"BUSY"},
                     {name_title, in.marks ? 8U : 6U}});
    const std::vector<std::string> lines = lines_of(t);
    screen_text title(in), stages(in), notes(in);
    for (std::size_t k = 0; k < lines.size(); ++k) {
        if (k == 0) {
            title.add(lines[k], "\x1b[7m");
            continue;
        }
        const bool selected = in.marks && rows[k - 1].label == in.selected;
        const std::size_t used = width_of(lines[k]);
        const std::string rest(selected && in.width > used ? in.width - used : 0,
                               ' ');  // a bar as wide as the screen
        stages.add(lines[k] + rest, color_of_row(rows[k - 1], selected));
    }
    if (!t.has("LAST EXIT") && !exits.empty()) notes.add(printable("last exit: " + exits));
    for (const run::ps_host& h : in.ps.hosts) notes.add(printable(run::describe(h)));
    for (const std::string& each : run::depth_sentences(in.ps)) notes.add(printable(each));
    to.stages_title = title.take().front();
    to.stages = stages.take();
    to.notes = notes.take();
}

std::string readers_text(const telemetry::snapshot& s, const telemetry::link_view& l) {
    std::string text;
    for (const telemetry::group_view& g : l.groups) {
        const bool latest = g.state == ring::group_state::latest;
        const std::string name = g.stage == shm::none ? "a viewer" : s.stage_name(g.stage);
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name,
                            latest ? std::string("(latest)") : fmt::format("lag {}", g.lag));
    }
    return text;
}

void add_rings(top_sections& to, const top_input& in) {
    const telemetry::snapshot& s = *in.snap;
    table t({"RING", ">FRAME", ">IN/S", ">OUT/S", ">BYTES/S", "READERS", "SLOTS"});
    for (std::size_t k = 0; k < s.links.size(); ++k) {
        const telemetry::link_rates r =
            k < in.rates->links.size() ? in.rates->links[k] : telemetry::link_rates{};
        t.add({s.links[k].name, std::to_string(s.links[k].newest), human_rate(r.sent_per_second),
               human_rate(r.received_per_second),
               human_bytes(r.bytes_per_second > 0 ? static_cast<u64>(r.bytes_per_second) : 0),
               readers_text(s, s.links[k]), slot_letters(s.links[k])});
    }
    t.fit(in.width, {{"BYTES/S"}, {"READERS", 16}, {"OUT/S"}, {"READERS"}, {"IN/S"}, {"FRAME"}, {"RING", 6}});
    const std::vector<std::string> lines = lines_of(t);
    screen_text title(in), rings(in);
    for (std::size_t k = 0; k < lines.size(); ++k) {
        if (k == 0)
            title.add(lines[k], "\x1b[7m");
        else
            rings.add_slots(lines[k], s.links[k - 1].slots.size());
    }
    to.rings_title = title.take().front();
    to.rings = rings.take();
}

void add_events(screen_text& p, const top_input& in) {
    if (in.events == nullptr) return;
    const std::size_t first = in.events->size() > shown_events ? in.events->size() - shown_events : 0;
    for (std::size_t k = in.events->size(); k-- > first;) {
        const telemetry::run_event& e = (*in.events)[k];
        const u64 ago = in.snap->taken_ns > e.time_ns ? in.snap->taken_ns - e.time_ns : 0;
        const char* color = e.kind == telemetry::event_kind::bad       ? "\x1b[31m"
                            : e.kind == telemetry::event_kind::warning ? "\x1b[33m"
                            : e.kind == telemetry::event_kind::good    ? "\x1b[32m"
                                                                       : "";
        p.add(printable(fmt::format("{:>7} ago  {}", human_seconds(static_cast<f64>(ago) / 1e9), e.text)),
              color);
    }
}

}  // namespace

std::string slot_letters(const telemetry::link_view& link) {
    std::string out;
    for (const telemetry::slot_view& s : link.slots) {
        switch (s.phase) {
            case slot_phase::free:
                out += '.';
                break;
            case slot_phase::fill:
                out += 'w';
                break;
            case slot_phase::ready:
                out += 'R';
                break;
            case slot_phase::leased:
                out += 'r';
                break;
            case slot_phase::done:
                out += 'd';
                break;
            case slot_phase::quarantined:
                out += '!';
                break;
        }
    }
    return out;
}

std::vector<stage_row> stage_rows(const top_input& in) {
    const std::vector<shown_stage> rows = shown_stages(in);
    return {rows.begin(), rows.end()};
}

top_sections sections_of(const top_input& in) {
    top_sections out;
    screen_text head(in), events(in);
    add_head(head, in);
    add_stages(out, in);
    add_rings(out, in);
    add_events(events, in);
    out.head = head.take();
    out.events = events.take();
    return out;
}

std::vector<std::string> top_lines(const top_input& in) {
    const top_sections s = sections_of(in);
    std::vector<std::string> lines = s.head;
    const auto add = [&lines](const std::vector<std::string>& more) {
        lines.insert(lines.end(), more.begin(), more.end());
    };
    add({"", s.stages_title});
    add(s.stages);
    add(s.notes);
    add({"", s.rings_title});
    add(s.rings);
    if (!s.events.empty()) add({""});
    add(s.events);
    if (in.rows > 0 && lines.size() > in.rows) lines.resize(in.rows);
    return lines;
}

}  // namespace carousel::supervisor
