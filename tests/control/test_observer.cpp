// A run observed from outside: its supervisor ends and is replaced, its memory is recreated, the run ends.

#include <unistd.h>

#include "control/client.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "ring/words.hpp"
#include "telemetry/snapshot.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;
using test::contains;

namespace {

/// A run of this process, with one stage that is this process, too.
class small_run {
public:
    small_run() { make_block(); }
    ~small_run() { shm::segment::remove(id); }
    small_run(const small_run&) = delete;
    small_run& operator=(const small_run&) = delete;

    void make_block() {
        shm::segment::remove(id);
        old = std::move(segment);
        segment = std::make_unique<shm::segment>(shm::segment::create(id));
        shm::control_block& c = segment->block();
        c.entry[0].start_time.store(shm::this_process().start_time);
        c.entry[0].identity.store(
            ring::entry_word{static_cast<u32>(::getpid()), 1, 0, ring::entry_state::live}.pack());
        segment->publish();
    }
    void lead(shm::process_id supervisor) const {
        run::write_record(folder.path.string(), {supervisor, id, "demo", "", "", "", ""});
    }
    [[nodiscard]] run::record record() const { return *run::read_record(folder.path.string()); }

    scratch_folder folder;
    std::string id = "observed" + std::to_string(::getpid());
    std::unique_ptr<shm::segment> segment, old;  ///< old: stays mapped, as by processes that have not noticed
};

const shm::process_id no_process{1, 1};

std::string text_of(const run::observation& s) {
    std::string all;
    for (const run::run_update& n : s.updates) all += n.text + "\n";
    return all;
}

}  // namespace

TEST_CASE("an observer of a run without a control block reports what is missing") {
    run::record r;
    r.run_id = "no-such-run";
    CHECK_THROWS_WITH(run::observer(r), contains("no-such-run"));
}

TEST_CASE("a healthy run produces no note") {
    small_run r;
    r.lead(shm::this_process());
    run::observer o(r.record());
    const run::observation s = o.poll();
    CHECK(s.liveness.state == run::liveness::led);
    CHECK(s.updates.empty());
    CHECK_FALSE(s.recreated);
    CHECK(o.notice(10 * ns_per_s, 8 * ns_per_s).empty());
    CHECK(o.notice(10 * ns_per_s, 0).empty());
    CHECK(o.notice(10 * ns_per_s, 5 * ns_per_s) == "the supervisor has sent no heartbeat for 5 s");
}

TEST_CASE("the end of a supervisor and its successor are reported once each") {
    small_run r;
    r.lead(no_process);
    run::observer o(r.record());
    CHECK_THAT(text_of(o.poll()), contains("no supervisor, 1 stage continues (pid 1)"));
    CHECK(o.notice(0, 0) == "no supervisor, 1 stage continues");
    CHECK(o.poll().updates.empty());
    r.lead(shm::this_process());
    CHECK_THAT(text_of(o.poll()),
               contains("a supervisor has taken over demo (pid " + std::to_string(::getpid())));
    CHECK(o.run().supervisor == shm::this_process());
    CHECK(o.notice(0, 0).empty());
    CHECK(o.poll().updates.empty());
}

TEST_CASE("a rebuilt block is followed, and the old one stays while a reader holds it") {
    small_run r;
    r.lead(shm::this_process());
    run::observer o(r.record(), run::observer::access::take_leases);
    const std::shared_ptr<const run::mapped_block> held = o.mapped();
    const u64 before = o.block().created_ns;
    CHECK_FALSE(o.poll().recreated);
    CHECK(o.mapped() == held);
    r.make_block();
    const run::observation s = o.poll();
    CHECK(s.recreated);
    CHECK(text_of(s) == "demo restarts with new memory\n");
    CHECK(o.block().created_ns == r.segment->block().created_ns);
    CHECK(o.mapped()->attached->block().created_ns == r.segment->block().created_ns);
    CHECK(held->observed->block().created_ns == before);
    CHECK_FALSE(o.poll().recreated);
}

TEST_CASE("between two blocks the old one is watched on") {
    small_run r;
    r.lead(shm::this_process());
    run::observer o(r.record());
    const u64 before = o.block().created_ns;
    shm::segment::remove(r.id);
    CHECK_FALSE(o.poll().recreated);
    CHECK(o.block().created_ns == before);
    r.make_block();
    CHECK(o.poll().recreated);
}

TEST_CASE("an observer maps no memory for writing, and a reader without leases unmaps it") {
    small_run r;
    r.lead(shm::this_process());
    CHECK(run::observer(r.record()).mapped()->attached == nullptr);
    run::observer o(r.record(), run::observer::access::take_leases);
    REQUIRE(o.mapped()->attached != nullptr);
    o.stop_leasing();
    CHECK(o.mapped()->attached == nullptr);
    CHECK(o.poll().liveness.state == run::liveness::led);
    r.make_block();
    CHECK(o.poll().recreated);
    CHECK(o.mapped()->attached == nullptr);
}

TEST_CASE("the end of a run is its supervisor's last word, and a block that follows is not its own") {
    small_run r;
    r.lead(shm::this_process());
    run::observer o(r.record());
    telemetry::note_end(r.segment->block(), 4);
    r.make_block();
    const run::observation s = o.poll();
    CHECK(s.liveness.state == run::liveness::over);
    CHECK(s.liveness.ending == "exit code 4");
    CHECK_FALSE(s.recreated);
}
