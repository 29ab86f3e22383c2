#include "bench/pipeline_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/errors.hpp"
#include "spec/pipeline_file.hpp"

namespace carousel::bench {
namespace {

std::string name_of(const bench_cell& c) {
    return c.size ? fmt::format("{} {}x{}", c.mode, c.size->width, c.size->height) : c.mode;
}

run_order order_of(const pipeline_bench_options& o, const std::string& programs, const bench_cell& c) {
    run_order r{programs, o.file, o.words, o.warm_up_s, o.seconds, o.frames};
    if (c.mode == "free") {
        r.words.insert(r.words.end(), {"--set", "isolation=process", "--set", "turns=off"});
    } else if (c.mode != "none") {
        r.words.insert(r.words.end(), {"--set", "isolation=" + c.mode});
    }
    if (c.size)
        r.words.insert(r.words.end(), {"--size", fmt::format("{}x{}", c.size->width, c.size->height)});
    return r;
}

bool has_display(const std::string& file) {
    const supervisor::pipeline p = supervisor::read_pipeline(file);
    return std::any_of(p.stages.begin(), p.stages.end(), [](const auto& s) {
        return std::filesystem::path(s.run).filename() == "carousel-display";
    });
}

/// Everything that can be refused is refused before the first minute is spent. Modes that can't be are left
/// out, and said.
void plan(pipeline_bench_result& r, const std::function<void(const std::string&)>& say) {
    pipeline_bench_options& o = r.options;
    if (!o.out.empty() || has_display(o.file)) o.words.insert(o.words.end(), {"--out", o.out});
    std::vector<std::optional<picture_size>> sizes(o.sizes.begin(), o.sizes.end());
    if (sizes.empty()) sizes.emplace_back(std::nullopt);
    bool gpu = false;
    say("checking the pipeline file");
    for (const std::string& programs : r.builds)
        for (const auto& size : sizes)
            gpu = dry_run(order_of(o, programs, {"process", size, {}})).find(" on cuda:") !=
                      std::string::npos ||
                  gpu;
    for (const std::string& mode : o.modes) {
        if (mode == "mps" && !gpu) {
            r.skipped.emplace_back("mps: none of the stages runs on a GPU");
            continue;
        }
        for (const auto& size : sizes)
            r.cells.push_back({mode, size, std::vector<std::vector<run_figures>>(r.builds.size())});
    }
    if (r.cells.empty())
        throw device_error(
            "--modes mps: none of the stages runs on a GPU, and MPS is of GPUs: leave --modes out, or see "
            "--device");
}

/// The machine can't have this mode: the other modes are measured all the same.
bool is_refused_mode(const bench_cell& c, const error& e, const pipeline_bench_result& r) {
    const bool nothing_yet =
        std::all_of(c.runs.begin(), c.runs.end(), [](const auto& runs) { return runs.empty(); });
    return c.mode == "mps" && e.code() == exit_code::no_device && nothing_yet &&
           std::any_of(r.cells.begin(), r.cells.end(),
                       [](const bench_cell& other) { return other.mode != "mps"; });
}

/// Like is compared with like: where one build counts latencies only over whole runs, those of whole runs are
/// taken of both.
void use_one_kind_of_latency(pipeline_bench_result& r) {
    const auto each_run = [&](const auto& act) {
        for (bench_cell& c : r.cells)
            for (auto& runs : c.runs)
                for (run_figures& f : runs) act(f);
    };
    bool all = true;
    each_run([&](const run_figures& f) { all = all && f.latency_of_window; });
    if (all) return;
    each_run([](run_figures& f) {
        f.p50_ms = f.whole_p50_ms, f.p99_ms = f.whole_p99_ms, f.latency_of_window = false;
    });
}

}  // namespace

std::vector<f64> column(const std::vector<run_figures>& runs, f64 run_figures::*figure) {
    std::vector<f64> out;
    for (const run_figures& f : runs) out.push_back(f.*figure);
    return out;
}

f64 resolution_percent(const bench_cell& c) {
    f64 fewest = 0;
    for (const auto& runs : c.runs)
        for (const run_figures& f : runs)
            fewest = fewest == 0 ? static_cast<f64>(f.frames) : std::min(fewest, static_cast<f64>(f.frames));
    return fewest > 0 ? 100 / fewest : 100;
}

pipeline_bench_result run_pipeline_bench(const pipeline_bench_options& o, const std::string& own,
                                         const std::function<void(const std::string&)>& say) {
    pipeline_bench_result r{o, {}, {}, {}};
    if (!o.against.empty()) r.builds.push_back(programs_of(o.against));
    r.builds.push_back(own);
    supervisor::interrupts ctrl_c;
    plan(r, say);
    for (u32 round = 0; round < o.rounds; ++round) {
        for (std::size_t n = 0; n < r.cells.size(); ++n) {
            bench_cell& c = r.cells[round % 2 == 0 ? n : r.cells.size() - 1 - n];
            const bool left_out = std::any_of(r.skipped.begin(), r.skipped.end(), [&](const std::string& s) {
                return s.starts_with(c.mode + ":");
            });
            for (std::size_t k = 0; k < r.builds.size() && !left_out; ++k) {
                const std::size_t build = (round + n) % 2 == 0 ? k : r.builds.size() - 1 - k;
                say(fmt::format("round {} of {}: {}{}", round + 1, o.rounds, name_of(c),
                                r.builds.size() < 2 ? ""
                                : build == 0        ? ", A"
                                                    : ", B"));
                try {
                    const run_order order = order_of(r.options, r.builds[build], c);
                    c.runs[build].push_back(c.mode == "none" ? measure_threads(order, ctrl_c)
                                                             : measure_run(order, ctrl_c));
                } catch (const error& e) {
                    if (!is_refused_mode(c, e, r)) throw;
                    r.skipped.push_back(fmt::format("{}: {}", c.mode, e.what()));
                    break;
                }
            }
        }
    }
    std::erase_if(r.cells, [](const bench_cell& c) { return c.runs.front().empty(); });
    use_one_kind_of_latency(r);
    return r;
}

}  // namespace carousel::bench
