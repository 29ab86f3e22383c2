#include "telemetry/trace_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "core/clock.hpp"
#include "core/json.hpp"

namespace carousel::telemetry {
namespace {

constexpr u32 lanes_a_seat = 64;         ///< thread numbers per instance
constexpr u64 bin_ns = 100 * ns_per_ms;  ///< width of a bin of the frames/s counters

std::string quoted(const std::string& s) {
    return nlohmann::json(s).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// The result of an attempt.
enum class fate : u8 { done, inferred, thrown_away, open };

class writer {
public:
    writer(const trace_content& c, trace_summary& out) : c_(c), shape_(*c.shape), out_(out) {}
    std::string run();

private:
    struct bar {
        const attempt* a = nullptr;
        u32 stage = 0;
        fate f = fate::open;
        u64 end_ns = 0;
    };
    void sort_out();
    void settle(bar& b) const;
    [[nodiscard]] u64 death_of(const attempt& a) const;
    void summarise();
    [[nodiscard]] std::vector<u64> sources() const;
    void names();
    void bars();
    void flows();
    void counters();
    void instants();
    template <typename... Args>
    void put(fmt::format_string<Args...> f, Args&&... args) {
        text_ += first_ ? "\n" : ",\n";
        first_ = false;
        fmt::format_to(std::back_inserter(text_), f, std::forward<Args>(args)...);
    }
    void phase(const bar& b, const char* name, u64 from, u64 until);
    [[nodiscard]] std::string facts_of(u32 stage, u64 ring_sequence) const {
        const auto at = c_.facts.find({stage, ring_sequence});
        return at != c_.facts.end() ? R"(,"carries":)" + at->second : std::string();
    }

    [[nodiscard]] f64 us(u64 ns) const {
        return (static_cast<f64>(ns) - static_cast<f64>(c_.begin_ns)) / 1e3;
    }
    [[nodiscard]] u32 process_of(u32 stage) const { return stage + 2; }
    [[nodiscard]] u32 thread_of(u32 stage, u32 seat, u32 lane) const {
        return process_of(stage) * 10'000 + shape_.seats[seat].instance * (lanes_a_seat + 1) +
               std::min(lane, lanes_a_seat);
    }
    [[nodiscard]] u32 stage_of(u32 seat) const {
        return seat < shape_.seats.size() ? shape_.seats[seat].stage : shm::none;
    }
    [[nodiscard]] bool skips(u32 stage) const {
        return (shape_.stages[stage].flags & shm::stage_flag::latest) != 0;
    }
    /// Returns the link whose tail shows how many frames a stage has completed.
    [[nodiscard]] u32 link_of(u32 stage) const {
        const stage_view& s = shape_.stages[stage];
        const std::vector<u32>& links = s.outputs.empty() ? s.inputs : s.outputs;
        return links.empty() ? shm::none : links.front();
    }
    [[nodiscard]] u64 delivered() const {
        u64 t = ~u64{0};
        for (const link_view& l : shape_.links) t = std::min(t, l.tail);
        return t;
    }

    const trace_content& c_;
    const snapshot& shape_;
    trace_summary& out_;
    std::map<u64, std::vector<bar>> frames_;     ///< maps a sequence to its bars, in order of stage and time
    std::map<std::pair<u32, u32>, u64> deaths_;  ///< maps {seat, epoch} to the time of death
    std::set<std::pair<u32, u32>> lanes_;        ///< {seat, lane} pairs that occur
    std::string text_;
    bool first_ = true;
};

u64 writer::death_of(const attempt& a) const {
    const auto at = deaths_.find({a.seat, a.epoch});
    return at != deaths_.end() ? at->second : c_.end_ns;
}

void writer::sort_out() {
    for (const trace_note& n : c_.notes)
        if (n.kind == "died") deaths_[{n.seat, n.epoch}] = n.time_ns;
    for (const attempt& a : *c_.attempts) {
        const u32 stage = stage_of(a.seat);
        if (stage >= shape_.stages.size() || a.claimed_ns < c_.begin_ns) continue;
        frames_[a.ring_sequence].push_back({&a, stage, a.committed_ns != 0 ? fate::done : fate::open, 0});
        lanes_.insert({a.seat, std::min<u32>(a.lane, lanes_a_seat - 1)});
    }
    for (auto& [ring_sequence, all] : frames_) {
        std::sort(all.begin(), all.end(), [](const bar& x, const bar& y) {
            return std::pair(x.stage, x.a->claimed_ns) < std::pair(y.stage, y.a->claimed_ns);
        });
        for (std::size_t k = 0; k < all.size(); ++k) {
            bar& b = all[k];
            if (b.f == fate::done) continue;
            const bool over =
                shape_.seats[b.a->seat].epoch != b.a->epoch || deaths_.count({b.a->seat, b.a->epoch}) != 0;
            const bool another = std::any_of(all.begin(), all.end(), [&](const bar& o) {
                return o.stage == b.stage &&
                       (o.f == fate::done || (&o != &b && o.a->claimed_ns > b.a->claimed_ns));
            });
            const u32 link = link_of(b.stage);
            const bool through =
                link != shm::none && ring_sequence < shape_.links[link].tail && !skips(b.stage);
            // The frame's owner died after the commit, before it wrote the `committed` record. The commit is
            // proved by the tail, which has passed the frame.
            if (!another && through && b.a->submitted_ns != 0)
                b.f = fate::inferred;
            else if (another || over)
                b.f = fate::thrown_away;
        }
        for (bar& b : all) {
            settle(b);
            if (b.f != fate::inferred) continue;
            for (const bar& o : all)
                if (o.stage > b.stage && o.a->claimed_ns > b.a->submitted_ns)
                    b.end_ns = std::min(b.end_ns, o.a->claimed_ns);
        }
    }
}

void writer::settle(bar& b) const {
    const attempt& a = *b.a;
    const u64 last =
        std::max({a.claimed_ns, a.process_ns, a.submitted_ns, a.complete_ns, a.committed_ns, a.finished_ns});
    b.end_ns = b.f == fate::done ? last : std::max(last, b.f == fate::open ? c_.end_ns : death_of(a));
}

/// Returns for each stage the sources that its frames come from, one bit per source. Chains of different
/// sources run at different rates, so a trace begins at a different frame for each of them.
std::vector<u64> writer::sources() const {
    std::vector<u64> of(shape_.stages.size());
    for (std::size_t round = 0; round < of.size(); ++round)  // the longest chain has at most this many stages
        for (std::size_t k = 0; k < of.size(); ++k) {
            if (shape_.stages[k].source) of[k] |= u64{1} << k;
            for (const u32 l : shape_.stages[k].inputs)
                if (l < shape_.links.size() && shape_.links[l].stage < of.size())
                    of[k] |= of[shape_.links[l].stage];
        }
    return of;
}

void writer::summarise() {
    const u64 end = delivered();
    const std::vector<u64> sources_of = sources();
    std::vector<u32> wanted;
    u32 source = shm::none;
    for (u32 k = 0; k < shape_.stages.size(); ++k) {
        if (source == shm::none && shape_.stages[k].source) source = k;
        if (!skips(k)) wanted.push_back(k);
    }
    for (const auto& frame : frames_) {  // no structured binding: clang 14 can't capture one
        const u64 ring_sequence = frame.first;
        const std::vector<bar>& all = frame.second;
        const auto here = [&](u32 stage) {
            return std::any_of(all.begin(), all.end(), [&](const bar& b) {
                return b.stage == stage && (b.f == fate::done || b.f == fate::inferred);
            });
        };
        for (const bar& b : all) out_.lost_attempts += b.f == fate::thrown_away ? 1 : 0;
        if (ring_sequence >= end || source == shm::none || !here(source)) continue;
        if (out_.frames++ == 0) out_.first = ring_sequence;
        out_.last = ring_sequence;
        u64 begun = 0;
        for (u32 k = 0; k < shape_.stages.size(); ++k)
            if (shape_.stages[k].source && here(k)) begun |= u64{1} << k;
        for (const u32 k : wanted) out_.missing += (sources_of[k] & ~begun) != 0 || here(k) ? 0 : 1;
    }
    for (const auto& [incarnation, when] : deaths_)
        out_.deaths +=
            stage_of(incarnation.first) < shape_.stages.size() && when >= c_.begin_ns && when < c_.end_ns ? 1
                                                                                                          : 0;
}

void writer::names() {
    put(R"({{"ph":"M","pid":1,"tid":0,"name":"process_name","args":{{"name":{}}}}})",
        quoted("pipeline " + shape_.pipeline));
    for (u32 k = 0; k < shape_.stages.size(); ++k) {
        put(R"({{"ph":"M","pid":{},"tid":0,"name":"process_name","args":{{"name":{}}}}})", process_of(k),
            quoted(shape_.stages[k].name));
        put(R"({{"ph":"M","pid":{},"tid":0,"name":"process_sort_index","args":{{"sort_index":{}}}}})",
            process_of(k), process_of(k));
    }
    const auto name = [&](u32 seat, u32 lane, const std::string& text) {
        const u32 stage = stage_of(seat);
        if (stage >= shape_.stages.size()) return;
        const u32 thread = thread_of(stage, seat, lane);
        put(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":{}}}}})", process_of(stage),
            thread, quoted(fmt::format("{} {}", shape_.seat_label(seat), text)));
        put(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_sort_index","args":{{"sort_index":{}}}}})",
            process_of(stage), thread, thread);
    };
    for (const auto& [seat, lane] : lanes_) name(seat, lane, fmt::format("lane {}", lane));
    for (u32 seat = 0; seat < shape_.seats.size(); ++seat) name(seat, lanes_a_seat, "waits");
}

void writer::phase(const bar& b, const char* name, u64 from, u64 until) {
    if (from == 0 || until <= from) return;
    put(R"({{"ph":"X","cat":"phase","name":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f}}})", name,
        process_of(b.stage), thread_of(b.stage, b.a->seat, std::min<u32>(b.a->lane, lanes_a_seat - 1)),
        us(from), static_cast<f64>(until - from) / 1e3);
}

void writer::bars() {
    for (const auto& [ring_sequence, all] : frames_)
        for (const bar& b : all) {
            const attempt& a = *b.a;
            const char* category = b.f == fate::thrown_away ? "discarded" : "frame";
            const char* note =
                b.f == fate::thrown_away ? R"(,"note":"repeated because its process died")"
                : b.f == fate::inferred
                    ? R"(,"note":"its process died after the commit; the bar ends when the frame was seen again")"
                : b.f == fate::open ? R"(,"note":"still in flight at the end of the trace")"
                                    : "";
            put(R"({{"ph":"X","cat":"{}","name":"frame {}{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{"ring_sequence":{},"epoch":{},"tombstone":{}{}{}{}}}}})",
                category, ring_sequence, b.f == fate::thrown_away ? " (discarded)" : "", process_of(b.stage),
                thread_of(b.stage, a.seat, std::min<u32>(a.lane, lanes_a_seat - 1)), us(a.claimed_ns),
                static_cast<f64>(b.end_ns - a.claimed_ns) / 1e3, ring_sequence, a.epoch, a.is_tombstone,
                a.capture_ns != 0 && a.capture_ns < a.claimed_ns
                    ? fmt::format(R"(,"since_capture_ms":{:.3f})",
                                  static_cast<f64>(a.claimed_ns - a.capture_ns) / 1e6)
                    : std::string(),
                facts_of(b.stage, ring_sequence), note);
            phase(b, "process", a.process_ns, a.submitted_ns != 0 ? a.submitted_ns : b.end_ns);
            phase(b, "device", a.submitted_ns, a.complete_ns != 0 ? a.complete_ns : b.end_ns);
            phase(b, "finish", a.complete_ns, a.committed_ns);
            phase(b, "release", a.committed_ns, a.finished_ns);
        }
    for (const idle_time& w : *c_.waits) {
        const u32 stage = stage_of(w.seat);
        if (stage >= shape_.stages.size()) continue;
        const char* why = w.why == wait_reason::input    ? "waits for input"
                          : w.why == wait_reason::output ? "waits for room in its output"
                          : w.why == wait_reason::turn   ? "waits for its turn on the GPU"
                                                         : "waits for its own frames";
        put(R"({{"ph":"X","cat":"wait","name":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f}}})", why,
            process_of(stage), thread_of(stage, w.seat, lanes_a_seat), us(w.from_ns),
            static_cast<f64>(w.until_ns - w.from_ns) / 1e3);
    }
}

