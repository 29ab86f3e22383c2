#pragma once
// Small runs of two or three processes for the interleaving explorer; each returns what `how` has found.

#include <string_view>

#include "explored_run.hpp"
#include "ring/blame.hpp"
#include "ring/latest.hpp"

namespace carousel::test {

using exploration = std::function<explored(const explored_scenario&)>;

inline ring::plan small_plan(ring::plan p, u64 frames, u32 source_instances = 1) {
    for (ring::stage_plan& s : p.stages) s.in_flight = 1, s.window = 2;
    p.stages[0].instances = source_instances;
    p.end = frames;
    return p;
}

inline explored explore_run(explored_run& r, std::vector<std::function<void()>> processes,
                            std::function<std::string()> judge, const exploration& how) {
    r.keep();
    explored e = how({[&r] { r.restore(); }, std::move(processes), std::move(judge), r.words()});
    if (e.finding.empty() && !r.restores_all()) e.finding = "the state is not restored before each order";
    return e;
}

inline void make_frames(explored_run& r, const seated& source, u32 frames) {
    for (u32 k = 0; k < frames; ++k) {
        ring::job j;
        REQUIRE(source.w->begin(j, 0) == ring::outcome::ok);
        REQUIRE(r.work(*source.w, j));
    }
}

/// Two instances of a source claim numbers and slots, and move their frames into one ring.
inline explored two_instances_claim(const exploration& how) {
    explored_run r(small_plan(chain(), 2, 2));
    const seated a = r.b.sit(0), b = r.b.sit(1), sink = r.b.sit(2);
    return explore_run(
        r, {[&] { r.process(*a.w, 2); }, [&] { r.process(*b.w, 2); }}, [&] { return r.finish(); }, how);
}

/// Two instances of a sink lease the frames of one ring.
inline explored two_instances_read(const exploration& how) {
    ring::plan p = small_plan(chain(), 2);
    p.stages[1].instances = 2;
    explored_run r(p);
    const seated source = r.b.sit(0), a = r.b.sit(1), b = r.b.sit(2);
    make_frames(r, source, 2);
    return explore_run(
        r, {[&] { r.process(*a.w, 2); }, [&] { r.process(*b.w, 2); }}, [&] { return r.finish(); }, how);
}

/// A source and its sink, in a ring that is as narrow as it can be.
inline explored frames_are_passed(const exploration& how) {
    explored_run r(small_plan(chain(), 3));
    const seated source = r.b.sit(0), sink = r.b.sit(1);
    return explore_run(
        r, {[&] { r.process(*source.w, 3); }, [&] { r.process(*sink.w, 3); }}, [&] { return r.finish(); },
        how);
}

/// A source dies anywhere, or is stopped there and continues until the fence.
inline explored source_is_retired(const exploration& how) {
    explored_run r(small_plan(chain(), 2));
    const seated source = r.b.sit(0), sink = r.b.sit(1);
    return explore_run(
        r, {[&] { r.process(*source.w, 2); }, [&] { r.retire(source, 0); }}, [&] { return r.finish(); }, how);
}

/// The same while another instance of the source makes frames.
inline explored source_is_retired_while_another_works(const exploration& how) {
    explored_run r(small_plan(chain(), 2, 2));
    const seated source = r.b.sit(0), other = r.b.sit(1), sink = r.b.sit(2);
    return explore_run(
        r, {[&] { r.process(*source.w, 1); }, [&] { r.retire(source, 0); }, [&] { r.process(*other.w, 2); }},
        [&] { return r.finish(); }, how);
}

/// The same while the sink reads.
inline explored source_is_retired_while_its_sink_reads(const exploration& how) {
    explored_run r(small_plan(chain(), 2));
    const seated source = r.b.sit(0), sink = r.b.sit(1);
    return explore_run(
        r, {[&] { r.process(*source.w, 2); }, [&] { r.retire(source, 0); }, [&] { r.process(*sink.w, 2); }},
        [&] { return r.finish(); }, how);
}

/// A sink dies anywhere, or is stopped there and continues until the fence.
inline explored sink_is_retired(const exploration& how) {
    explored_run r(small_plan(chain(), 2));
    const seated source = r.b.sit(0), sink = r.b.sit(1);
    make_frames(r, source, 2);
    return explore_run(
        r, {[&] { r.process(*sink.w, 2); }, [&] { r.retire(sink, 0); }}, [&] { return r.finish(); }, how);
}

/// A late verdict on a frame changes the words of a join's inputs while the join leases them.
inline explored blamed_while_leased(const exploration& how) {
    explored_run r(small_plan(fork_and_join(), 1));
    const seated source = r.b.sit(0), dies = r.b.sit(1);
    make_frames(r, source, 1);
    ring::job j;
    REQUIRE(dies.w->begin(j, 0) == ring::outcome::ok);
    const seated join = r.b.die(dies, ring::blame::own, 1);
    const auto judge = [&]() -> std::string {
        for (u32 i = 0; i < 2; ++i)
            if (r.b.lease(i, j.input[i].index, r.b.c->stage[1].input_group[i]).failures() == 0)
                return "a frame has lost its attempts";
        return r.finish();
    };
    return explore_run(r,
                       {[&] { r.process(*join.w, 1); }, [&] { ring::blame_waiting(*r.b.c, 1, 0, true, {}); }},
                       judge, how);
}

/// A latest reader leases frames whose slots are freed and filled again.
inline explored viewer_reads_while_slots_are_reused(const exploration& how) {
    explored_run r(small_plan(chain(), 4));
    const seated source = r.b.sit(0), sink = r.b.sit(1);
    const auto view = [&] {
        ring::latest_reader viewer(*r.b.c, 0, shm::max_incarnations);
        for (u32 k = 0; k < 3; ++k) {
            const ring::slot_ref s = viewer.acquire();
            if (!s) continue;
            const u64 read = r.content(0, s.index).load();
            if (viewer.release() && read != r.made_by(s)) report_unsound("a viewer has used a torn frame");
        }
    };
    return explore_run(
        r, {[&] { r.process(*source.w, 4); }, [&] { r.process(*sink.w, 4); }, view},
        [&] { return r.finish(); }, how);
}

/// A sweep is delayed while the last latest reader leaves, so that its slot is freed and filled again.
inline explored sweep_is_delayed(const exploration& how) {
    explored_run r(small_plan(chain(), 2));
    const seated source = r.b.sit(0), sink = r.b.sit(1);
    ring::latest_reader viewer(*r.b.c, 0, shm::max_incarnations);
    make_frames(r, source, 1);
    ring::job j;
    REQUIRE(sink.w->begin(j, 0) == ring::outcome::ok);
    REQUIRE(r.work(*sink.w, j));  // the slot stays READY for the viewer
    REQUIRE(r.b.slot(0, 0).state == ring::slot_state::ready);
    return explore_run(
        r,
        {[&] { (void)ring::link_ref(*r.b.c, 0).sweep(); }, [&] { r.process(*source.w, 1); },
         [&] {
             ring::link_ref left(*r.b.c, 0);  // as ~latest_reader(), whose members restore() does not restore
             left.block().group_state[viewer.group()].store(
                 ring::group_word{0, 1, ring::group_state::absent}.pack());
             (void)left.sweep();
         }},
        [&] { return r.finish(); }, how);
}

/// The supervisor withdraws an entry while a process claims it.
inline explored entry_is_claimed_and_withdrawn(const exploration& how) {
    explored_run r(small_plan(chain(), 1));
    const ring::incarnation_id id = ring::appoint(*r.b.c, 0);
    bool claimed = false, withdrawn = false;
    return explore_run(
        r,
        {[&] { claimed = ring::claim(*r.b.c, id) == ring::claim_result::ok; },
         [&] { withdrawn = ring::withdraw(*r.b.c, id.entry); }},
        [&]() -> std::string {
            return claimed != withdrawn ? "" : "an entry is both claimed and withdrawn, or neither";
        },
        how);
}

struct named_scenario {
    std::string_view name;
    explored (*explore)(const exploration&);
    u32 preemptions;  ///< bound of the everyday tests
};
inline constexpr named_scenario scenarios[] = {
    {"two instances claim", two_instances_claim, 2},
    {"two instances read", two_instances_read, 2},
    {"frames are passed", frames_are_passed, 2},
    {"a source is retired", source_is_retired, 2},
    {"a source is retired while another works", source_is_retired_while_another_works, 1},
    {"a source is retired while its sink reads", source_is_retired_while_its_sink_reads, 1},
    {"a sink is retired", sink_is_retired, 2},
    {"a frame is blamed while it is leased", blamed_while_leased, 3},
    {"a viewer reads while slots are reused", viewer_reads_while_slots_are_reused, 1},
    {"a sweep is delayed while a slot is reused", sweep_is_delayed, 2},
    {"an entry is claimed and withdrawn", entry_is_claimed_and_withdrawn, 9},
};

}  // namespace carousel::test
