// The result of "auto" before the first process starts: by device, request, limits and memory.
#include <memory>
#include <string>
#include <vector>

#include "core/errors.hpp"
#include "supervisor/plan/depth_plan.hpp"
#include "supervisor/plan/memory_plan.hpp"
#include "supervisor/plan/standby_plan.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::supervisor;
using carousel::test::contains;
using device::device_id;
using device::device_kind;

constexpr u64 mib = 1024 * 1024, gib = 1024 * mib;
const device_id cpu{};
const device_id gpu0{device_kind::cuda, "aa", 0};
const device_id gpu1{device_kind::cuda, "bb", 1};

/// source -> ... -> sink on these devices, with a ring of slots of that size after each except the last.
run_setup chain(const std::vector<device_id>& devices, u64 slot_bytes = mib) {
    run_setup s;
    s.name = "chain";
    s.file = "p.toml";
    for (u32 k = 0; k < devices.size(); ++k) {
        stage_setup st;
        st.spec.name = "s" + std::to_string(k);
        st.spec.at = {"p.toml", 10 + k, 1, ""};
        if (k > 0) st.spec.input_indices = {k - 1};
        if (k + 1 < devices.size()) {
            st.format = {{"type", "t"}};
            st.slot_bytes = slot_bytes;
        }
        st.device = devices[k];
        s.stages.push_back(st);
    }
    return s;
}

free_memory room(u64 on_gpu, u64 on_host = ~u64{0}) {
    return {on_host, {}, {{"aa", on_gpu}, {"bb", on_gpu}}};
}

u64 taken_on(const run_setup& s, const std::string& uuid) {
    u64 sum = 0;
    for (const memory_item& m : plan_memory(s))
        if (m.choice.kind != device::memory_kind::memfd && m.choice.device.uuid == uuid) sum += m.bytes;
    return sum;
}

/// All limits that initialise() would refuse at.
void check_fits(const run_setup& s) {
    auto c = std::make_unique<shm::control_block>();
    ring::initialise(*c, plan_of(s));
    for (u32 k = 0; k < c->links; ++k) {
        CHECK(c->link[k].window >= 1);
        CHECK(c->link[k].slots <= shm::max_slots);
    }
}

}  // namespace

TEST_CASE("a GPU gets enough depth for its turns, a CPU enough to keep its cores busy") {
    run_setup s = chain({gpu0, gpu0, gpu0});
    choose_depths(s, room(100 * gib));
    for (const stage_setup& st : s.stages) CHECK(st.lanes == 16);
    CHECK(s.stages[0].window == 18);
    CHECK(s.stages[2].window == 0);
    CHECK(s.depth_reason == "latency \"balanced\"");
    check_fits(s);

    s = chain({cpu, cpu, cpu});
    choose_depths(s, room(0, 100 * gib));
    for (const stage_setup& st : s.stages) CHECK(st.lanes == 2);
    CHECK(s.stages[0].window == 4);

    s = chain({gpu0, gpu0, gpu0});
    s.stages[2].spec.input_indices = {0};
    s.stages[2].spec.group = group_kind::latest;
    choose_depths(s, room(100 * gib));
    CHECK(s.stages[2].lanes == 1);  // it reads frames one at a time
    CHECK(s.stages[0].window == 18);

    s = chain({gpu0, cpu});
    choose_depths(s, room(100 * gib));
    CHECK(s.stages[0].lanes == 16);
    CHECK(s.stages[1].lanes == 2);
    check_fits(s);
}

TEST_CASE("latency requests small or large rings") {
    run_setup s = chain({gpu0, gpu0});
    s.latency = latency_kind::low;
    choose_depths(s, room(100 * gib));
    CHECK(s.stages[0].lanes == 2);
    CHECK(s.stages[0].window == 4);
    s.latency = latency_kind::throughput;
    choose_depths(s, room(100 * gib));
    CHECK(s.stages[0].lanes == 16);
    CHECK(s.stages[0].window == 31);  // as far as a ring's buffers go
    check_fits(s);
    s = chain({cpu, cpu});
    s.latency = latency_kind::low;
    choose_depths(s, room(0));
    CHECK(s.stages[0].lanes == 2);
    CHECK(s.stages[0].window == 4);
}