// Writes the flow of one frame: from the first bar, through the next ones, to the last.
void writer::flows() {
    for (const auto& [ring_sequence, all] : frames_) {
        std::vector<const bar*> way;
        for (const bar& b : all)
            if (b.f != fate::thrown_away) way.push_back(&b);
        std::stable_sort(way.begin(), way.end(),
                         [](const bar* x, const bar* y) { return x->a->claimed_ns < y->a->claimed_ns; });
        for (std::size_t k = 0; way.size() > 1 && k < way.size(); ++k) {
            const bar& b = *way[k];
            put(R"({{"ph":"{}","cat":"frame","name":"frame","id":{},"pid":{},"tid":{},"ts":{:.3f}{}}})",
                k == 0                ? "s"
                : k + 1 == way.size() ? "f"
                                      : "t",
                ring_sequence, process_of(b.stage),
                thread_of(b.stage, b.a->seat, std::min<u32>(b.a->lane, lanes_a_seat - 1)),
                us(b.a->claimed_ns), k == 0 ? "" : R"(,"bp":"e")");
        }
    }
}

void writer::counters() {
    std::map<std::pair<u32, u64>, u64> bins;  // {stage, bin} -> frames
    for (const auto& [ring_sequence, all] : frames_)
        for (const bar& b : all)
            if (b.f == fate::done || b.f == fate::inferred)
                ++bins[{b.stage, (b.end_ns - c_.begin_ns) / bin_ns}];
    const u64 count = c_.end_ns > c_.begin_ns ? (c_.end_ns - c_.begin_ns) / bin_ns : 0;
    for (u32 k = 0; k < shape_.stages.size(); ++k)
        for (u64 bin = 0; bin < count; ++bin) {
            const auto at = bins.find({k, bin});
            put(R"({{"ph":"C","name":"frames/s","pid":{},"tid":0,"ts":{:.3f},"args":{{"frames/s":{}}}}})",
                process_of(k), static_cast<f64>(bin * bin_ns) / 1e3,
                (at != bins.end() ? at->second : 0) * ns_per_s / bin_ns);
        }
    for (const trace_fill& f : c_.fills)
        for (u32 k = 0; k < std::min(f.buffers.size(), shape_.links.size()); ++k)
            put(R"({{"ph":"C","name":{},"pid":1,"tid":0,"ts":{:.3f},"args":{{"buffers in use":{}}}}})",
                quoted("output ring of " + shape_.links[k].name), us(f.time_ns), f.buffers[k]);
}

