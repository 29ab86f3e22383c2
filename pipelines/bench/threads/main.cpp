// carousel-bench-threads: runs and measures a pipeline's shipped stages as threads of one process. `carousel
// bench pipeline --modes none` starts it for each run and reads its output; it is not meant to run a
// pipeline.

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <optional>

#include "bench/pipeline_run.hpp"
#include "bench/threads/thread_pipeline.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"
#include "core/process.hpp"
#include "spec/options.hpp"
#include "spec/programs.hpp"
#include "supervisor/plan/device_choice.hpp"

namespace {

using namespace carousel;

struct thread_words {
    std::string file;
    supervisor::pipeline_options keys;
    bench::thread_order order;
    bool kernels_alone = false;
};

void add_options(CLI::App& app, thread_words& w) {
    app.add_option("FILE", w.file, "Pipeline file (TOML)")->required();
    app.add_option("--seconds", w.order.seconds, "Seconds to measure [5]");
    app.add_option("--warm-up", w.order.warm_up_s, "Seconds of warm-up after the first frames [1]");
    app.add_option("--frames", w.order.frames, "Frames to measure, instead of --seconds");
    app.add_option("--patience", w.order.patience_s,
                   "Seconds without a frame after which a stage counts as stuck [60]");
    app.add_option("--exactly", w.order.exactly,
                   "Run exactly this number of frames, and compute their image_hash");
    app.add_option("--threads", w.order.cpu_threads, "Threads of the CPU pool [all cores]");
    app.add_flag("--kernels-alone", w.kernels_alone,
                 "Measure the stages' work in 1, 2, ... queues, for --seconds each");
    app.add_option("--device", w.keys.device, "auto | cpu | cuda:N [the file's]");
    app.add_option("--size", w.keys.size, "WxH [the file's]");
    app.add_option("--out", w.keys.out, "Files for the pictures of the displays")->take_all();
    app.add_option("--set", w.keys.set, "Any key of the file; may be repeated")->expected(1)->take_all();
}

/// Returns the device of all stages, which must be the same. Throws config_error if they run on several
/// devices.
device::device_id device_of(const supervisor::pipeline& p) {
    const supervisor::machine_offer machine = supervisor::probe_machine(executable_folder());
    std::optional<supervisor::device_choice> chosen;
    for (const supervisor::stage_spec& s : p.stages) {
        supervisor::device_choice own = supervisor::choose_device(s.device, machine);
        if (chosen && chosen->name != own.name)
            throw config_error(
                fmt::format("--modes none runs all stages in one process with one context, but stage \"{}\" "
                            "runs on {} and others on {}; see --device",
                            s.name, own.name, chosen->name));
        chosen = std::move(own);
    }
    return chosen.value().id;
}

int print_kernels_alone(const supervisor::pipeline& p, const bench::thread_order& o) {
    const bench::kernel_figures f = bench::measure_kernels_alone(p, o);
    const nlohmann::ordered_json report{{"lone_ms", f.lone_ms},
                                        {"frames_per_second", f.frames_per_second},
                                        {"queues", f.queues},
                                        {"cpu_ms_per_frame", f.cpu_ms_per_frame}};
    fmt::print("{}\n", report.dump(2));
    return exit_code::ok;
}

int run(int argc, char** argv) {
    CLI::App app("Run a pipeline's shipped stages as threads of one process, as a reference",
                 "carousel-bench-threads");
    thread_words w;
    add_options(app, w);
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        fmt::print("{}", app.help());
        return exit_code::ok;
    } catch (const CLI::ParseError& e) {
        fmt::print(stderr, "error: carousel-bench-threads: {}\n", e.what());
        return exit_code::usage;
    }
    const supervisor::pipeline p = supervisor::read_pipeline(w.file, supervisor::overrides_from(w.keys));
    const bench::scratch_folder folder("carousel-threads-XXXXXX");  // the stages write pictures and other
                                                                    // files into this folder
    w.order.runtime_directory = folder.path();
    w.order.device = device_of(p);
    if (w.kernels_alone) return print_kernels_alone(p, w.order);
    const f64 gpu_before = bench::gpu_bytes_in_use();
    bench::memory_figures memory;
    f64 gpu_used = -1;
    w.order.before_the_end = [&] {
        memory = bench::memory_of({::getpid()});
        if (const f64 now = bench::gpu_bytes_in_use(); gpu_before >= 0 && now >= 0)
            gpu_used = std::max(0.0, now - gpu_before);
    };
    const bench::thread_figures f = bench::run_in_threads(p, w.order);
    nlohmann::ordered_json report{
        {"frames", f.frames},
        {"seconds", f.seconds},
        {"p50_ms", f.p50_ms},
        {"p99_ms", f.p99_ms},
        {"cpu_ms_per_frame", f.cpu_ms_per_frame},
        {"memory_bytes", memory.proportional > 0 ? memory.proportional : memory.resident},
        {"resident_bytes", memory.resident},
        {"gpu_bytes", gpu_used}};
    if (!f.image_hash.empty()) report["image_hash"] = f.image_hash;
    fmt::print("{}\n", report.dump(2));
    return exit_code::ok;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return after_output(run(argc, argv));
    } catch (const error& e) {
        fmt::print(stderr, "error: {}\n", e.what());
        std::_Exit(e.code());  // a stage's current work may never end, so no destructor may run
    } catch (const std::exception& e) {
        fmt::print(stderr, "error: {}\n", unexpected_text(e));
        return exit_code::stage_failed;
    }
}
