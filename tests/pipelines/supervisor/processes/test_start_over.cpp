// Standbys that a rebuild keeps, without processes: what the supervisor requests, and what it waits for.
#include "supervisor/processes/start_over.hpp"

#include <functional>
#include <iterator>
#include <tuple>

#include "control/stage_message.hpp"
#include "shm/fd_socket.hpp"
#include "supervisor/processes/retire.hpp"
#include "supervisor/processes/seat_commands.hpp"
#include "supervisor/processes/standby.hpp"
#include "tests/pipelines/supervisor/processes/idle_run.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::supervisor;

/// A stage whose only process is a ready standby; the run is being rebuilt.
struct rebuilt_run : test::idle_run {
    shm::unique_fd ours, theirs;

    rebuilt_run() : idle_run("rebuilt") {
        add_source("source").spec.standby = true;
        begin();
        std::tie(ours, theirs) = shm::socket_pair();
        place().standby = std::make_unique<process>();
        standby().connection = ours.get();
        standby().standing_by = standby().how.was_ready = true;
        table->paused = true;
    }
    [[nodiscard]] seat& place() const { return *table->seats[0]; }
    [[nodiscard]] process& standby() const { return *place().standby; }
    [[nodiscard]] bool request() const { return request_start_over(*table, place()); }
};

}  // namespace

TEST_CASE("a rebuild waits until a standby that starts over has reported that it is detached") {
    const rebuilt_run r;
    standby_detached(*r.table, r.ours.get());  // it was not requested
    CHECK_FALSE(r.table->all_gone());
    REQUIRE(r.request());
    shm::message m;
    REQUIRE(shm::receive_message(r.theirs.get(), m) == shm::receive_status::ok);
    CHECK(run::is_start_over(m.text));
    CHECK(r.table->holders_gone());
    CHECK_FALSE(r.table->all_gone());
    standby_detached(*r.table, r.theirs.get());  // another process
    CHECK_FALSE(r.table->all_gone());
    standby_detached(*r.table, r.ours.get());
    CHECK(r.table->all_gone());
    r.table->ending = true;  // the run waits for the end of the process
    CHECK_FALSE(r.table->all_gone());
}

TEST_CASE("only a ready standby of a stage in C++ with its own GPU context and no link starts over") {
    const std::function<void(rebuilt_run&)> changes[] = {
        [](rebuilt_run& r) { r.standby().standing_by = false; },
        [](rebuilt_run& r) { r.standby().connection = -1; },
        [](rebuilt_run& r) { end_standby(r.place()); },
        [](rebuilt_run& r) { r.standby().debuggers = 1; },
        [](rebuilt_run& r) { r.standby().mps.generation = 1; },
        [](rebuilt_run& r) { r.setup.stages[0].forwards_frames = true; },
        [](rebuilt_run& r) { r.setup.stages[0].spec.run = "/stages/blur.py"; },
        [](rebuilt_run& r) { r.setup.stages[0].spec.standby = false; },
        [](rebuilt_run& r) { r.theirs.reset(); },
        [](rebuilt_run& r) { r.place().standby.reset(); }};
    for (std::size_t k = 0; k < std::size(changes); ++k) {
        CAPTURE(k);
        rebuilt_run r;
        changes[k](r);
        CHECK_FALSE(r.request());
    }
}

TEST_CASE("a standby that does not detach is ended 250 ms after all other processes") {
    const rebuilt_run r;
    REQUIRE(r.request());
    const u64 begun = now_ns();
    r.place().now = std::make_unique<process>();
    watch_detaching(*r.table, begun);
    r.place().now.reset();
    watch_detaching(*r.table, begun + 300 * ns_per_ms);
    watch_detaching(*r.table, begun + 549 * ns_per_ms);
    CHECK_FALSE(r.standby().kill_sent);
    watch_detaching(*r.table, begun + 550 * ns_per_ms);
    CHECK(r.standby().kill_sent);
}

TEST_CASE("a detached standby becomes a seat's next process unless its connection is closed") {
    const rebuilt_run r;
    REQUIRE(r.request());
    CHECK_FALSE(take_detached(*r.table, r.place()));
    standby_detached(*r.table, r.ours.get());
    r.standby().connection = -1;
    CHECK_FALSE(take_detached(*r.table, r.place()));
    r.standby().connection = r.ours.get();
    const std::unique_ptr<process> p = take_detached(*r.table, r.place());
    REQUIRE(p);
    CHECK_FALSE(p->how.was_ready);
    CHECK_FALSE(p->has_detached);
    CHECK_FALSE(r.place().standby);
    end_start_over(*r.table);
    CHECK(r.place().standby_due_ns > now_ns());
}

TEST_CASE("a standby of a stage that was restarted or has failed takes over no seat") {
    const std::function<void(rebuilt_run&)> ends[] = {
        [](rebuilt_run& r) {
            r.place().machine.resume(seat_state::failed, now_ns(), 0);
            (void)restart_seat(*r.table, r.place());
        },
        [](rebuilt_run& r) {
            r.setup.stages[0].spec.restart = restart_policy::no;
            r.place().machine.resume(seat_state::running, now_ns(), 0);
            process dead;
            dead.how.known = true;
            dead.how.exit_code = 3;
            apply_restart_policy(*r.table, r.place(), dead);
        }};
    for (std::size_t k = 0; k < std::size(ends); ++k) {
        CAPTURE(k);
        rebuilt_run r;
        REQUIRE(r.request());
        standby_detached(*r.table, r.ours.get());
        ends[k](r);
        REQUIRE_FALSE(take_detached(*r.table, r.place()));
        CHECK_FALSE(r.standby().standing_by);
    }
}