TEST_CASE("a number in the file is used unchanged, for any memory size and request") {
    run_setup s = chain({gpu0, gpu0, gpu0});
    s.latency = latency_kind::low;
    s.stages[0].spec.in_flight = 9;
    s.stages[1].link.window = 1;
    choose_depths(s, room(30 * mib));
    CHECK(s.stages[0].lanes == 9);
    CHECK(s.stages[1].lanes < 9);
    CHECK(plan_of(s).stages[1].window == 1);
    run_setup all = chain({gpu0, gpu0});
    all.stages[0].spec.in_flight = all.stages[1].spec.in_flight = 5;
    all.stages[0].link.window = 7;
    choose_depths(all, room(1));
    CHECK(plan_of(all).stages[0].in_flight == 5);
    CHECK(plan_of(all).stages[0].window == 7);
    CHECK(all.depth_reason.empty());
}

TEST_CASE("frames too large for the depth reduce it to half of the free memory, with a report") {
    for (const u64 slot : {16 * mib, 64 * mib, 200 * mib}) {
        run_setup s = chain({gpu0, gpu0, gpu0}, slot);
        choose_depths(s, room(8 * gib));
        CHECK(taken_on(s, "aa") <= 4 * gib);
        CHECK(s.stages[0].lanes >= 1);
        const u32 lanes = s.stages[0].lanes;
        CHECK((lanes < 16) == (slot > 16 * mib));
        if (lanes < 16) CHECK_THAT(s.depth_reason, test::contains("free on cuda:0"));
        check_fits(s);
    }
    run_setup small = chain({gpu0, gpu0, gpu0}, 64 * mib), large = chain({gpu0, gpu0, gpu0}, 200 * mib);
    choose_depths(small, room(8 * gib));
    choose_depths(large, room(8 * gib));
    CHECK(large.stages[0].lanes < small.stages[0].lanes);
    run_setup host = chain({cpu, cpu}, 200 * mib);
    choose_depths(host, room(0, 2 * gib));
    CHECK(host.stages[0].lanes < 2);
    CHECK_THAT(host.depth_reason, test::contains("free on the host"));
    run_setup two = chain({gpu0, gpu1, gpu1}, 64 * mib);  // a ring on each device: each has its own room
    choose_depths(two, room(8 * gib));
    CHECK(two.stages[0].lanes > small.stages[0].lanes);
}

TEST_CASE("several instances share the depth of one, and every ring keeps within its buffers") {
    for (u32 instances = 1; instances <= 16; ++instances) {
        for (const auto& device : {cpu, gpu0}) {
            run_setup s = chain({device, device, device});
            s.stages[1].spec.instances = instances;
            choose_depths(s, room(100 * gib));
            CAPTURE(instances, s.depth_reason);
            check_fits(s);
        }
    }
}

TEST_CASE("a plan that exceeds the devices' memory is refused with the device and the numbers") {
    run_setup s = chain({gpu0, gpu0}, 1 * gib);
    s.stages[0].spec.in_flight = 16;
    s.stages[0].spec.key_at["in_flight"] = {"p.toml", 12, 1, ""};
    choose_depths(s, room(20 * gib));
    CHECK_THROWS_WITH(require_room(s, room(20 * gib)),
                      test::contains("p.toml:12:1: ") && test::contains("ring s0 alone") &&
                          test::contains("in_flight = 16") && test::contains("20.0 GiB are free there") &&
                          test::contains("cuda:0"));
    CHECK_NOTHROW(require_room(s, room(100 * gib)));
    run_setup automatic = chain({gpu0, gpu0}, 1 * gib);
    choose_depths(automatic, room(20 * gib));
    CHECK_NOTHROW(require_room(automatic, room(20 * gib)));
    run_setup host = chain({cpu, cpu}, 1 * gib);
    host.stages[0].link.window = 40;
    host.stages[0].link.key_at["window"] = {"p.toml", 20, 1, ""};
    choose_depths(host, room(0, 16 * gib));
    CHECK_THROWS_WITH(require_room(host, room(0, 16 * gib)),
                      test::contains("p.toml:20:1: ") && test::contains("the host"));
    CHECK_NOTHROW(require_room(host, free_memory{}));  // unknown to the plan: the consumer reports it
}

