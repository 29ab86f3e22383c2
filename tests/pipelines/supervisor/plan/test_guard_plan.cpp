// The plan's text on guards, from the probe's results: which rings have gaps, and which stages could write to
// memory of others.
#include "supervisor/plan/guard_plan.hpp"
#include "supervisor/plan/memory_plan.hpp"
#include "supervisor/plan/run_options.hpp"
#include "supervisor/plan/run_setup.hpp"
#include "tests/pipelines/spec/parts.hpp"
#include "tests/pipelines/spec/pipeline_support.hpp"

namespace {

using namespace carousel;
using namespace carousel::supervisor;
using test::contains;

/// A probe's answer: one GPU, or two, with these facts of the first.
machine_offer gpus(const std::string& facts) {
    return read_probe(R"({"devices": [{"ordinal": 0, "uuid": "aa", "name": "A", )" + facts + R"(},
        {"ordinal": 1, "uuid": "bb", "name": "B", "read_only_host": true, "same_host_address": true}]})");
}
const std::string on_gpu = "\"cuda:0\"", on_cpu = "\"cpu\"";
const std::string able = R"("read_only_host": true, "same_host_address": true)";

/// geometry -> shade -> display, each on its device; geometry makes the asset mesh, which the others read.
run_setup planned(const std::vector<std::string>& devices, const machine_offer& on,
                  const std::string& links = "") {
    const auto device = [&](std::size_t k) { return "device = " + devices[k]; };
    const pipeline p = parse_pipeline(test::stage("geometry", "", device(0)) +
                                          test::stage("shade", "\"geometry\"", device(1)) +
                                          test::stage("display", "\"shade\"", device(2)) + links,
                                      "/p.toml");
    run_options o;
    o.stages = test::described(p);
    for (stage_description& d : o.stages) d.slot_bytes = d.format.is_null() ? 0 : 1000;
    o.stages[0].makes = {{"mesh", 4096}};
    o.stages[1].uses = o.stages[2].uses = {"mesh"};
    return setup_from(p, o, on);
}

const slot_guard guard_of(const run_setup& s, std::size_t link) { return plan_memory(s).at(link).guard; }

}  // namespace

TEST_CASE("a host ring has no gaps but canaries for a GPU with other host addresses") {
    const std::vector<std::string> devices{on_gpu, on_cpu, on_cpu};
    const run_setup can = planned(devices, gpus(able));
    CHECK(guard_of(can, 0).gaps());
    CHECK_THAT(output_guard_text(can), !contains("canaries"));
    const auto facts = GENERATE(R"("read_only_host": true, "same_host_address": false)",
                                R"("read_only_host": true)");  // of a probe that doesn't know
    CAPTURE(facts);
    const run_setup s = planned(devices, gpus(facts));
    CHECK_FALSE(guard_of(s, 0).gaps());
    CHECK(guard_of(s, 0).canaries());
    CHECK(std::string(guard_of(s, 0).name()) == "canary");  // the report's word
    CHECK(guard_of(s, 1).gaps());                           // its writer is on the CPU
    CHECK_THAT(output_guard_text(s),
               contains("after the slots of ring geometry (its writer's GPU uses other addresses for host "
                        "memory than the CPU)"));
    CHECK_THROWS_WITH(
        planned(devices, gpus(facts), "[link.geometry]\nguard = \"gap\"\n"),
        contains("/p.toml:") && contains("guard = \"gap\" is unavailable for ring geometry: its "
                                         "writer's GPU uses other addresses for host memory"));
    CHECK(guard_of(planned({on_cpu, on_gpu, on_cpu}, gpus(facts)), 0).gaps());  // it only reads that one
    CHECK(guard_of(planned({on_gpu, on_gpu, on_cpu}, gpus(facts)), 0).gaps());  // GPU memory
}

TEST_CASE("of instances on several GPUs one with other addresses for host memory is enough") {
    const std::vector<std::string> devices{on_cpu, "[\"cuda:1\", \"cuda:0\"]\ninstances = 2", on_cpu};
    CHECK(guard_of(planned(devices, gpus(able)), 1).gaps());
    CHECK_FALSE(
        guard_of(planned(devices, gpus(R"("read_only_host": true, "same_host_address": false)")), 1).gaps());
}

TEST_CASE("a stage that can't map a ring or an asset read-only is named with the obstacle") {
    CHECK_THAT(guard_text(planned({on_cpu, on_gpu, on_gpu}, gpus(able))), contains("inputs: guarded"));
    const std::string cant =
        guard_text(planned({on_cpu, on_gpu, on_cpu}, gpus(R"("read_only_host": false)")));
    CHECK_THAT(cant, contains("inputs: unguarded: shade could write to ring geometry (cuda:0 can't page-lock "
                              "host memory read-only)"));
    CHECK_THAT(cant, !contains("asset mesh"));  // a GPU has its own copy of what is on the host
    CHECK_THAT(cant, !contains("display"));     // on the CPU
    const std::string ipc =
        guard_text(planned({on_gpu, on_gpu, on_gpu}, gpus(able), "[link.geometry]\nmemory = \"ipc\"\n"));
    CHECK_THAT(ipc, contains("shade could write to ring geometry (memory = \"ipc\" is mapped for writing)"));
    CHECK_THAT(ipc, contains("shade could write to asset mesh (memory = \"ipc\" is mapped for writing)"));
    CHECK_THAT(ipc, contains("display could write to asset mesh (memory = \"ipc\""));
    CHECK_THAT(ipc, !contains("ring shade"));
}

TEST_CASE("for an MPS client the plan states that a GPU fault ends its domain") {
    const std::string alone = guard_text(planned({on_gpu, on_gpu, on_gpu}, gpus(able)));
    CHECK_THAT(alone, !contains("MPS"));
    const run_setup shared = planned({on_gpu, on_gpu + "\nisolation = \"mps\"", on_gpu}, gpus(able));
    CHECK_THAT(guard_text(shared),
               contains("ends only that stage (under MPS: all stages of its domain, which is then renewed)"));
    CHECK_THAT(output_guard_text(shared),
               contains("(under MPS: all stages of its domain, which is then renewed)"));
    const std::string canaries =
        "[link.geometry]\nguard = \"canary\"\n[link.shade]\nguard = \"canary\"\n";  // which end only the
                                                                                    // maker
    CHECK_THAT(
        output_guard_text(planned({on_gpu, on_gpu + "\nisolation = \"mps\"", on_gpu}, gpus(able), canaries)),
        !contains("MPS"));
}
