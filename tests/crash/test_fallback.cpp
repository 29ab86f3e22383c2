// A run that outlives its GPU. The GPU is simulated, so its loss is exact: all calls of all processes fail
// from one moment on, and so do those of later processes. What only a GPU can show is in
// tests/gpu/fallback_gpu.py.
#include <fmt/format.h>

#include <csignal>

#include "core/crash_point.hpp"
#include "core/errors.hpp"
#include "tests/crash/number_run.hpp"
#include "tests/crash/simulated_gpu.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

const std::vector<std::string> gpu_stages = {"numbers", "middle", "sink"};
const std::string as_run = "fallback = \"cpu\"\n";

std::string gpu_pipeline(const std::string& name, const std::string& keys = as_run,
                         const std::string& more = "") {
    const std::string stage = on_gpu + more;
    return number_pipeline(name, patient_keys + keys, stage, stage, stage);
}

std::string validated(const std::string& text, int code) {
    run_fixture run;
    std::string out;
    CHECK(run.command({"validate", run.pipeline("checked", text)}, out) == code);
    return out;
}

}  // namespace

TEST_CASE("a run whose GPU is lost continues on the CPU and returns, and no frame is lost or repeated") {
    run_fixture run;
    const simulated_gpu gpu(run);
    run.start(run.pipeline("lost", gpu_pipeline("lost")), {}, gpu.environment());
    REQUIRE(run.wait_running());
    REQUIRE(makes_progress(run));
    CHECK(run.stage("middle")["device"] == "cuda:0");
    gpu.fails_with(device::error_unavailable);
    REQUIRE(settles(run, gpu_stages));
    CHECK(run.stage("middle")["device"] == "cpu");
    CHECK(makes_progress(run));
    std::string out;
    CHECK(run.command({"device", "cuda:0"}, out) == exit_code::no_device);
    CHECK_THAT(out, contains("cuInit failed"));
    gpu.fails_with(0);
    REQUIRE(returns(run));
    CHECK(makes_progress(run));
    end_intact(run, 3);
    const json f = run.report()["fallback"];
    CHECK(f["fallbacks"] == 1);
    CHECK(f["returns"] == 1);
    CHECK(f["changes"][0]["stages"] == gpu_stages);
    CHECK(f["changes"][0]["next_frame_ms"] > 0);
    CHECK_THAT(run.log(), contains("numbers, middle, sink continue on the CPU"));
}

TEST_CASE("a stage with faults leaves its GPU alone, and its state continues from a checkpoint") {
    run_fixture run;
    const simulated_gpu gpu(run);
    const std::string state = "state = true\n";
    run.start(
        run.pipeline("alone",
                     number_pipeline("alone",
                                     patient_keys + fmt::format("fallback_after = 2\ncheckpoint_every = 20\n"
                                                                "checkpoint_to = \"{}\"\n",
                                                                run.path("kept")),
                                     on_gpu + state + as_run, on_gpu + state, state)),
        {}, gpu.environment());
    REQUIRE(run.wait_running());
    REQUIRE(makes_progress(run));
    for (int k = 0; k < 2; ++k) {
        const i32 before = run.pid_of("middle");
        CHECK(run.ask({{"type", "inject"}, {"stage", "middle"}, {"fault", "gpu-fault"}})["ok"] == true);
        REQUIRE(run.wait_until([&] {
            const i32 now = run.pid_of("middle");
            return (now != 0 && now != before && run.stage("middle")["state"] == "running") ||
                   !stages_on_cpu(run).empty();
        }));
    }
    REQUIRE(settles(run, {"middle"}));
    CHECK(run.stage("numbers")["device"] == "cuda:0");
    CHECK(makes_progress(run));
    REQUIRE(returns(run));
    CHECK(makes_progress(run));
    end_intact(run, 2, state);
    CHECK_THAT(run.log(), contains("2 GPU errors within 60 s"));
}

TEST_CASE("a supervisor that takes over a run on the CPU has its plan, and returns it to the GPU") {
    run_fixture run;
    const simulated_gpu gpu(run);
    const std::string file =
        run.pipeline("adopted", gpu_pipeline("adopted", as_run + "supervisor_grace_s = 20\n"));
    run.start(file, {}, gpu.environment());
    REQUIRE(run.wait_running());
    REQUIRE(makes_progress(run));
    gpu.fails_with(device::error_no_device);
    REQUIRE(settles(run, gpu_stages));
    REQUIRE(run.wait_running());
    REQUIRE(makes_progress(run));
    const i32 middle = run.pid_of("middle");
    run.signal(SIGKILL);
    REQUIRE(run.wait() == -SIGKILL);
    run.start(file, {}, gpu.environment());  // the GPU is gone, and the plan is known
    REQUIRE(run.wait_running());
    CHECK(run.pid_of("middle") == middle);
    CHECK(stages_on_cpu(run) == gpu_stages);
    CHECK(makes_progress(run));
    gpu.fails_with(0);
    REQUIRE(returns(run));
    CHECK(makes_progress(run));
    end_intact(run, 0);
}

