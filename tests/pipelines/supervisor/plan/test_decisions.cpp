// Where memory is placed, which device a stage gets, where pictures are written.
#include <algorithm>
#include <filesystem>
#include <memory>

#include "core/errors.hpp"
#include "device/canary.hpp"
#include "supervisor/plan/device_choice.hpp"
#include "supervisor/plan/guard_plan.hpp"
#include "supervisor/plan/memory_plan.hpp"
#include "supervisor/plan/run_setup.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

using namespace carousel;
using namespace carousel::supervisor;
using carousel::test::contains;
using device::device_id;
using device::device_kind;
using device::memory_kind;

const device_id cpu{};
const device_id gpu0{device_kind::cuda, "aa", 0};
const device_id gpu1{device_kind::cuda, "bb", 1};

run_setup chain(const std::vector<device_id>& devices) {
    run_setup s;
    s.name = "chain";
    for (u32 k = 0; k < devices.size(); ++k) {
        stage_setup st;
        st.spec.name = "s" + std::to_string(k);
        if (k > 0) st.spec.input_indices = {k - 1};
        if (k + 1 < devices.size()) {
            st.format = {{"type", "t"}};
            st.slot_bytes = 1000 * (k + 1);
        }
        st.device = devices[k];
        s.stages.push_back(st);
    }
    return s;
}

}  // namespace

TEST_CASE("memory lies where all its ends can reach it") {
    CHECK(choose_memory({cpu, cpu}, memory_kind::vmm).kind == memory_kind::memfd);
    CHECK(choose_memory({cpu, cpu}, memory_kind::ipc).kind == memory_kind::memfd);
    CHECK(choose_memory({cpu, gpu0}, memory_kind::vmm).kind == memory_kind::memfd);
    CHECK(choose_memory({gpu0, gpu0, cpu}, memory_kind::ipc).kind == memory_kind::memfd);
    CHECK(choose_memory({gpu0, gpu0}, memory_kind::vmm) == memory_choice{memory_kind::vmm, gpu0});
    CHECK(choose_memory({gpu0, gpu0}, memory_kind::ipc) == memory_choice{memory_kind::ipc, gpu0});
    CHECK(choose_memory({gpu1, gpu0}, memory_kind::ipc) ==
          memory_choice{memory_kind::vmm, gpu1});  // the producer's, with peer access
}

TEST_CASE("every ring and asset gets its memory, in the order of the control block") {
    run_setup s = chain({gpu0, gpu0, cpu});
    s.stages[0].memory = memory_kind::ipc;
    s.assets.push_back({"mesh", 4096, 0, {0, 1}});
    s.assets.push_back({"table", 64, 1, {1, 2}});
    const std::vector<memory_item> items = plan_memory(s);
    REQUIRE(items.size() == 4);
    const ring::plan p = plan_of(s);
    CHECK(items[0].name == "ring s0");
    CHECK(items[0].bytes == u64{ring::derived_slots(p, 0)} * (1000 + device::canary_bytes));
    CHECK(items[0].choice.kind == memory_kind::ipc);
    CHECK(items[1].index == 1);
    CHECK(items[1].bytes == u64{ring::derived_slots(p, 1)} * 4096);  // one page for each, followed by a gap
    CHECK(items[1].guard.gaps());
    CHECK(items[0].guard.why == "memory = \"ipc\" is one allocation");
    CHECK(items[1].choice.kind == memory_kind::memfd);
    CHECK(items[2].asset);
    CHECK(items[2].choice == memory_choice{memory_kind::ipc, gpu0});
    CHECK(items[3].choice.kind == memory_kind::memfd);
}

TEST_CASE("a stage with instances on two GPUs has its rings on the first device of its producer") {
    run_setup s = chain({gpu0, gpu0, gpu0});
    s.stages[1].spec.instances = 3;
    s.stages[1].devices = {{gpu1, "cuda:1"}, {gpu0, "cuda:0"}};
    s.stages[1].device = gpu1;
    CHECK(s.stages[1].device_of(0).uuid == "bb");
    CHECK(s.stages[1].device_of(1).uuid == "aa");
    CHECK(s.stages[1].device_of(2).uuid == "bb");
    CHECK(s.stages[1].device_name_of(1) == "cuda:0");
    CHECK(s.stages[1].instances_on("bb") == 2);
    CHECK(s.stages[1].instances_on("aa") == 1);
    CHECK(s.stages[0].instances_on("bb") == 0);
    s.stages[0].memory = s.stages[1].memory = memory_kind::ipc;
    const std::vector<memory_item> items = plan_memory(s);
    CHECK(items[0].choice == memory_choice{memory_kind::vmm, gpu0});  // by vmm, since both reach it
    CHECK(items[1].choice == memory_choice{memory_kind::vmm, gpu1});
}

