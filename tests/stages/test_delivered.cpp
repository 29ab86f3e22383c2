// The position up to which the sinks of a run have delivered, as a receiving stage reports it to its sender.
#include "ledger/ledger.hpp"
#include "ring/topology.hpp"
#include "run/checkpoint.hpp"
#include "shm/segment.hpp"
#include "stages/runner/delivered.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;

namespace {

void deliver(const scratch_folder& folder, const std::string& sink, u64 first, u64 end) {
    telemetry::ledger_writer writer(telemetry::ledger_path(folder.path.string(), sink));
    for (u64 n = first; n < end; ++n) {
        writer.record(n, n, false, 1);
        writer.mark_committed(n, n, false, 1);
    }
}

void suspend(const scratch_folder& folder, const std::string& sink, u64 first) {
    telemetry::frame_claims claims;
    claims.suspend(first);
    claims.save(telemetry::ledger_path(folder.path.string(), sink));
}

/// A run whose frames come from another host, with the sink "sink" and the ports `ports`, which frames skip.
struct receiving_run {
    scratch_folder folder;
    shm::private_block c = shm::make_private_block();

    explicit receiving_run(const std::vector<std::string>& ports = {}) {
        ring::plan p;
        p.stages = {{"receive", {}, true}, {"sink", {0}, false}};
        for (const std::string& port : ports) p.stages.push_back({port, {0}, false});
        for (std::size_t k = 2; k < p.stages.size(); ++k) p.stages[k].skips = true;
        for (ring::stage_plan& s : p.stages) s.slot_bytes = 256;
        ring::initialise(*c, p);
    }
    [[nodiscard]] stages::delivered delivered(const std::string& kept = "") const {
        return {*c, folder.path.string(), 0, kept};
    }
};

}  // namespace

TEST_CASE("a program that attaches to a port that skips holds no acknowledgement up") {
    const receiving_run r({"eye"});
    suspend(r.folder, "eye", 0);  // as the supervisor does for each reader that may miss frames
    stages::delivered d = r.delivered();
    CHECK(d.below() == 0);
    deliver(r.folder, "sink", 0, 10);
    CHECK(d.below() == 10);
    deliver(r.folder, "eye", 10, 12);  // a program has been attached since frame 10
    deliver(r.folder, "sink", 10, 30);
    CHECK(d.below() == 30);
}

TEST_CASE("a damaged count of stages or outputs leaves no sink out of the acknowledgement") {
    const receiving_run r;
    deliver(r.folder, "sink", 0, 4);
    stages::delivered d = r.delivered();
    r.c->stages = 1;
    r.c->stage[1].outputs = 1;
    r.c->stage[1].flags = ~0U;
    CHECK(d.below() == 4);
}

TEST_CASE("a run with checkpoints releases only frames that it never needs again") {
    const receiving_run r;
    const std::string kept = (r.folder.path / "kept").string();
    stages::delivered d = r.delivered(kept);
    deliver(r.folder, "sink", 0, 10);
    CHECK(d.below() == 10);
    CHECK(d.releasable() == 0);  // the run would begin at frame 0
    REQUIRE(run::write_state(kept, {"sink", 4, 1}, {}) == 0);
    CHECK(d.releasable() == 0);  // the checkpoint is not complete
    REQUIRE(run::write_checkpoints(kept, {4, 8}) == 0);
    CHECK(d.releasable() == 8);
    REQUIRE(run::write_checkpoints(kept, {8, 12}) == 0);
    CHECK(d.releasable() == 10);
    REQUIRE(run::write_checkpoints(kept, {4, 8}) == 0);
    r.c->end.store(10);
    CHECK(d.releasable() == 10);  // the stream has ended
    r.c->stop_asked.store(1);
    CHECK(d.releasable() == 8);  // the run was stopped, and another one continues
}
