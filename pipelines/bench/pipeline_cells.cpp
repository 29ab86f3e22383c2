#include "bench/pipeline_cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/errors.hpp"
#include "spec/pipeline_file.hpp"

namespace carousel::bench {
namespace {

constexpr f64 slowest_lone_fps = 0.5, usual_lone_fps = 10, fastest_lone_fps = 200;

void add_words(std::vector<std::string>& to, const std::vector<std::string>& more) {
    to.insert(to.end(), more.begin(), more.end());
}

std::string text_of(const picture_size& s) { return fmt::format("{}x{}", s.width, s.height); }

/// The rate at which only one frame is in the pipeline at a time: a quarter of what the kernels achieve for
/// one frame at a time.
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
    if (!r.options.out.empty()) add_words(order.words, {"--out", ""});  // the kernels alone write no files
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