TEST_CASE("an instance that can't access a ring on another GPU is refused with place and reason") {
    run_setup s = chain({gpu0, gpu0, gpu0});
    s.stages[1].spec.instances = 2;
    s.stages[1].devices = {{gpu0, "cuda:0"}, {gpu1, "cuda:1"}};
    s.stages[1].spec.key_at["device"] = {"p.toml", 9, 1, ""};
    s.assets.push_back({"mesh", 4096, 0, {0, 1}});
    const auto why = [&](const std::string& peers_of_1) -> std::string {
        const machine_offer m = read_probe(R"({"devices": [{"ordinal": 0, "uuid": "aa", "peers": [1]},
            {"ordinal": 1, "uuid": "bb")" + peers_of_1 +
                                           "}]}");
        REQUIRE(m.gpus.size() == 2);
        try {
            require_reach(s, m);
        } catch (const device_error& e) {
            return e.what();
        }
        return "";
    };
    CHECK(why(R"(, "peers": [0])") == "");
    CHECK(why("") == "");  // not reported
    CHECK_THAT(why(R"(, "peers": [])"),
               contains("p.toml:9:1: stage s1: ring s0 is on cuda:0, and cuda:1 can't access that memory"));
    s.stages[1].devices.clear();
    s.stages[1].device = gpu0;
    CHECK(why(R"(, "peers": [])") == "");
    s.stages[1].device = gpu1;  // a stage as a whole
    s.stages[1].device_name = "cuda:1";
    CHECK_THAT(why(R"(, "peers": [])"), contains("and cuda:1 can't access"));
}

TEST_CASE("a device is the requested one, the available one, or an error of one sentence") {
    const machine_offer none = read_probe(R"({"devices": [], "error": "no driver here"})");
    const machine_offer two =
        read_probe(R"({"devices": [{"ordinal": 0, "uuid": "aa", "name": "A", "vmm_posix_fd": false},
                                              {"ordinal": 1, "uuid": "bb", "name": "B"}], "error": null})");
    CHECK(choose_device("auto", none).name == "cpu");
    CHECK(choose_device("cpu", two).name == "cpu");
    CHECK(choose_device("auto", two).name == "cuda:0");
    CHECK_FALSE(choose_device("auto", two).vmm);
    CHECK(choose_device("cuda:1", two).id.uuid == "bb");
    CHECK(choose_device("auto", two, runs_on::cpu).name == "cpu");
    CHECK(choose_device("auto", two, runs_on::cuda).name == "cuda:0");
    CHECK_THROWS_WITH(choose_device("auto", none, runs_on::cuda),
                      test::contains("runs only on a GPU") && test::contains("no driver here"));
    CHECK_THROWS_WITH(choose_device("cuda:0", none), test::contains("no driver here"));
    CHECK_THROWS_WITH(choose_device("cuda:2", two), test::contains("cuda:1 (B)"));
    CHECK_THROWS_AS(choose_device("cuda:2", two), device_error);
    CHECK(read_probe("rubbish").gpus.empty());
    CHECK_FALSE(read_probe("rubbish").why_none.empty());
    CHECK(probe_machine("/nowhere").gpus.empty());
}

TEST_CASE("pictures of a relative pattern go into the output directory, those of an absolute one stay") {
    const scratch_folder folder;
    const std::filesystem::path before = std::filesystem::current_path();
    std::filesystem::current_path(folder.path);
    run_setup s = chain({cpu, cpu});
    s.stages[1].program = "/bin/carousel-display";
    SECTION("relative") {
        s.stages[1].spec.settings["out"] = "p_%03d.png";
        prepare_outputs(s, "stamp");
        CHECK(s.stages[1].spec.settings["out"] == (folder.path / "runs/chain-stamp/p_%03d.png").string());
        CHECK(s.pictures == (folder.path / "runs/chain-stamp").string());
        CHECK(std::filesystem::is_directory(s.pictures));
    }
    SECTION("not given") {
        prepare_outputs(s, "stamp");
        CHECK(s.stages[1].spec.settings["out"] == (folder.path / "runs/chain-stamp/frame_%05d.png").string());
    }
    SECTION("absolute") {
        s.stages[1].spec.settings["out"] = (folder.path / "mine/x_%d.png").string();
        prepare_outputs(s, "stamp");
        CHECK(s.pictures == (folder.path / "mine").string());
        CHECK(folder.names() == std::vector<std::string>{"mine"});
    }
    SECTION("none") {
        s.stages[1].spec.settings["out"] = "";
        prepare_outputs(s, "stamp");
        CHECK(s.pictures.empty());
        CHECK(folder.names().empty());  // a run without files leaves no directory
        CHECK(s.output_directory == (folder.path / "runs/chain-stamp").string());
        CHECK(created_output_directory(s).empty());
        std::filesystem::create_directories(s.output_directory);
        CHECK(created_output_directory(s) == s.output_directory);
    }
    SECTION("a place that can't be written") {
        s.stages[1].spec.settings["out"] = "/proc/nothing/x_%d.png";
        CHECK_THROWS_WITH(prepare_outputs(s, "stamp"), test::contains("/proc/nothing"));
    }
    std::filesystem::current_path(before);
}

