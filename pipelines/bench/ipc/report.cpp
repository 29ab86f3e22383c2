// The results of `carousel bench ipc` as JSON, tables and plots.

#include "bench/ipc/result.hpp"

#include <fmt/format.h>

#include "core/json.hpp"
#include "plot/chart.hpp"

namespace carousel::bench {
namespace {

using nlohmann::ordered_json;

constexpr const char* memory_legend =
    "\"read\" and \"write\" are rates in GB/s; \"copy r+w\" counts the bytes read and the bytes written. "
    "\"chase\" is the time of one\ndependent load. \"open\" is the time to open, map and close the memory. "
    "\"ratio\" is the read rate "
    "divided by that of\nlocal memory (1: reading another process's memory costs nothing more).\n";
constexpr const char* hop_legend =
    "\"us\" and \"p95 us\" are the median and the 95th percentile of one way, which is half a round trip. "
    "\"threads us\" is the median\nbetween threads of one process. \"to the floor\" is the median divided by "
    "the floor (1: as "
    "fast as the hardware).\n";
constexpr const char* primitive_legend =
    "\"operations/s\" is the sum over all workers. \"ns\" and \"p95 ns\" are the time of one operation of "
    "one worker: "
    "the median and\nthe 95th percentile of the rounds. Rows of threads are for comparison: they cross no "
    "process boundary.\n";

const char* mark(bool verified) { return verified ? "" : "  WRONG"; }
std::string name_of(const primitive_row& p) {
    return fmt::format("{}, {} ({})", p.primitive, p.by, p.processes ? "processes" : "threads");
}

// The GPU's results as JSON, tables and plots.

/// Returns the share of the hardware's bound, e.g. "92 %"; "" if the bound is unknown.
std::string share(f64 value, f64 floor) {
    return value > 0 && floor > 0 ? fmt::format("{:.0f} %", 100 * value / floor) : "";
}
ordered_json json_of(const gpu_memory_row& m) {
    ordered_json sizes = ordered_json::array();
    for (const auto& [bytes, rate] : m.sizes) sizes.push_back({{"bytes", bytes}, {"kernel_read", rate}});
    return {{"kind", m.kind},
            {"on", m.on},
            {"bytes", m.bytes},
            {"h2d", m.h2d},
            {"d2h", m.d2h},
            {"both_ways", m.both},
            {"device_memcpy", m.memcpy},
            {"device_copy_kernel", m.copy_kernel},
            {"kernel_read", m.read},
            {"kernel_write", m.write},
            {"chase_ns", m.chase_ns},
            {"open_us", m.open_us},
            {"map_us", m.map_us},
            {"close_us", m.close_us},
            {"ratio_to_local", m.ratio},
            {"sizes", sizes},
            {"verified", m.verified}};
}
/// Returns the bandwidth (GB/s) of the path over which the reader reaches the row's memory: GPU memory, PCIe
/// or NVLink.
f64 floor_of(const gpu_memory_row& m, const gpu_result& r) {
    return m.on == "same GPU" ? r.memory_floor : m.on == "host" ? r.pcie_floor : r.nvlink_floor;
}
std::string memory_table(const gpu_result& r) {
    if (r.memory.empty()) return "";
    std::string text = fmt::format(
        "\n{:<28} {:<9} {:>6} {:>6} {:>6} {:>7} {:>7} {:>7} {:>6} {:>7} {:>7} {:>8} {:>8} {:>8} {:>6}\n",
        fmt::format("GPU memory, {} MiB, GB/s", r.memory.front().bytes >> 20U), "on", "H2D", "D2H", "both",
        "memcpy", "copy SM", "read", "floor", "write", "chase ns", "open us", "map us", "close us", "ratio");
    for (const gpu_memory_row& m : r.memory)
        text += fmt::format(
            "{:<28} {:<9} {:>6.1f} {:>6.1f} {:>6.1f} {:>7.1f} {:>7.1f} {:>7.1f} {:>6} {:>7.1f} {:>8.1f} "
            "{:>7.1f} {:>8.1f} "
            "{:>8.1f} {:>6.3f}{}\n",
            m.kind, m.on, m.h2d, m.d2h, m.both, m.memcpy, m.copy_kernel, m.read,
            share(m.read, floor_of(m, r)), m.write, m.chase_ns, m.open_us, m.map_us, m.close_us, m.ratio,
            mark(m.verified));
    return text +
           "\"H2D\", \"D2H\", \"both\" and \"memcpy\" are copies by the driver; \"copy SM\", \"read\" and "
           "\"write\" are done by kernels. Each byte counts\nonce. \"floor\" is the share of the hardware's "
           "rate. \"chase\" is the time of one dependent load in a kernel. \"ratio\" is the read "
           "rate\ndivided by that of the reader's own memory "
           "on the same device.\n" +
           fmt::format(
               "rates of the hardware, one way: memory {:.0f} GB/s, PCIe {:.0f}, NVLink {:.0f} (0: "
               "unknown)\n",
               r.memory_floor, r.pcie_floor, r.nvlink_floor);
}
std::string hop_table(const gpu_result& r) {
    if (r.hops.empty()) return "";
    std::string text =
        fmt::format("\n{:<36} {:<12} {:>10} {:>10} {:>12} {:>18}\n", "kernel to another process's kernel",
                    "where", "us", "p95 us", "to its floor", "to one process");
    for (const gpu_hop_row& h : r.hops)
        text += fmt::format("{:<36} {:<12} {:>10.2f} {:>10.2f} {:>12} {:>18.2f}{}\n", h.means, h.where, h.us,
                            h.p95_us, h.floor_us > 0 ? fmt::format("{:.2f}", h.us / h.floor_us) : "", h.ratio,
                            mark(h.verified));
    return text +
           "\"us\" and \"p95 us\" are the median and the 95th percentile of one way. \"to its floor\" is the "
           "median divided by the fastest possible time, below.\n\"to one process\" is the median divided by "
           "the median of the same method within one process (1: the process boundary\ncosts nothing).\n" +
           fmt::format(
               "fastest possible times (floors), measured by one thread:\n"
               "{:.2f} us from the end of a kernel until the host sees it (floor of words and polled "
               "events)\n"
               "{:.2f} us until the next kernel of a stream starts (floor of stream waits)\n"
               "{:.2f} us for a word to reach another block (floor of spinning)\n",
               r.hop_floors.synced_launch, r.hop_floors.next_kernel, r.hop_floors.two_blocks);
}

std::string primitive_table(const gpu_result& r) {
    if (r.primitives.empty()) return "";
    std::string text =
        fmt::format("\n{:<28} {:<31} {:<12} {:>6} {:>14} {:>11} {:>11}\n", "primitive in kernels", "by",
                    "where", "number", "operations/s", "ns", "p95 ns");
    for (const gpu_primitive_row& p : r.primitives)
        text += fmt::format("{:<28} {:<31} {:<12} {:>6} {:>14.0f} {:>11.0f} {:>11.0f}{}\n", p.primitive, p.by,
                            p.where, p.number, p.operations_s, p.ns, p.p95_ns, mark(p.verified));
    return text +
           "\"number\" is the number of processes, or of blocks of one process. \"operations/s\" is the sum "
           "over all "
           "of them. \"ns\" and \"p95 ns\"\nare the time of one operation: the median and the 95th "
           "percentile of the "
           "rounds.\n";
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

ordered_json gpu_json(const gpu_result& r) {
    ordered_json all = {{"name", r.name},
                        {"clocks",
                         {{"sm_mhz_before", r.sm_mhz_before},
                          {"sm_mhz_after", r.sm_mhz_after},
                          {"memory_mhz", r.memory_mhz}}},
                        {"floors",
                         {{"memory_gb_s", r.memory_floor},
                          {"pcie_gb_s", r.pcie_floor},
                          {"nvlink_gb_s", r.nvlink_floor},
                          {"synced_launch_us", r.hop_floors.synced_launch},
                          {"next_kernel_us", r.hop_floors.next_kernel},
                          {"two_blocks_us", r.hop_floors.two_blocks}}},
                        {"missing", r.missing},
                        {"memory", ordered_json::array()},
                        {"hops", ordered_json::array()},
                        {"primitives", ordered_json::array()}};
    for (const gpu_memory_row& m : r.memory) all["memory"].push_back(json_of(m));
    for (const gpu_hop_row& h : r.hops)
        all["hops"].push_back({{"means", h.means},
                               {"where", h.where},
                               {"us", h.us},
                               {"p95_us", h.p95_us},
                               {"floor_us", h.floor_us},
                               {"ratio", h.ratio},
                               {"round_trips", h.round_trips},
                               {"verified", h.verified}});
    for (const gpu_primitive_row& p : r.primitives)
        all["primitives"].push_back({{"primitive", p.primitive},
                                     {"by", p.by},
                                     {"where", p.where},
                                     {"number", p.number},
                                     {"operations_s", p.operations_s},
                                     {"ns", p.ns},
                                     {"p95_ns", p.p95_ns},
                                     {"verified", p.verified}});
    return all;
}

std::string gpu_table(const gpu_result& r) {
    std::string text;
    if (!r.name.empty())
        text = fmt::format("\n{} | SM {:.0f} MHz before, {:.0f} after, memory {:.0f} MHz\n", r.name,
                           r.sm_mhz_before, r.sm_mhz_after, r.memory_mhz);
    text += memory_table(r) + hop_table(r) + primitive_table(r);
    for (const auto& [need, why] : r.missing) text += fmt::format("not here: {}: {}\n", need, why);
    return text;
}

plot::chart gpu_memory_plot(const gpu_result& r) {
    plot::chart memory{"GPU memory: own and another process's", r.name, "bytes", "GB/s, read by kernels", {}};
    for (const gpu_memory_row& m : r.memory)
        memory.curves.push_back(
            {m.kind + ", " + m.on, m.sizes, m.kind.starts_with("own"), memory.curves.size()});
    return memory;
}
plot::chart gpu_primitive_plot(const gpu_result& r) {
    plot::chart all{"Primitives in kernels", "dashed: one process", "processes, blocks", "operations/s", {}};
    for (const gpu_primitive_row& p : r.primitives) {
        const std::string name = fmt::format("{}, {}, {}", p.primitive, p.by, p.where);
        if (all.curves.empty() || all.curves.back().name != name)
            all.curves.push_back({name, {}, p.where == "one process", all.curves.size()});
        all.curves.back().points.emplace_back(p.number, p.operations_s);
    }
    return all;
}
plot::bar_chart gpu_hop_plot(const gpu_result& r) {
    plot::bar_chart hops{"From a kernel to another process's kernel", r.name, "us", {}};
    for (const gpu_hop_row& h : r.hops) hops.bars.push_back({h.where + ": " + h.means, h.us});
    return hops;
}

}  // namespace carousel::bench
