#include "builders.hpp"
#include "catalogue.hpp"

namespace carousel::model {
namespace {

/// An instant source, then the stage under test with `incarnations` on `seats`, then a link with one quick
/// consumer.
setup reader(int frames, int slots, int window) {
    setup s;
    s.stages = {{.source = 0, .output = {0, -1}, .instant = true}, {.input = {0, -1}, .output = {1, -1}}};
    s.links = {{.slots = window, .window = window, .consumers = 0, .quick_free = true},
               {.slots = slots, .window = window, .consumers = 1, .quick = 1, .quick_free = true}};
    s.seat_stage = {1};
    s.incarnations = {{0, 1}, {0, -1}};
    s.lanes = {0, 1};
    s.frames = frames;
    s.numbers = window;
    s.quick_work = true;
    return s;
}

setup reader_instances(int frames, int slots, int window) {
    return change(reader(frames, slots, window), [](setup& s) {
        s.seat_stage = {1, 1};
        s.incarnations = {{0, 1}, {0, -1}, {1, -1}};
        s.lanes = {0, 1, 2};
        s.jobs_a_seat = 1;
    });
}

/// An instant source, then a sink that is a stage.
setup sink(int frames, int window) {
    return change(reader(frames, window, window), [](setup& s) {
        s.stages[1].output[0] = -1;
        s.links.pop_back();
    });
}

setup sink_in_flight(int frames, int window) {
    return change(sink(frames, window), [](setup& s) {
        s.lanes = {0, 0, 1, 1};
        s.jobs_a_seat = 2;
    });
}

/// As above, for a sink that takes each second frame.
setup sink_of_every_second(int frames, int window) {
    return change(sink_in_flight(frames, window), [](setup& s) { s.stages[1].every = 2; });
}

/// Two instant sources, joined by the stage under test.
setup join(bool instances) {
    setup s;
    s.stages = {{.source = 0, .output = {0, -1}, .instant = true},
                {.source = 1, .output = {1, -1}, .instant = true},
                {.input = {0, 1}, .output = {2, -1}}};
    const link_setup in{.slots = 2, .window = 2, .consumers = 0, .quick_free = true};
    s.links = {in, in, {.slots = 2, .window = 2, .consumers = 1, .quick = 1, .quick_free = true}};
    s.quick_work = s.quick_finish = s.lowest_first = true;
    s.seat_stage = {2};
    s.incarnations = {{0, 1}, {0, -1}};
    s.lanes = {0, 1};
    if (instances) {
        s.seat_stage = {2, 2};
        s.incarnations = {{0, 1}, {0, -1}, {1, -1}};
        s.lanes = {0, 1, 2};
        s.jobs_a_seat = 1;
    }
    return s;
}

setup two_stages() {
    setup s;
    s.stages = {{.source = 0, .output = {0, -1}}, {.input = {0, -1}, .output = {1, -1}}};
    s.links = {{.slots = 3, .window = 2, .consumers = 0, .quick_free = true},
               {.slots = 2, .window = 2, .consumers = 1, .quick = 1, .quick_free = true}};
    s.seat_stage = {0, 1};
    s.incarnations = {{0, 1}, {0, -1}, {1, -1}};
    s.lanes = {0, 1, 2};
    s.lowest_first = s.quick_finish = true;
    return s;
}

setup stopped_source(ending how) {
    return change(two_instances(2, 3, 2, 2), [=](setup& s) {
        s.quick_work = s.lowest_first = s.two_step_lease = s.links[0].quick_free = true;
        s.end = how;
    });
}

/// Two sources on separate links, one END for both.
setup two_sources() {
    setup s;
    s.stages = {{.source = 0, .output = {0, -1}}, {.source = 1, .output = {1, -1}}};
    const link_setup l{.slots = 2, .window = 2, .consumers = 1, .quick = 1, .quick_free = true};
    s.links = {l, l};
    s.seat_stage = {0, 1};
    s.incarnations = {{0, 1}, {0, -1}, {1, -1}};
    s.lanes = {0, 1, 2};
    s.jobs_a_seat = 1;
    s.lowest_first = s.two_step_lease = true;
    s.end = ending::two_phases;
    return s;
}

/// The first source's stream ends before frame 1, in a run that could continue.
setup ends_at_1(setup s, ending how = ending::known) {
    s.stages[0].ends_at = 1;
    s.frames = 3;
    s.two_step_lease = s.lowest_first = true;
    s.end = how;
    return s;
}

/// As above, and a slot is filled before the source finds that out; its device may still write.
setup ends_with_work() {
    return ends_at_1(
        change(two_instances(3, 2, 2, 2), [](setup& s) { s.quick_finish = s.links[0].quick_free = true; }));
}

/// As above, joined with the frames of another source, which is ahead.
setup ends_next_to_another() {
    setup s;
    s.stages = {{.source = 0, .output = {0, -1}},
                {.source = 1, .output = {1, -1}, .instant = true},
                {.input = {0, 1}, .output = {2, -1}}};
    const link_setup in{.slots = 3, .window = 2, .consumers = 0, .quick_free = true};
    s.links = {in, in, {.slots = 2, .window = 2, .consumers = 1, .quick = 1, .quick_free = true}};
    s.quick_work = s.quick_finish = true;
    s.seat_stage = {0, 2};
    s.incarnations = {{0, 1}, {0, -1}, {1, -1}};
    s.lanes = {0, 1, 2};
    s.jobs_a_seat = 2;
    return ends_at_1(s);
}

/// Frame 0 kills every process that works on it.
setup poisoned(bool in_flight) {
    setup s = one_stage(2, 3, 2);
    s.links[0].quick_free = true;
    s.lowest_first = s.two_step_lease = true;
    s.poison = 0;
    s.outside_kills = 0;
    if (!in_flight) return s;
    s.incarnations = {{0, 1}, {0, 2}, {0, -1}};
    s.lanes = {0, 0, 1, 1, 2, 2};
    s.jobs_a_seat = 3;
    s.quick_work = true;
    return s;
}

std::vector<entry> reading_entries() {
    return {
        {"a reading stage that dies delivers every frame", reader(2, 3, 2), failure::holds},
        {"a reading stage with two instances delivers every frame", reader_instances(2, 2, 2),
         failure::holds},
        {"a reading stage that is helped delivers every frame",
         change(reader(2, 2, 2), [](setup& s) { s.helper_link = 1, s.quick_finish = s.lowest_first = true; }),
         failure::holds},
        {"a source that dies and its downstream stage deliver every frame", two_stages(), failure::holds,
         effort::lengthy},
        {"a stage with outputs may skip a frame that is not ready",
         change(reader_instances(2, 2, 2), [](setup& s) { s.with.in_order_lease = false; }), failure::holds},
        {"a join with two instances delivers every frame", join(true), failure::holds},
        {"a join whose incarnation dies delivers every frame", join(false), failure::holds},
        {"a join that keeps its first lease after losing the second is detected",
         change(join(true), [](setup& s) { s.seeded.join_keeps_first = true; }), failure::stuck},
        {"a sink that dies commits in order", sink(3, 2), failure::holds},
        {"a sink with two jobs in flight that dies commits in order", sink_in_flight(2, 2), failure::holds},
        {"a sink of every second frame gets each of them once, in order, through deaths",
         sink_of_every_second(4, 2), failure::holds},
        {"a frame that a sink does not take is detected if no process closes it",
         change(sink_of_every_second(3, 2), [](setup& s) { s.with.close_untaken = false; }), failure::stuck},
        {"a sink that leases a frame which it does not take is detected",
         change(sink_of_every_second(3, 2), [](setup& s) { s.with.skip_untaken = false; }), failure::order},
        {"a sink that skips a frame that is not ready is detected",
         change(sink(2, 2), [](setup& s) { s.with.in_order_lease = false; }), failure::order},
        {"a sink that skips its predecessor's frame is detected",
         change(sink(3, 2), [](setup& s) { s.with.sink_waits_for_predecessor = false; }), failure::order},
        {"a sink that commits in the order in which its jobs end is detected",
         change(sink_in_flight(2, 2), [](setup& s) { s.with.sink_commits_in_order = false; }),
         failure::order},
    };
}

std::vector<entry> end_entries() {
    return {
        {"ending a run in two phases leaves no frame undelivered", stopped_source(ending::two_phases),
         failure::holds},
        {"an END that is the lowest unleased number is detected", stopped_source(ending::lowest_unleased),
         failure::stuck},
        {"an END that ignores a doomed incarnation which can still commit is detected",
         change(stopped_source(ending::two_phases), [](setup& s) { s.seeded.end_skips_unrevoked = true; }),
         failure::stuck},
        {"one END serves two sources", two_sources(), failure::holds},
        {"an END that considers only one source is detected",
         change(two_sources(), [](setup& s) { s.seeded.end_of_one_source = true; }), failure::stuck},
    };
}

/// A source that dies of its own at the end of its stream, before or after its claim.
setup dies_at_its_end() {
    return change(poisoned(false), [](setup& s) {
        s.stages[0].ends_at = s.poison = 1;
        s.frames = 3;
        s.incarnations = {{0, 1}, {0, 2}, {0, -1}};
        s.lanes = {0, 1, 2};
        s.jobs_a_seat = 3;
        s.quick_work = s.quick_finish = true;
    });
}

setup end_published(const setup& s) {
    return change(s, [](setup& t) { t.stages[0].end_is_published = true; });
}

std::vector<entry> stream_end_entries() {
    const setup plain = ends_at_1(
        change(two_instances(3, 3, 2, 2), [](setup& s) { s.quick_work = s.links[0].quick_free = true; }));
    const setup stopped = change(plain, [](setup& s) { s.end = ending::two_phases; });
    return {
        {"a stream that its source ends is delivered up to its end and no further", plain, failure::holds},
        {"an empty stream is delivered", change(plain, [](setup& s) { s.stages[0].ends_at = 0; }),
         failure::holds},
        {"a stream may end while the run is being stopped", stopped, failure::holds},
        {"a stream whose end was reported to the supervisor ends there without a claim", end_published(plain),
         failure::holds},
        {"a reported END may arrive while the run is being stopped", end_published(stopped), failure::holds},
        {"a reported END leaves the surplus frames of another source undelivered",
         end_published(ends_next_to_another()), failure::holds},
        {"a frame that doesn't exist returns its slot after the device is done", ends_with_work(),
         failure::holds},
        {"a source that ends its stream leaves the surplus frames of another one undelivered",
         ends_next_to_another(), failure::holds},
        {"a source that dies at its end of stream ends it, possibly after a tombstone frame",
         dies_at_its_end(), failure::holds},
        {"a supervisor that doesn't lower END from STOPPING is detected",
         change(stopped, [](setup& s) { s.seeded.keeps_stopping = true; }), failure::stuck},
        {"a supervisor that trusts a claim which is no longer valid is detected",
         change(dies_at_its_end(), [](setup& s) { s.seeded.any_claim = true; }), failure::stuck},
        {"returning a slot while its device may write is detected",
         change(ends_with_work(), [](setup& s) { s.seeded.early_give_back = true; }), failure::torn},
        {"a sink without frames of the source that ends its stream is detected", ends_at_1(two_sources()),
         failure::stuck},
    };
}

std::vector<entry> tombstone_entries() {
    return {
        {"a frame that kills its stage is passed on as a tombstone frame", poisoned(false), failure::holds},
        {"a frame that kills its stage without a limit of attempts is detected",
         change(poisoned(false), [](setup& s) { s.attempts_cap = 7; }), failure::stuck},
        {"a frame that kills its stage does not affect innocent frames", poisoned(true), failure::holds},
        {"counting a death against every frame in flight is detected",
         change(poisoned(true), [](setup& s) { s.with.blame_only_alone = false; }), failure::innocent},
        {"recycling job words before their siblings' leases is detected",
         change(poisoned(true), [](setup& s) { s.with.recycle_last = false; }), failure::innocent},
    };
}

}  // namespace

std::vector<entry> pipeline_entries() {
    std::vector<entry> all = reading_entries();
    for (auto part : {end_entries(), stream_end_entries(), tombstone_entries()})
        for (entry& e : part) all.push_back(std::move(e));
    return all;
}

}  // namespace carousel::model
