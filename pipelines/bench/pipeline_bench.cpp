#include "bench/pipeline_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/errors.hpp"
#include "spec/pipeline_file.hpp"

namespace carousel::bench {
namespace {

using progress_function = std::function<void(const std::string&)>;

/// True if the machine does not support this mode; the other modes are measured nevertheless.
bool is_refused_mode(const bench_cell& c, const error& e, const pipeline_bench_result& r) {
    const bool nothing_yet =
        std::all_of(c.runs.begin(), c.runs.end(), [](const auto& runs) { return runs.empty(); });
    return c.mode == "mps" && e.code() == exit_code::no_device && nothing_yet &&
           std::any_of(r.cells.begin(), r.cells.end(),
                       [](const bench_cell& other) { return other.mode != "mps"; });
}

bool is_left_out(const pipeline_bench_result& r, const bench_cell& c) {
    return std::any_of(r.skipped.begin(), r.skipped.end(),
                       [&](const std::string& s) { return s.starts_with(c.mode + ":"); });
}

/// If one build has latencies only for whole runs, makes both builds report their latencies for whole runs,
/// so that the latencies are comparable.
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

/// Stages that are not shipped, or that run on several devices, cannot share one queue; in that case there is
/// no bound.
void measure_bounds(pipeline_bench_result& r, supervisor::interrupts& ctrl_c) {
    try {
        for (bench_bound& b : r.bounds)
            b.rounds.push_back(measure_bound(order_of_bound(r, r.builds.back(), b), ctrl_c));
    } catch (const error& e) {
        if (e.code() != exit_code::usage || !r.bounds.front().rounds.empty()) throw;
        r.bounds.clear();
        r.skipped.push_back(fmt::format("kernels alone: {}", e.what()));
    }
}

void measure_cell(pipeline_bench_result& r, bench_cell& c, std::size_t build,
                  supervisor::interrupts& ctrl_c) {
    const run_order order = order_of(r, r.builds[build], c);
    c.runs[build].push_back(c.mode == "none" ? measure_threads(order, ctrl_c) : measure_run(order, ctrl_c));
}

void measure_round(pipeline_bench_result& r, u32 round, supervisor::interrupts& ctrl_c,
                   const progress_function& report_progress) {
    const std::string head = fmt::format("round {} of {}: ", round + 1, r.options.rounds);
    report_progress(head + "the kernels alone");
    measure_bounds(r, ctrl_c);
    for (std::size_t n = 0; n < r.cells.size(); ++n) {
        bench_cell& c = r.cells[round % 2 == 0 ? n : r.cells.size() - 1 - n];
        for (std::size_t k = 0; k < r.builds.size() && !is_left_out(r, c); ++k) {
            const std::size_t build = (round + n) % 2 == 0 ? k : r.builds.size() - 1 - k;
            report_progress(head + name_of(c) + (r.builds.size() < 2 ? "" : build == 0 ? ", A" : ", B"));
            try {
                measure_cell(r, c, build, ctrl_c);
            } catch (const error& e) {
                if (!is_refused_mode(c, e, r)) throw;
                r.skipped.push_back(fmt::format("{}: {}", c.mode, e.what()));
                break;
            }
        }
    }
}

constexpr f64 slowest_lone_fps = 0.5, usual_lone_fps = 10, fastest_lone_fps = 200;

void add_words(std::vector<std::string>& to, const std::vector<std::string>& more) {
    to.insert(to.end(), more.begin(), more.end());
}

std::string text_of(const picture_size& s) { return fmt::format("{}x{}", s.width, s.height); }

/// Returns a rate at which only one frame is in the pipeline at a time: a quarter of the rate that the
/// kernels alone achieve with one frame at a time.
f64 lone_fps(const pipeline_bench_result& r, const bench_cell& c) {
    if (r.options.lone_fps > 0) return r.options.lone_fps;
    const bench_bound* bound = bound_of(r, c);
    if (bound == nullptr) return usual_lone_fps;
    return std::clamp(250 / median_of(column(*bound, &reported_kernel_figures::lone_ms)), slowest_lone_fps,
                      fastest_lone_fps);
}

std::vector<std::string> words_of(const forced_depth& d, const std::string& file) {
    const supervisor::pipeline p = supervisor::read_pipeline(file);
    std::vector<std::string> words;
    for (u32 k = 0; k < p.stages.size(); ++k) {
        const std::string& name = p.stages[k].name;
        const bool is_read = std::any_of(p.stages.begin(), p.stages.end(), [&](const auto& s) {
            return std::count(s.input_indices.begin(), s.input_indices.end(), k) > 0;
        });
        add_words(words, {"--set", fmt::format("{}.in_flight={}", name, d.in_flight)});
        if (is_read) add_words(words, {"--set", fmt::format("link.{}.window={}", name, d.window)});
    }
    return words;
}

std::vector<std::string> words_of_mode(const std::string& mode) {
    if (mode == "none") return {};
    if (mode == "free") return {"--set", "isolation=process", "--set", "turns=off"};
    return {"--set", "isolation=" + mode};
}

bool has_display(const std::string& file) {
    const supervisor::pipeline p = supervisor::read_pipeline(file);
    return std::any_of(p.stages.begin(), p.stages.end(), [](const auto& s) {
        return std::filesystem::path(s.run).filename() == "carousel-display";
    });
}

/// Returns whether any stage runs on a GPU. Throws the error that a build reports about the file, a size or a
/// depth.
bool checked_on_gpu(const pipeline_bench_result& r, const std::vector<std::optional<picture_size>>& sizes) {
    bool gpu = false;
    for (const std::string& programs : r.builds)
        for (const auto& size : sizes)
            for (const auto& depth : r.options.depths) {
                const bench_cell c{"process", size, depth, false, {}};
                gpu = dry_run(order_of(r, programs, c)).find(" on cuda:") != std::string::npos || gpu;
            }
    return gpu;
}

}  // namespace

std::vector<f64> column(const std::vector<run_figures>& runs, f64 run_figures::*figure) {
    std::vector<f64> out;
    for (const run_figures& f : runs) out.push_back(f.*figure);
    return out;
}

std::vector<f64> column(const bench_bound& b, f64 reported_kernel_figures::*figure) {
    std::vector<f64> out;
    for (const reported_kernel_figures& f : b.rounds) out.push_back(f.*figure);
    return out;
}

const bench_bound* bound_of(const pipeline_bench_result& r, const bench_cell& c) {
    const auto at = std::find_if(r.bounds.begin(), r.bounds.end(),
                                 [&](const bench_bound& b) { return b.size == c.size && !b.rounds.empty(); });
    return at == r.bounds.end() ? nullptr : &*at;
}

f64 resolution_percent(const bench_cell& c) {
    f64 fewest = 0;
    for (const auto& runs : c.runs)
        for (const run_figures& f : runs)
            fewest = fewest == 0 ? static_cast<f64>(f.frames) : std::min(fewest, static_cast<f64>(f.frames));
    return fewest > 0 ? 100 / fewest : 100;
}

pipeline_bench_result run_pipeline_bench(const pipeline_bench_options& o, const std::string& own,
                                         const progress_function& report_progress) {
    pipeline_bench_result r{o, {}, {}, {}, {}};
    if (!o.against.empty()) r.builds.push_back(programs_of(o.against));
    r.builds.push_back(own);
    supervisor::interrupts ctrl_c;
    report_progress("checking the pipeline file");
    plan_cells(r);
    for (u32 round = 0; round < o.rounds; ++round) measure_round(r, round, ctrl_c, report_progress);
    std::erase_if(r.cells, [](const bench_cell& c) { return c.runs.front().empty(); });
    use_one_kind_of_latency(r);
    return r;
}

std::string name_of(const bench_cell& c) {
    std::string name = c.mode;
    if (c.size) name += ", " + text_of(*c.size);
    if (c.depth) name += fmt::format(", {} in flight, windows of {}", c.depth->in_flight, c.depth->window);
    return c.lone ? name + ", single frames" : name;
}

run_order order_of(const pipeline_bench_result& r, const std::string& programs, const bench_cell& c) {
    const pipeline_bench_options& o = r.options;
    run_order order{programs, o.file, o.words, o.warm_up_s, o.seconds, c.lone ? 0 : o.frames};
    add_words(order.words, words_of_mode(c.mode));
    if (c.size) add_words(order.words, {"--size", text_of(*c.size)});
    if (c.depth) add_words(order.words, words_of(*c.depth, o.file));
    if (c.lone) add_words(order.words, {"--set", fmt::format("fps={:.4g}", lone_fps(r, c))});
    return order;
}

run_order order_of_bound(const pipeline_bench_result& r, const std::string& programs, const bench_bound& b) {
    run_order order = order_of(r, programs, {"none", b.size, std::nullopt, false, {}});
    if (!r.options.out.empty()) add_words(order.words, {"--out", ""});  // this run writes no files
    return order;
}

void plan_cells(pipeline_bench_result& r) {
    pipeline_bench_options& o = r.options;
    if (!o.out.empty() || has_display(o.file)) add_words(o.words, {"--out", o.out});
    std::vector<std::optional<picture_size>> sizes(o.sizes.begin(), o.sizes.end());
    if (sizes.empty()) sizes.emplace_back(std::nullopt);
    const bool gpu = checked_on_gpu(r, sizes);
    for (const std::string& mode : o.modes) {
        if (mode == "mps" && !gpu) {
            r.skipped.emplace_back("mps: none of the stages runs on a GPU");
            continue;
        }
        for (const auto& size : sizes)
            for (const auto& depth : o.depths)
                for (const bool lone : {false, true}) {
                    if (lone && !o.lone) continue;
                    r.cells.push_back(
                        {mode, size, depth, lone, std::vector<std::vector<run_figures>>(r.builds.size())});
                }
    }
    for (const auto& size : sizes) r.bounds.push_back({size, {}});
    if (r.cells.empty())
        throw device_error(
            "--modes mps: MPS needs a GPU, and none of the stages runs on one: remove --modes, or see "
            "--device");
}

}  // namespace carousel::bench
