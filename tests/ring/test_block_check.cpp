// Impossible states of a control block are found, the owner of the word is reported, and what the protocol
// leaves is never reported as damage. Each rule gets the smallest write that breaks it, into a block that was
// driven by the real ring code.
#include <cstring>
#include <functional>
#include <memory>

#include "ring/check/block_check.hpp"
#include "ring/parameter_box.hpp"
#include "ring/stream_end.hpp"
#include "simulation.hpp"
#include "tests/support/catch.hpp"
#include "tests/viewer/rig.hpp"

namespace {

using namespace carousel;
using namespace carousel::ring;

/// source -> middle-1 -> sink in mid-run: frames are done, some wait, one is in progress at each end.
struct run_in_hand {
    std::unique_ptr<shm::control_block> made = std::make_unique<shm::control_block>();
    std::unique_ptr<shm::control_block> block = std::make_unique<shm::control_block>();
    test::rig rig;
    known_run known;

    explicit run_in_hand(const first_counters& first = {}) : rig(plan_of_three(first), block.get()) {
        block->magic.store(shm::control_magic);
        shm::copy_words(*made, *block);
        rig.sit_all();
        for (int k = 0; k < 5; ++k) rig.turn();
        // A change, and the supervisor's copy of it.
        const std::byte value[] = {std::byte{7}};
        const u64 from = publish(block->parameters, value, 0).value_or(0);
        made->parameters.state.store(parameter_state{0, from}.pack());
        REQUIRE(from > 0);
        REQUIRE(publish(made->parameters, value, 0) == from);
        for (int k = 0; k < 3; ++k) (void)rig.pass(0);
        (void)rig.pass(1);
        REQUIRE(rig.begin(0));
        REQUIRE(rig.begin(1));
        known.end = 600;
        known.miscounted = 2;
        for (u32 k = 0; k < made->seats; ++k) {
            const u32 epoch = seat_word::of(load(block->seat[k].current)).epoch;
            known.epochs.push_back(epoch);
            known.processes.push_back(
                {k, rig.entry_of(k), epoch,
                 static_cast<u32>(entry_word::of(load(block->entry[rig.entry_of(k)].identity)).pid), true,
                 false});
        }
        for (u32 k = 0; k < made->links; ++k) known.tails.push_back(load(block->link[k].tail));
        REQUIRE(findings() == "");
    }
    static plan plan_of_three(const first_counters& first) {
        plan p = test::chain_of(3);
        p.end = 600, p.first = first;
        return p;
    }
    shm::control_block& c() const { return *block; }
    /// All findings, one per line.
    std::string findings() const {
        std::string out;
        for (const auto& found : {check_static(*block, *made), check_known(*block, *made, known),
                                  check_words(*block, *made, known)})
            for (const finding& f : found) out += f.text() + "\n";
        return out;
    }
    /// A slot of the ring in that state.
    u32 slot_in(u32 link, slot_state s) const {
        for (u32 k = 0; k < made->link[link].slots; ++k)
            if (slot_word::of(load(block->link[link].slot[k])).state == s) return k;
        FAIL("no slot in state " << static_cast<u32>(s));
        return 0;
    }
    u32 job_in(job_state s) const {
        for (u32 k = 0; k < made->jobs; ++k)
            if (job_word::of(load(block->job[k])).state == s) return k;
        FAIL("no job in state " << static_cast<u32>(s));
        return 0;
    }
};

struct violation {
    const char* name;
    std::function<void(run_in_hand&)> write;
    const char* word;  ///< what the finding names
    const char* what;
};

void change_slot(run_in_hand& r, u32 link, slot_state in, const std::function<void(slot_word&)>& change) {
    shm::word& at = r.c().link[link].slot[r.slot_in(link, in)];
    slot_word w = slot_word::of(load(at));
    change(w);
    at.store(w.pack());
}

void change_number(run_in_hand& r, const std::function<void(lease_word&)>& change) {
    lease_word w = lease_word::of(load(r.c().source[0].sequence_lease[7]));
    change(w);
    r.c().source[0].sequence_lease[7].store(w.pack());
}

u32 ready_slot_of(const run_in_hand& r, u32 link, u64 ring_sequence) {
    for (u32 k = 0; k < r.made->link[link].slots; ++k)
        if (slot_word::of(load(r.c().link[link].slot[k])).state == slot_state::ready &&
            load(r.c().frames[link].header[k].ring_sequence) == ring_sequence)
            return k;
    FAIL("frame " << ring_sequence << " is not ready");
    return 0;
}

void set_lease(run_in_hand& r, u32 link, u64 ring_sequence, lease_word w) {
    const u32 slot = ready_slot_of(r, link, ring_sequence);
    w.generation += slot_word::of(load(r.c().link[link].slot[slot])).generation;
    r.c().link[link].group[slot][0].store(w.pack());
}

/// A claim in the word of a source that may end its stream.
void claim(run_in_hand& r, const end_claim& c) {
    r.c().stage[0].flags |= shm::stage_flag::ends;
    r.made->stage[0].flags |= shm::stage_flag::ends;
    r.c().source[0].ended.store(c.pack());
}

const std::vector<violation>& violations() {
    static const std::vector<violation> all = {
        {"the magic number", [](run_in_hand& r) { r.c().magic.store(1); }, "the block's head: magic",
         "no process can attach"},
        {"a count", [](run_in_hand& r) { r.c().links = 7; }, "the block's head: links", "is 7, but was 2"},
        {"the pace", [](run_in_hand& r) { r.c().fps = 1e-9; }, "the block's head: fps", "but was 0"},
        {"a name", [](run_in_hand& r) { r.c().stage[1].name[0] = 'x'; }, "stage middle-1: name", "no longer"},
        {"the topology", [](run_in_hand& r) { r.c().stage[1].input_link[0] = 40; },
         "stage middle-1: input_link", "is 40"},
        {"a deadline", [](run_in_hand& r) { r.c().stage[2].frame_timeout_ns = 1; },
         "stage sink: frame_timeout_ns", "is 1"},
        {"a ring's size", [](run_in_hand& r) { r.c().link[0].slots = 3; }, "ring of source: slots", "is 3"},
        {"a handle", [](run_in_hand& r) { r.c().link[1].ipc_handle[5] = std::byte{1}; },
         "ring of middle-1: ipc_handle", "has changed"},
        {"a frame that its stage does not take",
         [](run_in_hand& r) { r.c().stage[1].every = r.made->stage[1].every = 1000; }, "ring of source: slot",
         "takes only multiples of 1000"},
        {"a seat's jobs", [](run_in_hand& r) { r.c().seat[1].first_job = 0; }, "seat of middle-1: first_job",
         "is 0"},
        {"a job's seat", [](run_in_hand& r) { r.c().job_info[2].seat = 9; }, "job 2 (source): seat", "is 9"},
        {"the end", [](run_in_hand& r) { r.c().end.store(4161); }, "the run: end",
         "is 4161, the supervisor has set 600"},
        {"the end forgotten", [](run_in_hand& r) { r.c().end.store(end_unknown); }, "the run: end",
         "is unknown"},
        {"a tail beyond the end", [](run_in_hand& r) { r.c().link[1].tail.store(601); },
         "ring of middle-1: tail", "beyond the end"},
        {"a tail that shrinks", [](run_in_hand& r) { r.c().link[1].tail.store(1); }, "ring of middle-1: tail",
         "can only grow"},
        {"a tail that has passed frames by",
         [](run_in_hand& r) {
             shm::tail_word& t = r.c().link[1].tail;
             t.store(t.load() + 9);
         },
         "ring of middle-1: tail", "have been committed"},
        {"a seat's holder",
         [](run_in_hand& r) {
             r.c().seat[1].current.store(seat_word{9, 50}.pack());
         },
         "seat of middle-1: current", "names epoch 9"},
        {"an entry's pid",
         [](run_in_hand& r) { r.c().entry[r.rig.entry_of(2)].identity.fetch_xor(u64{3} << 41U); },
         "(sink): identity", "names pid"},
        {"an entry's epoch",
         [](run_in_hand& r) { r.c().entry[r.rig.entry_of(2)].identity.fetch_xor(u64{3} << 20U); },
         "(sink): identity", "epoch"},
        {"an entry's state", [](run_in_hand& r) { r.c().entry[r.rig.entry_of(0)].identity.fetch_xor(15); },
         "(source): identity", "although its process is working"},
        {"an asset's state",
         [](run_in_hand& r) {
             r.c().assets = r.made->assets = 1;
             r.c().asset[0].state.store(with_parity(7, 3));
         },
         "asset : state", "invalid state"},
        {"a job's state",
         [](run_in_hand& r) { r.c().job[0].store(with_parity((load(r.c().job[0]) & ~u64{15}) | 7U, 3)); },
         "job 0 (source)", "invalid state"},
        {"a job's epoch", [](run_in_hand& r) { r.c().job[0].fetch_xor(u64{5} << 4U); }, "job 0 (source)",
         "no process of its seat"},
        {"a job that never leased",
         [](run_in_hand& r) {
             const u32 k = r.job_in(job_state::idle);
             r.c().job[k].store(job_word::of(load(r.c().job[k])).with(job_state::submitted).pack());
         },
         "job ", "no frame is leased to it"},
        {"a slot's state",
         [](run_in_hand& r) {
             change_slot(r, 1, slot_state::free, [](slot_word& w) { w.state = static_cast<slot_state>(5); });
         },
         "ring of middle-1: slot", "invalid state"},
        {"a slot without a job",
         [](run_in_hand& r) {
             change_slot(r, 0, slot_state::free, [](slot_word& w) { w.state = slot_state::fill, w.job = 1; });
         },
         "ring of source: slot", "which is idle"},
        {"a slot of a stranger",
         [](run_in_hand& r) { change_slot(r, 1, slot_state::fill, [](slot_word& w) { w.job = 0; }); },
         "ring of middle-1: slot", "not a job of middle-1"},
        {"a free slot that names a job",
         [](run_in_hand& r) { change_slot(r, 1, slot_state::free, [](slot_word& w) { w.version = 3; }); },
         "ring of middle-1: slot", "names a job"},
        {"a frame beyond the window",
         [](run_in_hand& r) { r.c().frames[0].header[ready_slot_of(r, 0, 6)].ring_sequence.store(99); },
         "header.ring_sequence", "with a window of"},
        {"a frame twice",
         [](run_in_hand& r) { r.c().frames[0].header[ready_slot_of(r, 0, 7)].ring_sequence.store(6); },
         "header.ring_sequence", "can't be in two"},
        {"a void stage that isn't",
         [](run_in_hand& r) { r.c().frames[0].header[ready_slot_of(r, 0, 7)].meta.tombstone_stage = 30; },
         "header.tombstone_stage", "names stage 30"},
        {"more metadata than there is room for",
         [](run_in_hand& r) { r.c().frames[0].header[ready_slot_of(r, 0, 7)].metadata_bytes = 1025; },
         "header.metadata_bytes", "is 1025, but there is room for only 1024"},
        {"a clock that isn't",
         [](run_in_hand& r) {
             r.c().frames[0].header[ready_slot_of(r, 0, 7)].meta.clock = static_cast<shm::capture_clock>(9);
         },
         "header.clock", "is 9, which is not a valid clock"},
        {"a lease without a job",
         [](run_in_hand& r) {
             set_lease(r, 0, 7, {0, r.made->seat[1].first_job + 5, 9, 0, lease_state::leased});
         },
         "group 0", "is leased by job"},
        {"a lease of the future",
         [](run_in_hand& r) {
             set_lease(r, 0, 7, {3, 0, 0, 0, lease_state::wait});
         },
         "group 0", "newer than its slot's"},
        {"a group that nobody planned",
         [](run_in_hand& r) {
             r.c().link[0].group_state[3].store(group_word{0, 0, group_state::blocking}.pack());
         },
         "group_state 3", "not possible"},
        {"the size of the parameters", [](run_in_hand& r) { r.c().parameters.bytes = 256; },
         "parameters: bytes", "is 256, but was 0"},
        {"a set's first frame", [](run_in_hand& r) { r.c().parameters.set[3].from = 2; },
         "parameters: set 3: from", "is 2"},
        {"a set's number", [](run_in_hand& r) { r.c().parameters.set[1].number = 9; },
         "parameters: set 1: number", "is 9, but was 1"},
        {"a set's value", [](run_in_hand& r) { r.c().parameters.set[1].value[255] = std::byte{1}; },
         "parameters: set 1: value", "has changed"},
        {"a set that nobody published",
         [](run_in_hand& r) {
             const u64 horizon = parameter_state::of(load(r.c().parameters.state)).horizon;
             r.c().parameters.state.store(parameter_state{2, horizon}.pack());
         },
         "parameters: state", "counts 2 sets, but the supervisor has published 1"},
        {"a horizon beyond all windows",
         [](run_in_hand& r) {
             r.c().parameters.state.store(parameter_state{1, 105}.pack());
         },
         "parameters: horizon", "no source can have leased"},
        {"a horizon that falls",
         [](run_in_hand& r) {
             r.c().parameters.state.store(parameter_state{1, 2}.pack());
         },
         "parameters: horizon", "is 2, although it was 5 before"},
        {"a source's first lap", [](run_in_hand& r) { r.c().source[0].first_lap ^= 4; },
         "source source: first_lap", "but was"},
        {"a number's lap", [](run_in_hand& r) { change_number(r, [](lease_word& w) { w.generation += 4; }); },
         "source source: number", "lap"},
        {"a number's state",
         [](run_in_hand& r) { change_number(r, [](lease_word& w) { w.state = lease_state::skipped; }); },
         "source source: number", "can only be waiting or leased"},
        {"a claim of a source that never ends",
         [](run_in_hand& r) {
             r.c().source[0].ended.store(end_claim{7, 0, 1}.pack());
         },
         "source source: ended", "never ends its stream"},
        {"a claim by a stranger",
         [](run_in_hand& r) {
             claim(r, {7, r.made->seat[1].first_job, 1});
         },
         "source source: ended", "not a job of source"},
        {"a claim of a number that nobody could lease",
         [](run_in_hand& r) {
             claim(r, {99, 0, 1});
         },
         "source source: ended", "names frame 99"},
        {"a frame that is missing",
         [](run_in_hand& r) { change_slot(r, 1, slot_state::ready, [](slot_word& w) { w = w.freed(); }); },
         "ring of middle-1: frame 5", "is missing"},
        {"a source's frame that is missing",
         [](run_in_hand& r) {
             const u64 t = load(r.c().link[0].tail);
             r.c().link[0].slot[ready_slot_of(r, 0, t)].store(slot_word{9, 0, 0, slot_state::free}.pack());
         },
         "ring of source: frame", "in no slot"},
    };
    return all;
}

}  // namespace