TEST_CASE("slots and copies on a reading GPU, and a spare MPS server, are planned for") {
    const auto lines = [](const run_setup& s) {
        std::vector<std::string> all;
        for (const memory_item& m : plan_extra_memory(s))
            all.push_back(m.name + " on " + m.choice.device.uuid + " " + std::to_string(m.bytes / mib));
        return all;
    };
    CHECK(lines(chain({gpu0, gpu0, cpu}, 8 * mib)).empty());
    run_setup s = chain({gpu0, gpu1}, 8 * mib);
    CHECK(lines(s) == std::vector<std::string>{"a slot of ring s0 on bb 8"});
    s.assets.push_back({"mesh", 64 * mib, 0, {0, 1}});
    s.stages[1].mps = true;
    CHECK(lines(s) == std::vector<std::string>{"a slot of ring s0 on bb 8", "a copy of asset mesh on bb 64",
                                               "the spare MPS server on bb 20"});
    s.stages[1].spec.instances = 2;
    s.stages[1].devices = {{gpu0, "cuda:0"}, {gpu1, "cuda:1"}};
    CHECK(lines(s).size() == 4);  // its first instance is next to the ring; a server on each GPU
    CHECK_THROWS_WITH(
        require_room(s, {~u64{0}, {}, {{"bb", 60 * mib}}}),
        test::contains("a copy of asset mesh alone 64.0 MiB") && test::contains("60.0 MiB are free there"));
    run_setup host = chain({gpu0, cpu, gpu0});
    host.assets.push_back({"mesh", 64 * mib, 0, {0, 1}});
    CHECK(lines(host) == std::vector<std::string>{"a copy of asset mesh on aa 64"});
    run_setup remembers = chain({gpu0, gpu0}, 8 * mib);
    remembers.stages[0].state = true;
    remembers.stages[0].more.emplace_back().slot_bytes = 2 * mib;
    CHECK(lines(remembers) == std::vector<std::string>{"zeros before the first state of s0 on aa 2"});
}

TEST_CASE("stages with separate contexts on a GPU get one token, and useless turns are explained") {
    run_setup s = chain({gpu0, gpu0, gpu1, gpu1, cpu});
    CHECK(depth_rule_of(s, 0)["token"] == 0);
    CHECK(depth_rule_of(s, 1)["token"] == 0);
    CHECK(depth_rule_of(s, 2)["token"] == 1);
    CHECK(depth_rule_of(s, 4)["token"] == shm::none);
    CHECK(depth_rule_of(s, 0)["turn_frames"] == 0);
    CHECK(idle_turns(s).empty());
    s.turn_frames = 8;
    CHECK(depth_rule_of(s, 0)["turn_frames"] == 8);
    CHECK(idle_turns(s).empty());
    s.turn_frames = 0;
    CHECK(depth_rule_of(s, 0)["token"] == shm::none);
    CHECK(idle_turns(s).empty());
    s.turn_frames.reset();
    for (const auto& [latency, token] :
         {std::pair{latency_kind::low, shm::none}, std::pair{latency_kind::throughput, shm::none},
          std::pair{latency_kind::balanced, 0U}}) {
        s.latency = latency;
        CHECK(depth_rule_of(s, 0)["token"] == token);
    }
    s.turn_frames = 8;
    for (stage_setup& st : s.stages) st.mps = st.device.kind == device_kind::cuda;
    CHECK(depth_rule_of(s, 0)["token"] == shm::none);
    CHECK(idle_turns(s) == "turns = 8 has no effect in this run: in an MPS domain stages overlap on the GPU");
    run_setup apart = chain({gpu0, gpu1, cpu});
    apart.turn_frames = 1;
    CHECK(idle_turns(apart) == "turns = 1 has no effect in this run: no two contexts of the run share a GPU");
    run_setup host = chain({cpu, cpu});
    host.turn_frames = 1;
    CHECK(idle_turns(host) == "turns = 1 has no effect in this run: none of its stages runs on a GPU");
}

TEST_CASE("a stage learns which stages take turns with it") {
    run_setup s = chain({gpu0, gpu0, gpu1, cpu});
    s.stages[1].spec.instances = 2;
    s.stages[0].spec.in_flight = 4;
    const auto first = depth_rule_of(s, 0);
    CHECK(first["sharing"] == "turns");
    CHECK(first["contexts"] == 3);
    CHECK(first["turn_stages"] == nlohmann::json({0, 1}));
    CHECK(first["lanes_given"] == true);
    CHECK(first["window_given"] == false);
    CHECK(depth_rule_of(s, 1)["lanes_given"] == false);
    CHECK(depth_rule_of(s, 2)["sharing"] == "alone");
    CHECK(depth_rule_of(s, 3)["sharing"] == "cpu");
    for (stage_setup& st : s.stages) st.mps = st.device.kind == device_kind::cuda;
    CHECK(depth_rule_of(s, 0)["sharing"] == "overlap");
}

