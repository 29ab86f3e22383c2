// The plan of a run whose stages have left their GPU: memory kinds, depths and guards are those of a run on
// the CPU, and the identity of the run is that of the file.
#include "supervisor/plan/compatibility.hpp"
#include "supervisor/plan/depth_plan.hpp"
#include "supervisor/plan/device_fallback.hpp"
#include "supervisor/plan/memory_plan.hpp"
#include "supervisor/plan/run_options.hpp"
#include "supervisor/plan/run_setup.hpp"
#include "tests/pipelines/spec/parts.hpp"
#include "tests/pipelines/spec/pipeline_support.hpp"

namespace {

using namespace carousel;
using namespace carousel::supervisor;
using device::memory_kind;

struct moving_run {
    pipeline p =
        parse_pipeline("[pipeline]\ndevice = \"cuda:0\"\nfallback = \"cpu\"\n" +
                           test::stage("geometry", "", "") + test::stage("shade", "\"geometry\"", "") +
                           test::stage("display", "\"shade\"", "device = \"cpu\""),
                       "/p.toml");
    run_options o;
    machine_offer machine = read_probe(R"({"devices": [{"ordinal": 0, "uuid": "aa", "name": "A"}]})");

    moving_run() {
        o.stages = test::described(p);
        for (stage_description& d : o.stages) d.slot_bytes = d.format.is_null() ? 0 : 1000;
    }
    [[nodiscard]] run_setup setup(const std::vector<std::string>& on_cpu = {}) const {
        return setup_from(p, o, machine, on_cpu);
    }
};

std::vector<memory_kind> kinds(const run_setup& s) {
    std::vector<memory_kind> all;
    for (const memory_item& m : plan_memory(s)) all.push_back(m.choice.kind);
    return all;
}

using names = std::vector<std::string>;

}  // namespace

TEST_CASE("stages that leave their GPU are planned again: memory, frames in flight, sharing of the GPU") {
    const moving_run run;
    run_setup s = run.setup();
    CHECK(movable_stages(s) == names{"geometry", "shade"});
    CHECK(kinds(s) == std::vector{memory_kind::vmm, memory_kind::memfd});
    CHECK(s.stages[0].lanes == 16);
    CHECK(depth_rule_of(s, 0)["sharing"] == "turns");

    copy_device_plan(s, run.setup({"geometry"}));  // next to a stage on the GPU
    CHECK(kinds(s) == std::vector{memory_kind::memfd, memory_kind::memfd});
    CHECK(s.stages[0].device_name == "cpu");
    CHECK(s.stages[0].left_gpu);
    CHECK_FALSE(s.stages[1].left_gpu);
    CHECK(s.stages[0].gpu_name == "cuda:0");
    CHECK(depth_rule_of(s, 0)["sharing"] == "cpu");
    CHECK(depth_rule_of(s, 1)["sharing"] == "alone");

    copy_device_plan(s, run.setup({"geometry", "shade", "display"}));
    CHECK(s.stages[1].left_gpu);
    CHECK_FALSE(s.stages[2].left_gpu);  // it is on the CPU by the file
    CHECK(s.stages[0].lanes == 2);
    CHECK(s.device_name == "cpu");

    copy_device_plan(s, run.setup());
    CHECK(kinds(s) == kinds(run.setup()));
    CHECK(depths_json(s) == depths_json(run.setup()));
    CHECK(identity_of(s) == identity_of(run.setup()));
}

TEST_CASE("a machine without the GPU of the file can run stages that may leave it") {
    moving_run run;
    run.machine = {};
    CHECK(stages_without_gpu(run.p, run.machine) == names{"geometry", "shade"});
    run.p.stages[1].device = "cpu";
    CHECK(stages_without_gpu(run.p, run.machine) == names{"geometry"});
    run.p.fallback = fallback_kind::none;  // without the key, the start fails as before
    CHECK(stages_without_gpu(run.p, run.machine).empty());
    const machine_offer wanted = with_wanted_gpus({}, run.p);
    REQUIRE(wanted.gpus.size() == 1);
    CHECK(read_probe(to_json(wanted).dump()).gpus[0].id.uuid == "absent-0");
}