void writer::instants() {
    for (const trace_note& n : c_.notes) {
        const u32 stage = stage_of(n.seat);
        if (stage >= shape_.stages.size() || n.time_ns < c_.begin_ns || n.time_ns >= c_.end_ns) continue;
        put(R"({{"ph":"i","s":"p","cat":{},"name":{},"pid":{},"tid":{},"ts":{:.3f},"args":{{"epoch":{}}}}})",
            quoted(n.kind), quoted(fmt::format("{} {}", shape_.seat_label(n.seat), n.text)),
            process_of(stage), thread_of(stage, n.seat, lanes_a_seat), us(n.time_ns), n.epoch);
    }
}

std::string writer::run() {
    sort_out();
    summarise();
    text_ = R"({"displayTimeUnit":"ms","traceEvents":[)";
    names();
    bars();
    flows();
    counters();
    instants();
    nlohmann::json clocks = nlohmann::json::object();
    for (const auto& [host, clock] : c_.clocks)
        clocks[host] = {{"ahead_ms", clock.ahead_ms}, {"error_ms", clock.error_ms}};
    const nlohmann::json other{{"pipeline", shape_.pipeline},
                               {"begin_ns", c_.begin_ns},
                               {"clocks", clocks},
                               {"run_id", shape_.run_id},
                               {"seconds", static_cast<f64>(c_.end_ns - c_.begin_ns) / 1e9},
                               {"frames", out_.frames},
                               {"first_ring_sequence", out_.first},
                               {"last_ring_sequence", out_.last},
                               {"missing_bars", out_.missing},
                               {"records_overwritten", c_.overwritten},
                               {"records_unfinished", c_.unfinished},
                               {"deaths", out_.deaths},
                               {"thrown_away", out_.lost_attempts},
                               {"ending", c_.ending}};
    text_ +=
        "\n],\"otherData\":" + other.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "}\n";
    return std::move(text_);
}

}  // namespace

std::string trace_json(const trace_content& c, trace_summary& out) { return writer(c, out).run(); }

}  // namespace carousel::telemetry
