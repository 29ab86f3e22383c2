#include "bench/ipc/run.hpp"

#include <algorithm>
#include <fstream>
#include <memory>

#include "core/errors.hpp"
#include "spaces/spaces.hpp"

namespace carousel::bench {
namespace {

/// Returns the value after ": " of the first line that begins with `key`.
std::string processor_info(const std::string& key) {
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);)
        if (line.starts_with(key))
            if (const std::size_t at = line.find(": "); at != std::string::npos) return line.substr(at + 2);
    return "";
}
f64 mhz() {
    const std::string text = processor_info("cpu MHz");
    return text.empty() ? 0 : std::strtod(text.c_str(), nullptr);
}

}  // namespace

ipc_bench_result run_ipc_bench(const ipc_bench_options& o, const std::string& programs,
                               const progress_function& report_progress) {
    ipc_bench_result r;
    r.rounds = o.rounds;
    r.processor = processor_info("model name");
    if (r.processor.empty()) r.processor = "unknown processor";
    r.mhz_before = mhz();
    const auto space = o.wants("hops") || o.wants("primitives")
                           ? std::make_unique<supervisor::held_space>(programs, "bench")
                           : nullptr;
    if (o.wants("memory")) measure_memory(o, r, report_progress);
    if (o.wants("hops")) measure_hops(o, space->name(), programs, r, report_progress);
    if (o.wants("primitives")) measure_primitives(o, space->name(), r, report_progress);
    if (o.wants("gpu-memory")) measure_gpu_memory(o, r, report_progress);
    if (o.wants("gpu-hops")) measure_gpu_hops(o, r, report_progress);
    if (o.wants("gpu-primitives")) measure_gpu_primitives(o, programs, r, report_progress);
    r.mhz_after = mhz();
    const auto no_gpu = r.gpu.missing.find("gpu");
    const bool gpu_alone = std::all_of(o.tables.begin(), o.tables.end(),
                                       [](const std::string& t) { return t.starts_with("gpu-"); });
    if (no_gpu != r.gpu.missing.end() && gpu_alone)
        throw device_error("bench ipc: --tables names only GPU tables, but there is no GPU: " +
                           no_gpu->second);
    return r;
}

}  // namespace carousel::bench