TEST_CASE("each impossible word is found with its owner, for any first lap") {
    first_counters late;
    late.lap = counters_near_overflow.lap;
    for (const violation& violation_case : violations())
        for (const first_counters& first : {first_counters{}, late}) {
            run_in_hand r(first);
            violation_case.write(r);
            INFO(violation_case.name << ", laps from " << first.lap << ":\n" << r.findings());
            CHECK(r.findings().find(violation_case.word) != std::string::npos);
            CHECK(r.findings().find(violation_case.what) != std::string::npos);
        }
}

TEST_CASE("a lapsed claim and frames of others beyond a lowered END are not damage") {
    run_in_hand r;
    claim(r, {6, 0, 99});
    CHECK(r.findings() == "");
    r.known.end = 3;
    r.c().end.store(3);
    CHECK(r.findings().find("beyond the end of the run (3)") != std::string::npos);
    r.known.surplus = 16;
    CHECK(r.findings() == "");
}

TEST_CASE("a block that is damaged all over gives a few findings, and no read out of range") {
    run_in_hand r;
    std::memset(static_cast<void*>(r.block.get()), 0xFF, sizeof *r.block);
    CHECK(check_static(*r.block, *r.made).size() == most_findings);
    CHECK(check_words(*r.block, *r.made, r.known).size() == most_findings);
    std::memset(static_cast<void*>(r.block.get()), 0, sizeof *r.block);
    CHECK(!check_words(*r.block, *r.made, r.known).empty());
}

