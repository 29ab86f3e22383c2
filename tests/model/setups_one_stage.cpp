#include "builders.hpp"
#include "catalogue.hpp"

namespace carousel::model {
namespace {

setup with_viewer(int frames, int slots, int window) {
    return change(one_stage(frames, slots, window, 1, 0b1), [](setup& s) { s.links[0].latest = 1; });
}

setup three_incarnations() {
    return change(one_stage(2, 3, 2), [](setup& s) {
        s.incarnations = {{0, 1}, {0, 2}, {0, -1}};
        s.lanes = {0, 1, 2};
    });
}

setup joining_viewers(int frames, int slots, int columns) {
    return change(with_viewer(frames, slots, 1), [=](setup& s) {
        s.links[0].latest = columns;
        s.membership_changes = true;
        s.revocable = true;
        s.incarnations = {{0, -1}};
        s.lanes = {0};
        s.jobs_a_seat = 1;
    });
}

/// The first incarnation's MPS domain ends, and all its events read as complete before its words are revoked;
/// its successor and the helper are in the next domain.
setup after_domain(setup s) {
    s.incarnations[1].domain = s.helper_domain = 1;
    s.seeded.fault_fires_event = true;
    return with_helper(s);
}

setup keeping(setup s) {
    s.keeps_newest = true;
    return s;
}

}  // namespace

std::vector<entry> holding_entries() {
    return {
        {"the protocol holds with a helper and two blocking groups", with_helper(one_stage(2, 3, 2, 2, 0b10)),
         failure::holds, effort::lengthy},
        {"the protocol holds with a helper, a blocking group and a latest group",
         change(with_helper(one_stage(2, 3, 2, 1, 0b10)),
                [](setup& s) { s.links[0].latest = 1, s.freer_dies = true; }),
         failure::holds, effort::lengthy},
        {"the protocol holds with a latest group while slots are reused",
         change(one_stage(3, 3, 1), [](setup& s) { s.links[0].latest = 1, s.freer_dies = true; }),
         failure::holds, effort::lengthy},
        {"the protocol holds with a helper over two laps of the source's numbers",
         with_helper(one_stage(3, 2, 2)), failure::holds, effort::lengthy},
        {"the protocol holds when the supervisor dies anywhere in its scan",
         change(one_stage(3, 2, 2), [](setup& s) { s.scan_registers = true; }), failure::holds},
        {"the protocol holds when the supervisor dies anywhere in its scan and a consumer helps",
         change(with_helper(small()), [](setup& s) { s.scan_registers = true; }), failure::holds,
         effort::lengthy},
        {"the protocol holds over three incarnations", three_incarnations(), failure::holds, effort::lengthy},
        {"the protocol holds with two instances, one of which dies", two_instances(3, 3, 2, 3),
         failure::holds, effort::lengthy},
        {"the protocol holds with two instances and a helper", with_helper(two_instances(2, 2, 2, 2)),
         failure::holds},
        {"the protocol holds with two jobs in flight", two_in_flight(2, 2, 2), failure::holds,
         effort::lengthy},
        {"the protocol holds with a window of one and two jobs in flight",
         change(two_in_flight(3, 2, 1), [](setup& s) { s.numbers = 1; }), failure::holds, effort::lengthy},
        {"the protocol holds with a window of one, a spare slot and a helper",
         change(with_helper(one_stage(3, 2, 1)), [](setup& s) { s.numbers = 1; }), failure::holds},
        {"the protocol holds when consumers die with a lease",
         change(with_helper(one_stage(2, 2, 2, 2, 0)), [](setup& s) { s.consumers_die = true; }),
         failure::holds, effort::lengthy},
        {"the protocol holds when committed jobs are finished only after the fence",
         change(with_helper(small()), [](setup& s) { s.early_finish = false; }), failure::holds},
        {"the protocol holds when an optional group is closed and reopened",
         change(one_stage(2, 2, 2, 2, 0b1), [](setup& s) { s.last_group_absent = true; }), failure::holds},
        {"the protocol holds without a death",
         change(with_helper(one_stage(3, 3, 2, 2, 0)),
                [](setup& s) {
                    s.incarnations = {{0, -1}}, s.lanes = {0}, s.jobs_a_seat = 1;
                }),
         failure::holds},
        {"the protocol holds when latest members join and leave", joining_viewers(3, 2, 1), failure::holds},
        {"the protocol holds when two latest members join and leave", joining_viewers(3, 3, 2),
         failure::holds, effort::lengthy},
        {"the protocol holds when the newest frame is kept for latest members",
         keeping(joining_viewers(3, 2, 1)), failure::holds},
        {"the protocol holds when the process that frees the kept newest frame dies anywhere",
         change(keeping(one_stage(3, 3, 1)), [](setup& s) { s.links[0].latest = 1, s.freer_dies = true; }),
         failure::holds, effort::lengthy},
        {"the protocol holds when a source reads the tail and its number before the lease",
         change(one_stage(3, 3, 2), [](setup& s) { s.two_step_lease = s.lowest_first = true; }),
         failure::holds},
        {"the protocol holds over three laps of numbers with two lap bits",
         change(one_stage(5, 3, 2),
                [](setup& s) {
                    s.two_step_lease = s.lowest_first = s.quick_work = s.quick_finish = true,
                    s.lap_modulus = 4;
                }),
         failure::holds, effort::lengthy},
        {"the protocol holds when a fault fires the event after the words were aborted",
         change(with_helper(small()),
                [](setup& s) { s.seeded.fault_fires_event = s.seeded.revoke_first = true; }),
         failure::holds},
        {"the protocol holds when an MPS domain ends and a consumer of the next domain helps",
         after_domain(small()), failure::holds},
    };
}

std::vector<entry> sizing_entries() {
    const auto no_fence = [](setup s) {
        s.check_no_fence = true;
        return s;
    };
    const auto in_flight = [](int slots) {
        return change(two_in_flight(2, slots, 2), [](setup& s) {
            s.lowest_first = s.links[0].quick_free = s.quick_gpu = s.quick_finish = s.kills_never_complete =
                true;
        });
    };
    return {
        {"a link without spare buffers waits for the fence", no_fence(small()), failure::waits_for_fence},
        {"one spare buffer suffices for one job in flight", no_fence(one_stage(2, 3, 2)), failure::holds},
        {"a seat with one job word waits for the fence",
         no_fence(change(one_stage(2, 3, 2), [](setup& s) { s.jobs_a_seat = 1; })), failure::waits_for_fence},
        {"a stopped viewer blocks a link without a spare buffer", with_viewer(2, 1, 1),
         failure::viewer_blocks},
        {"a viewer's lease occupies the spare buffer", no_fence(with_viewer(2, 2, 1)),
         failure::waits_for_fence},
        {"one more spare buffer suffices for a viewer with an irrevocable lease",
         no_fence(with_viewer(2, 3, 1)), failure::holds},
        {"a viewer with a revocable lease needs no spare buffer",
         no_fence(change(with_viewer(2, 2, 1), [](setup& s) { s.revocable = true; })), failure::holds},
        {"a frame kept for a viewer needs no spare buffer",
         no_fence(keeping(change(with_viewer(2, 2, 1), [](setup& s) { s.revocable = true; }))),
         failure::holds},
        {"a frame kept for a viewer in the only slot blocks no process",
         keeping(change(with_viewer(2, 1, 1), [](setup& s) { s.revocable = true; })), failure::holds},
        {"a window as large as the ring waits for the fence",
         no_fence(change(one_stage(3, 3, 3), [](setup& s) { s.numbers = 3; })), failure::waits_for_fence},
        {"one spare buffer does not suffice for two jobs in flight", no_fence(in_flight(3)),
         failure::waits_for_fence, effort::lengthy},
        {"two spare buffers suffice for two jobs in flight", no_fence(in_flight(4)), failure::holds,
         effort::lengthy},
    };
}

namespace {

std::vector<entry> clause_entries() {
    return {
        {"a helper that commits from OPEN is detected",
         change(with_helper(small()), [](setup& s) { s.with.help_from_submitted = false; }), failure::torn},
        {"an owner that does not read J again is detected",
         change(with_helper(small()), [](setup& s) { s.with.read_again = false; }), failure::spurious},
        {"a helper that queries the current incarnation's event is detected",
         change(with_helper(one_stage(2, 3, 2)), [](setup& s) { s.with.event_by_epoch = false; }),
         failure::torn},
        {"a helper that commits for an owner of another MPS domain is detected",
         change(after_domain(small()), [](setup& s) { s.with.own_domain = false; }), failure::torn},
        {"an idle word that any incarnation may open is detected",
         change(small(), [](setup& s) { s.with.idle_names_epoch = false; }), failure::late_commit},
        {"reporting an incarnation with a COMMITTED word as revoked is detected",
         change(small(), [](setup& s) { s.with.committed_blocks_revoked = false, s.early_finish = false; }),
         failure::late_commit},
        {"a free that leaves a latest group's WAIT open is detected",
         change(with_viewer(3, 2, 2), [](setup& s) { s.with.close_latest = false; }), failure::torn},
        {"a free that skips columns without a member is detected",
         change(joining_viewers(3, 2, 1), [](setup& s) { s.with.close_empty_columns = false; }),
         failure::torn},
        {"a free that waits for a latest reader is detected",
         change(with_viewer(2, 2, 2), [](setup& s) { s.seeded.latest_must_read = true; }), failure::stuck},
        {"keeping a frame for a viewer although no other slot is FREE is detected",
         keeping(
             change(with_viewer(2, 1, 1), [](setup& s) { s.revocable = s.seeded.keeps_last_slot = true; })),
         failure::viewer_blocks},
        {"keeping an older frame for a viewer in addition to the newest is detected",
         keeping(change(with_viewer(2, 2, 1), [](setup& s) { s.revocable = s.seeded.keeps_any = true; })),
         failure::stuck},
        {"two instances without a window are detected",
         change(two_instances(3, 2, 2, 3),
                [](setup& s) { s.lowest_first = true, s.with.window_and_tail = false; }),
         failure::stuck},
        {"one instance without a window is detected",
         change(small(),
                [](setup& s) {
                    s.frames = s.numbers = 3, s.lowest_first = true, s.with.window_and_tail = false;
                }),
         failure::stuck},
        {"a helper that performs all of step 6 does not break the protocol",
         change(with_helper(small()), [](setup& s) { s.with.helper_minimal = false; }), failure::holds},
        {"dropping a frame instead of passing it on is detected",
         change(small(), [](setup& s) { s.seeded.drop_frame = true; }), failure::stuck},
        {"a source that counts outside its words is detected",
         change(small(), [](setup& s) { s.seeded.source_counter = true; }), failure::stuck},
        {"laps with only one bit are detected",
         change(one_stage(5, 3, 2),
                [](setup& s) { s.two_step_lease = s.lowest_first = true, s.lap_modulus = 2; }),
         failure::repeated},
    };
}

std::vector<entry> bug_entries() {
    return {
        {"a helper that recycles before the inputs are DONE is detected",
         change(with_helper(small()),
                [](setup& s) { s.with.helper_minimal = false, s.seeded.helper_half = true; }),
         failure::stuck},
        {"a helper that ignores the version is detected",
         change(with_helper(one_stage(3, 2, 2)), [](setup& s) { s.seeded.helper_ignores_version = true; }),
         failure::torn},
        {"a free before the tail moves is detected",
         change(small(), [](setup& s) { s.freer_dies = s.seeded.free_then_tail = true; }), failure::stuck},
        {"an adopter that forgets unfenced dead incarnations is detected",
         change(one_stage(3, 2, 2), [](setup& s) { s.seeded.adopter_forgets = true; }), failure::torn},
        {"a requeue before the abort is detected",
         change(one_stage(2, 3, 2), [](setup& s) { s.seeded.requeue_before_abort = true; }),
         failure::repeated},
        {"a free before the fence is detected",
         change(one_stage(3, 2, 2), [](setup& s) { s.seeded.free_before_fence = true; }), failure::torn},
        {"recycling an ABORTED word before the fence is detected",
         change(one_stage(2, 3, 2), [](setup& s) { s.seeded.recycle_before_fence = true; }), failure::stuck},
        {"a fault that fires the event is detected",
         change(with_helper(small()), [](setup& s) { s.seeded.fault_fires_event = true; }), failure::torn},
        {"a COMMITTED word that no process finishes is detected",
         change(small(), [](setup& s) { s.seeded.no_process_finishes = true; }), failure::stuck},
        {"a commit before the GPU is done is detected",
         change(small(), [](setup& s) { s.seeded.commit_before_done = true; }), failure::torn},
    };
}

}  // namespace

std::vector<entry> failing_entries() {
    std::vector<entry> all = clause_entries();
    for (entry& e : bug_entries()) all.push_back(std::move(e));
    return all;
}

}  // namespace carousel::model
