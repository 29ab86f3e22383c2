// When stages leave their GPU.
#include "supervisor/policy/fallback_policy.hpp"

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "device/device_failure.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::supervisor;

gpu_error fault(u32 stage, u64 second, u32 domain = 0) {
    return {stage, gpu_error_kind::fault, second * ns_per_s, domain};
}

gpu_error loss(u32 stage, u64 second) { return {stage, gpu_error_kind::lost, second * ns_per_s, 0}; }

/// Three stages; the last one is on the CPU.
fallback_rule rule(bool as_run, const std::vector<bool>& alone) {
    return {3, 60 * ns_per_s, as_run, {true, true, false}, alone};
}

fallback_decision judged(const fallback_rule& by, const std::vector<gpu_error>& errors, u64 second) {
    gpu_error_log log;
    for (const gpu_error& e : errors) log.add(e);
    return log.judge(by, second * ns_per_s);
}

using stages = std::vector<u32>;

}  // namespace

TEST_CASE("a death is a GPU error by its exit code, also if it was injected") {
    const auto kind = [](int code, bool ready, bool injected = false) {
        death d;
        d.known = true;
        d.exit_code = code;
        d.was_ready = ready;
        d.injected = injected;
        return gpu_error_of(d);
    };
    CHECK(kind(exit_code::gpu_fault, true) == gpu_error_kind::fault);
    CHECK(kind(exit_code::gpu_fault, true, true) == gpu_error_kind::fault);
    CHECK(kind(exit_code::gpu_lost, true) == gpu_error_kind::lost);
    CHECK(kind(exit_code::no_device, false) == gpu_error_kind::fault);
    CHECK(kind(exit_code::no_device, true) == gpu_error_kind::none);  // the code of an injected exit
    CHECK(kind(exit_code::stage_exception, true) == gpu_error_kind::none);
    CHECK(gpu_error_of({}) == gpu_error_kind::none);
    death late;
    late.known = late.deadline = true;
    late.exit_code = exit_code::gpu_lost;
    CHECK(gpu_error_of(late) == gpu_error_kind::fault);  // a device that does not open
    late.was_ready = true;
    CHECK(gpu_error_of(late) == gpu_error_kind::none);
}

TEST_CASE("all stages leave their GPU after enough errors of the run, or after one loss") {
    const fallback_rule by = rule(true, {});
    CHECK(judged(by, {fault(0, 1), fault(1, 2)}, 3).stages.empty());
    const fallback_decision d = judged(by, {fault(0, 1), fault(1, 2), fault(0, 3)}, 3);
    CHECK(d.stages == stages{0, 1});
    CHECK(d.errors == 3);
    CHECK(d.first_ns == ns_per_s);
    CHECK_FALSE(d.lost);
    CHECK(judged(by, {fault(0, 1), fault(1, 2), fault(0, 63)}, 63).stages.empty());  // the first are too old
    CHECK(judged(by, {loss(1, 1)}, 1).stages == stages{0, 1});
    CHECK(judged(by, {loss(2, 1)}, 1).stages.empty());  // of a stage that can't move
    CHECK(judged(by, {fault(0, 1, 7), fault(1, 1, 7), fault(1, 1, 7)}, 1)
              .stages.empty());  // one fault of a domain
    CHECK(judged(by, {fault(0, 1, 7), fault(1, 1, 8), fault(1, 1, 9)}, 1).stages == stages{0, 1});
}

TEST_CASE("a stage that moves alone counts its own errors, and keeps those of the others") {
    gpu_error_log log;
    const fallback_rule by = rule(false, {true, true, false});
    for (const gpu_error& e : {fault(0, 1), fault(1, 1), fault(0, 2), fault(1, 2)}) log.add(e);
    CHECK(log.judge(by, 2 * ns_per_s).stages.empty());
    log.add(fault(1, 3));
    CHECK(log.judge(by, 3 * ns_per_s).stages == stages{1});
    CHECK(log.judge(by, 3 * ns_per_s).stages.empty());
    log.add(fault(0, 4));
    CHECK(log.judge(by, 4 * ns_per_s).stages == stages{0});
    CHECK(judged(rule(false, {false, true, false}), {loss(0, 1)}, 1).stages.empty());
}

TEST_CASE("a stage that has failed for good moves only if its last error was of the GPU") {
    const fallback_rule by = rule(false, {true, true, false});
    gpu_error_log log;
    CHECK(log.judge_failure(by, 0, ns_per_s).stages.empty());
    log.add(fault(0, 1));
    CHECK(log.judge_failure(by, 1, ns_per_s).stages.empty());
    CHECK(log.judge_failure(by, 0, 100 * ns_per_s).stages == stages{0});  // however old the error is
}