TEST_CASE("a source's intermediate states at the end of its stream are never reported as damage") {
    for (u64 seed = 1; seed <= test::seeds(60); ++seed) {
        test::simulation_options o;
        o.seed = seed;
        o.instances = 1 + static_cast<u32>(seed % 2);
        o.ends_at = seed % 40;
        o.frames = 1000;
        o.kills = 4 + static_cast<u32>(seed % 20);
        o.check_every = 3;
        const test::simulation_result r = test::simulate(o);
        INFO("seed " << seed << ": " << r.finding);
        REQUIRE(r.finding.empty());
        REQUIRE(r.sound());
    }
}

TEST_CASE("a protocol state between any two steps is never called damage, under deaths") {
    u64 checks = 0;
    for (u64 seed = 1; seed <= test::seeds(150); ++seed) {
        test::simulation_options o;
        o.seed = seed;
        // Laps, generations, versions and epochs that wrap around in mid-run are not damage either.
        if (seed % 2 == 0) o.first = counters_near_overflow;
        o.instances = seed % 3 == 0 ? 2 : 1;
        o.in_flight = 1 + static_cast<u32>(seed % 4);
        o.kills = 4 + static_cast<u32>(seed % 20);
        o.stop_early = seed % 5 == 0;
        o.check_every = 3;
        const test::simulation_result r = test::simulate(o);
        INFO("seed " << seed << ": " << r.finding);
        REQUIRE(r.finding.empty());
        REQUIRE(r.sound());
        checks += r.checks;
    }
    CHECK(checks > test::seeds(50'000));
}