TEST_CASE("a supervisor that dies at any step of a move to the CPU is replaced by the next start") {
    using enum crash_point;
    run_fixture run;
    const simulated_gpu gpu(run);
    crash_plan plan(run.path("plan"));
    for (const crash_point point :
         {rebuild_begun, devices_chosen, memory_remade, block_removed, block_rebuilt})
        plan.add("supervisor", point, "kill", 1);
    plan.write();
    const std::string file = run.pipeline("broken-off", gpu_pipeline("broken-off"));
    for (std::size_t k = 0; k <= plan.lines(); ++k) {
        CAPTURE(k);
        gpu.fails_with(0);
        run.start(file, {}, gpu.environment({plan.environment()}));
        REQUIRE(run.wait_running());
        CHECK(stages_on_cpu(run).empty());
        if (k == plan.lines()) break;
        gpu.fails_with(device::error_unavailable);
        REQUIRE(run.wait() == -SIGKILL);
    }
    CHECK(makes_progress(run));
    end_intact(run, 0);
}

TEST_CASE("a run begins on the CPU if the GPU can't be used, and a failed return leaves it there") {
    run_fixture run;
    const simulated_gpu gpu(run, device::error_no_device);
    run.start(run.pipeline("begun", gpu_pipeline("begun")), {}, gpu.environment());
    REQUIRE(run.wait_running());
    CHECK(stages_on_cpu(run) == gpu_stages);
    REQUIRE(makes_progress(run));
    gpu.fails_with(0);
    REQUIRE(returns(run));
    CHECK(makes_progress(run));
    gpu.fails_with(device::error_memory);  // each new process fails at its start, for good
    run.hit("middle", SIGKILL);
    REQUIRE(settles(run, gpu_stages));
    CHECK(makes_progress(run));
    end_intact(run, 1);
    CHECK_THAT(run.log(), contains("begin on the CPU"));
}

TEST_CASE("a move to the CPU does not wait for processes that a lost GPU keeps from ending") {
    run_fixture run;
    const simulated_gpu gpu(run);
    run.start(run.pipeline("stuck", gpu_pipeline("stuck")), {},
              gpu.environment({"CAROUSEL_TEST_KILL_DELAY_MS=60000"}));
    REQUIRE(run.wait_running());
    REQUIRE(makes_progress(run));
    const i32 stuck = run.pid_of("middle");
    REQUIRE(::kill(stuck, SIGSTOP) == 0);
    gpu.fails_with(device::error_unavailable);
    REQUIRE(settles(run, gpu_stages));
    CHECK(makes_progress(run));
    CHECK_THAT(run.log(), contains("has not ended: its GPU does not end its work"));
    end_intact(run, 0);
}

TEST_CASE("a ring that both plans give the same memory keeps its frames when a stage leaves its GPU") {
    run_fixture run;
    const simulated_gpu gpu(run);
    const std::string lanes = "in_flight = 3\n";
    run.start(run.pipeline("kept", number_pipeline("kept", patient_keys, on_gpu + as_run + lanes, lanes,
                                                   lanes + "work_ms = 5\n[link.numbers]\nwindow = 8\n"
                                                           "[link.middle]\nwindow = 8\n")),
              {}, gpu.environment());
    REQUIRE(run.wait_running());
    REQUIRE(makes_progress(run));
    CHECK(run.ask({{"type", "inject"}, {"stage", "middle"}, {"fault", "gpu-lost"}})["ok"] == true);
    REQUIRE(settles(run, {"middle"}));
    CHECK(makes_progress(run));
    end_intact(run, 1);
    CHECK_THAT(run.log(), contains("frames in the rings continue from memory"));
}

TEST_CASE("GPU errors of a stage that can move to the CPU are no attempts on its frames") {
    run_fixture run;
    const simulated_gpu gpu(run);
    const std::string faults = "die_at = 60\ndie_how = \"gpu\"\ndie_incarnations = 3\nmax_attempts = 2\n";
    run.start(run.pipeline("attempts", number_pipeline("attempts", patient_keys, on_gpu + as_run + faults)),
              {}, gpu.environment());
    REQUIRE(settles(run, {"middle"}));
    CHECK(makes_progress(run));
    end_intact(run, 3);
    CHECK_THAT(run.log(), contains("3 GPU errors within 60 s, the last of middle"));
}

TEST_CASE("validate refuses a fallback of stages that can't run on the CPU with the same frames") {
    const std::string inexact = "bit_equal = false\n";
    CHECK_THAT(validated(gpu_pipeline("checked", as_run, inexact), exit_code::usage),
               contains("does not declare bit_equal") && contains("fallback_inexact = true"));
    CHECK_THAT(
        validated(gpu_pipeline("checked", as_run + "fallback_inexact = true\n", inexact), exit_code::ok),
        contains("fallback: numbers, middle, sink move to the CPU if the GPU fails; inexact: numbers"));
    CHECK_THAT(validated(number_pipeline("checked", "", as_run), exit_code::ok), !contains("fallback:"));
    const std::string state = "state = true\n", kept = "checkpoint_every = 20\n";
    CHECK_THAT(validated(gpu_pipeline("checked", as_run, state), exit_code::usage),
               contains("has a state") && contains("set checkpoint_every"));
    CHECK_THAT(validated(gpu_pipeline("checked", as_run + kept, state), exit_code::ok),
               contains("fallback:"));
    run_fixture run;
    run.start(run.pipeline("without", number_pipeline("without", patient_keys)));
    REQUIRE(run.wait_running());
    std::string out;
    CHECK(run.command({"device", "cpu"}, out) == exit_code::usage);
    CHECK_THAT(out, contains("no stage of without can leave its GPU"));
    end_intact(run, 0);
}
