// The results of `carousel bench ipc` as JSON, tables and plots.
#include <fmt/format.h>

#include "bench/ipc/gpu_report.hpp"
#include "bench/ipc/result.hpp"
#include "core/json.hpp"
#include "plot/chart.hpp"

namespace carousel::bench {
namespace {

using nlohmann::ordered_json;

constexpr const char* memory_legend =
    "read, write: GB/s; copy r+w: GB/s, bytes read plus bytes written; chase: one dependent load; open: "
    "open, map "
    "and close;\nratio: read rate, to local memory (1: another process's memory costs nothing)\n";
constexpr const char* hop_legend =
    "us, p95 us: median and 95th percentile of one way, which is half a round trip; threads us: the same "
    "between threads of\n"
    "one process; to the floor: the ratio to the floor (1: as fast as the hardware)\n";
constexpr const char* primitive_legend =
    "operations/s: of all workers together; ns: one operation of one worker, median of the rounds; p95 ns: "
    "95th "
    "percentile\nof the rounds; rows of threads are the peers without a process boundary\n";

const char* mark(bool verified) { return verified ? "" : "  WRONG"; }
std::string name_of(const primitive_row& p) {
    return fmt::format("{}, {} ({})", p.primitive, p.by, p.processes ? "processes" : "threads");
}

}  // namespace

std::string json_of(const ipc_bench_result& r) {
    ordered_json all = {
        {"rounds", r.rounds},
        {"clocks", {{"processor", r.processor}, {"mhz_before", r.mhz_before}, {"mhz_after", r.mhz_after}}},
        {"memory", ordered_json::array()},
        {"hop_floor_us", r.hop_floor_us},
        {"hops", ordered_json::array()},
        {"missing", r.missing},
        {"primitives", ordered_json::array()}};
    for (const memory_row& m : r.memory) {
        ordered_json sizes = ordered_json::array();
        for (const auto& [bytes, rate] : m.sizes) sizes.push_back({{"bytes", bytes}, {"read_gb_s", rate}});
        all["memory"].push_back({{"kind", m.kind},
                                 {"read_gb_s", m.read},
                                 {"write_gb_s", m.write},
                                 {"copy_gb_s", m.copy},
                                 {"chase_ns", m.chase_ns},
                                 {"open_us", m.open_us},
                                 {"ratio_to_local", m.ratio},
                                 {"sizes", sizes},
                                 {"verified", m.verified}});
    }
    for (const hop_row& h : r.hops)
        all["hops"].push_back({{"means", h.means},
                               {"us", h.us},
                               {"p95_us", h.p95_us},
                               {"threads_us", h.threads_us},
                               {"round_trips", h.round_trips},
                               {"verified", h.verified}});
    for (const primitive_row& p : r.primitives)
        all["primitives"].push_back({{"primitive", p.primitive},
                                     {"by", p.by},
                                     {"workers", p.processes ? "processes" : "threads"},
                                     {"number", p.number},
                                     {"operations_s", p.operations_s},
                                     {"ns", p.ns},
                                     {"p95_ns", p.p95_ns},
                                     {"verified", p.verified}});
    all["gpu"] = gpu_json(r.gpu);
    return all.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string table_of(const ipc_bench_result& r) {
    std::string text = fmt::format("{} | {:.0f} MHz before, {:.0f} after | {} rounds, medians\n", r.processor,
                                   r.mhz_before, r.mhz_after, r.rounds);
    if (!r.memory.empty())
        text += fmt::format("\n{:<28} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7}\n", "memory, 64 MiB", "read GB/s",
                            "write", "copy r+w", "chase ns", "open us", "ratio");
    for (const memory_row& m : r.memory)
        text += fmt::format("{:<28} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.1f} {:>9.1f} {:>7.3f}{}\n", m.kind,
                            m.read, m.write, m.copy, m.chase_ns, m.open_us, m.ratio, mark(m.verified));
    if (!r.memory.empty()) text += memory_legend;
    if (!r.hops.empty())
        text += fmt::format("\n{:<30} {:>10} {:>10} {:>12} {:>13}\n", "one way between processes", "us",
                            "p95 us", "threads us", "to the floor");
    for (const hop_row& h : r.hops)
        text += fmt::format("{:<30} {:>10.3f} {:>10.3f} {:>12} {:>13}{}\n", h.means, h.us, h.p95_us,
                            h.threads_us > 0 ? fmt::format("{:.3f}", h.threads_us) : "",
                            r.hop_floor_us > 0 ? fmt::format("{:.1f}", h.us / r.hop_floor_us) : "",
                            mark(h.verified));
    if (!r.hops.empty())
        text += fmt::format("{}floor: a word from one processor to another, {:.3f} us\n", hop_legend,
                            r.hop_floor_us);
    for (const auto& [means, why] : r.missing) text += fmt::format("not here: {}: {}\n", means, why);
    if (!r.primitives.empty())
        text += fmt::format("\n{:<54} {:>7} {:>14} {:>11} {:>11}\n", "primitive", "workers", "operations/s",
                            "ns", "p95 ns");
    for (const primitive_row& p : r.primitives)
        text += fmt::format("{:<54} {:>7} {:>14.0f} {:>11.1f} {:>11.1f}{}\n", name_of(p), p.number,
                            p.operations_s, p.ns, p.p95_ns, mark(p.verified));
    if (!r.primitives.empty()) text += primitive_legend;
    return text + gpu_table(r.gpu);
}

std::string plot_of(const ipc_bench_result& r) {
    plot::chart memory{"Memory: own and another process's", r.processor, "bytes", "GB/s, read", {}};
    for (const memory_row& m : r.memory)
        memory.curves.push_back({m.kind, m.sizes, false, memory.curves.size()});
    plot::chart primitives{
        "Primitives by workers", "dashed: threads of one process", "workers", "ns an operation", {}};
    for (const primitive_row& p : r.primitives) {
        const std::string name = p.primitive + ", " + p.by;
        if (primitives.curves.empty() || primitives.curves.back().name != name)
            primitives.curves.push_back({name, {}, !p.processes, primitives.curves.size()});
        primitives.curves.back().points.emplace_back(p.number, p.ns);
    }
    std::vector<plot::chart> all{memory, primitives, gpu_memory_plot(r.gpu), gpu_primitive_plot(r.gpu)};
    std::erase_if(all, [](const plot::chart& c) { return c.curves.empty(); });
    std::vector<plot::bar_chart> bars{gpu_hop_plot(r.gpu)};
    std::erase_if(bars, [](const plot::bar_chart& c) { return c.bars.empty(); });
    return plot::svg_of(all, bars);
}

std::string wrong_rows(const ipc_bench_result& r) {
    std::string names;
    const auto add = [&](bool verified, const std::string& name) {
        if (!verified) names += (names.empty() ? "" : "; ") + name;
    };
    for (const memory_row& m : r.memory) add(m.verified, m.kind);
    for (const hop_row& h : r.hops) add(h.verified, h.means);
    for (const primitive_row& p : r.primitives)
        add(p.verified, fmt::format("{}, {} workers", name_of(p), p.number));
    for (const gpu_memory_row& m : r.gpu.memory) add(m.verified, fmt::format("{}, {}", m.kind, m.on));
    for (const gpu_primitive_row& p : r.gpu.primitives)
        add(p.verified, fmt::format("{} in kernels, {}, {} of {}", p.primitive, p.by, p.number, p.where));
    for (const gpu_hop_row& h : r.gpu.hops) add(h.verified, fmt::format("{}, {}", h.means, h.where));
    return names;
}

}  // namespace carousel::bench