TEST_CASE("canaries follow slots without gaps, if requested or if no gaps are available") {
    const auto as_it_is = guard_request::automatic;
    const slot_guard requested = choose_guard(memory_kind::memfd, guard_request::canary, 9, 4096, 0);
    CHECK_FALSE(requested.gaps());
    CHECK(requested.canary_bytes == device::canary_bytes);
    CHECK(choose_guard(memory_kind::ipc, as_it_is, 9, 4096, 0).canaries());
    CHECK(choose_guard(memory_kind::vmm, as_it_is, 64, 4096, 63).canaries());
    CHECK_FALSE(choose_guard(memory_kind::vmm, as_it_is, 64, 4096, 64).canaries());
    CHECK_FALSE(choose_guard(memory_kind::ipc, guard_request::gap, 9, 4096, 0).canaries());
    CHECK_FALSE(choose_guard(memory_kind::ipc, guard_request::off, 9, 4096, 0).canaries());
    CHECK(std::string(choose_guard(memory_kind::ipc, as_it_is, 9, 4096, 0).name()) == "canary");
    CHECK_THAT(choose_guard(memory_kind::ipc, as_it_is, 9, 4096, 0, {.plants = false}).why,
               contains("and a port has no canary"));
}

TEST_CASE("a ring with canaries has them in its slots, and only its writer commits") {
    run_setup s = chain({cpu, cpu, cpu});
    s.stages[1].link.guard = guard_request::canary;
    const auto c = std::make_unique<shm::control_block>();
    ring::initialise(*c, guarded_plan_of(s));
    CHECK(c->link[0].slot_bytes == 1000);
    CHECK((c->stage[0].flags & shm::stage_flag::owner_commits) == 0);
    CHECK(c->link[1].slot_bytes == 2000 + device::canary_bytes);
    CHECK_FALSE(has_canaries(*c, 0, s.stages[0]));
    CHECK(has_canaries(*c, 1, s.stages[1]));
    CHECK_FALSE(has_canaries(*c, 2, s.stages[2]));
    CHECK((c->stage[1].flags & shm::stage_flag::owner_commits) != 0);
    CHECK(plan_memory(s)[1].bytes == c->link[1].slots * c->link[1].slot_bytes);
    CHECK_THAT(output_guard_text(s), contains("after the slots of ring s1 (guard = \"canary\")"));
    s.stages[1].spec.run = "port";
    CHECK_THROWS_WITH(require_guards(s), contains("guard = \"canary\" is unavailable for ring s1"));
}

TEST_CASE("gaps follow slots where descriptors suffice and cost only padding") {
    constexpr u64 mib = 1 << 20;
    const auto as_it_is = guard_request::automatic;
    CHECK(choose_guard(memory_kind::memfd, as_it_is, 9, 4097, 0).piece_bytes == 8192);
    CHECK_FALSE(choose_guard(memory_kind::memfd, guard_request::off, 9, 4096, most_descriptors).gaps());
    CHECK(choose_guard(memory_kind::vmm, as_it_is, 50, 33 * mib, 50).piece_bytes == 34 * mib);
    CHECK(choose_guard(memory_kind::vmm, as_it_is, 50, 1000, 50).pieces == 50);
    CHECK_THAT(choose_guard(memory_kind::vmm, guard_request::gap, 64, mib, 63).why,
               contains("64 more descriptors than the 63"));
    CHECK_FALSE(choose_guard(memory_kind::ipc, guard_request::gap, 9, 33 * mib, most_descriptors).gaps());
}

TEST_CASE("rings in GPU memory get gaps in their order until a message carries no more descriptors") {
    run_setup s = chain(std::vector<device_id>(6, gpu0));
    for (stage_setup& st : s.stages) st.window = shm::max_window;
    s.assets.push_back({"mesh", 4096, 0, {0, 1}});
    u64 descriptors = 0, gapped = 0;
    for (const memory_item& m : plan_memory(s)) {
        descriptors += std::max<u64>(1, m.guard.pieces);
        gapped += m.guard.gaps() ? 1 : 0;
        if (m.guard.gaps()) CHECK(m.bytes == m.guard.pieces * m.guard.piece_bytes);
    }
    CHECK(descriptors <= most_descriptors);
    CHECK(gapped == 4);
    CHECK_THAT(output_guard_text(s), contains("by canaries of 64 KiB") && contains("of ring s4 (") &&
                                         contains("more descriptors than the"));
    s.stages[0].link.guard = guard_request::off;
    CHECK_THAT(output_guard_text(s), contains("of ring s0 (guard = \"off\")"));
    require_guards(s);
    s.stages[4].link.guard = guard_request::gap;
    require_guards(s);  // the first one has left it room
    s.stages[0].link.guard = guard_request::gap;
    CHECK_THROWS_WITH(require_guards(s), contains("guard = \"gap\" is unavailable for ring s4"));
}