TEST_CASE("instances on two GPUs take turns only with instances on the same GPU") {
    run_setup s = chain({gpu0, gpu0, gpu0});
    s.stages[1].spec.instances = 2;
    s.stages[1].devices = {{gpu0, "cuda:0"}, {gpu1, "cuda:1"}};
    choose_depths(s, room(64 * gib));
    const auto first = depth_rule_of(s, 1, 0), second = depth_rule_of(s, 1, 1), source = depth_rule_of(s, 0);
    CHECK(source["contexts"] == 3);
    CHECK(first["contexts"] == 3);
    CHECK(first["sharing"] == "turns");
    CHECK(first["token"] == source["token"]);
    CHECK(first["turn_stages"] == nlohmann::json{0, 1, 2});
    CHECK(second["contexts"] == 1);
    CHECK(second["sharing"] == "alone");
    CHECK(second["token"] == shm::none);
    s.turn_frames = 4;
    CHECK(idle_turns(s).empty());
    s.stages[0].device = s.stages[2].device = cpu;
    CHECK_THAT(idle_turns(s), contains("no two contexts of the run share a GPU"));
}

TEST_CASE("a low-latency run takes turns only if the file sets their number of frames") {
    run_setup s = chain({gpu0, gpu0});
    s.latency = latency_kind::low;
    choose_depths(s, room(64 * gib));
    CHECK(depth_rule_of(s, 0)["token"] == shm::none);
    CHECK(depth_rule_of(s, 0)["sharing"] == "turns");  // its contexts share the GPU all the same
    s.turn_frames = 2;
    CHECK(depth_rule_of(s, 0)["token"] == 0);
    s.turn_frames.reset();
    s.latency = latency_kind::balanced;
    CHECK(depth_rule_of(s, 0)["token"] == 0);
}

TEST_CASE("standby = auto keeps standbys of all stages on a GPU with room for their contexts, or none") {
    run_setup s = chain({gpu0, gpu0, cpu});
    for (stage_setup& st : s.stages) {
        st.spec.standby_auto = true;
        st.device_name = "cuda:0";
    }
    s.stages[0].spec.instances = 2;
    const u64 rings = taken_on(s, "aa"),
              contexts = 6 * context_bytes;  // of three processes and their standbys
    const auto chosen = [&](const free_memory& memory) {
        run_setup with = s;
        choose_standbys(with, memory);
        CHECK_FALSE(with.stages[2].spec.standby);  // on the CPU a fresh process starts fast
        CHECK(with.stages[0].spec.standby == with.stages[1].spec.standby);
        CHECK(with.stages[0].spec.standby == with.standby_reason.empty());
        return standby_text(with);
    };
    CHECK_THAT(chosen(room(rings + contexts)), contains("standbys: s0, s1; about 1.6 GiB of GPU memory"));
    CHECK_THAT(chosen(room(rings + contexts - 1)), contains("no standbys: ") && contains("free on a GPU"));
    CHECK_THAT(chosen({}), contains("standbys: s0, s1;"));  // the free memory is unknown
    SECTION("the spare MPS domain needs a second server") {
        s.stages[0].mps = s.stages[0].one_server = true;
        CHECK_THAT(chosen(room(100 * gib)), contains("EXCLUSIVE_PROCESS"));
    }
    SECTION("a stage that can have no standby has none") {
        s.stages[1].spec.prefix = {"gdb"};
        choose_standbys(s, room(100 * gib));
        CHECK(s.stages[0].spec.standby);
        CHECK_FALSE(s.stages[1].spec.standby);
    }
    SECTION("a second supervisor keeps the choice") {
        run_setup first = s;
        choose_standbys(first, room(100 * gib));
        choose_standbys(s, room(0));
        restore_depths(depths_json(first), s);
        CHECK(s.stages[0].spec.standby);
    }
    SECTION("a reload that asks for the choice does not take the old setting for one") {
        run_setup first = s;
        first.stages[0].spec.standby_auto = first.stages[1].spec.standby_auto = false;
        choose_standbys(s, room(100 * gib));
        restore_depths(depths_json(first), s);
        CHECK(s.stages[0].spec.standby);
    }
}
