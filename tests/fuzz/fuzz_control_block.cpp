// A control block into which a broken process has written anything: code that only reads it (snapshots,
// rates, events, timelines, the ring's readers) and the supervisor's repair must neither read out of range
// nor run forever.
//
// Input: one byte that selects the target, then writes of {region:4 bits, word:12 bits, value:8 bytes}. A
// region is a part of the block that is in use, so that few writes hit unused memory.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "ring/latest.hpp"
#include "ring/recovery.hpp"
#include "telemetry/snapshot_events.hpp"
#include "telemetry/snapshot_series.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/viewer/rig.hpp"

namespace carousel {
namespace {

using block_bytes = std::unique_ptr<shm::control_block>;

/// Two sources' worth of shapes: a fan-out, two instances, a latest reader, frames in progress, a dead
/// process.
ring::plan shape() {
    ring::plan p = test::chain_of(4);
    p.stages[1].instances = 2;
    ring::stage_plan second = p.stages[3];
    second.name = "second";
    second.inputs = {1};
    p.stages.push_back(second);
    ring::stage_plan late = second;
    late.name = "late";
    late.latest = true;
    p.stages.push_back(late);
    return p;
}

void fill(shm::control_block& c) {
    test::rig r(shape(), &c);
    r.sit_all();
    for (int k = 0; k < 12; ++k) r.turn();
    (void)r.begin(0);
    (void)r.begin(1);
    r.die(2);
}

const shm::control_block& pristine() {
    static const block_bytes made = [] {
        auto c = std::make_unique<shm::control_block>();
        fill(*c);
        c->magic.store(shm::control_magic);
        return c;
    }();
    return *made;
}

struct region {
    std::size_t offset, bytes;
};
const std::vector<region>& regions() {
    const auto at = [](auto& member, std::size_t count) {
        const auto* base = reinterpret_cast<const std::byte*>(&pristine());
        return region{static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&member) - base), count};
    };
    const shm::control_block& c = pristine();
    static const std::vector<region> all = {
        at(c.magic, static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&c.stage) -
                                             reinterpret_cast<const std::byte*>(&c))),
        at(c.stage[0], offsetof(shm::stage_block, counters)),
        at(c.stage[1], offsetof(shm::stage_block, counters)),
        at(c.stage[4], offsetof(shm::stage_block, counters)),
        at(c.stage[5], sizeof(shm::stage_block)),
        at(c.seat, sizeof(shm::seat_block) * 8),
        at(c.link[0], sizeof(shm::link_block)),
        at(c.link[1], sizeof(shm::link_block)),
        at(c.link[1].slot, sizeof c.link[1].slot),
        at(c.link[1].group, sizeof c.link[1].group),
        at(c.frames[0].header, sizeof c.frames[0].header),
        at(c.source[0], sizeof(shm::source_block)),
        at(c.job, sizeof(u64) * 64),
        at(c.job_info, sizeof(shm::job_block) * 64),
        at(c.entry, sizeof(shm::incarnation) * 8),
        at(c.asset, sizeof c.asset),
    };
    return all;
}

/// Reads every value that a snapshot returns as an index or text.
void use(const telemetry::snapshot& s) {
    for (const telemetry::stage_view& v : s.stages) {
        for (const u32 link : v.inputs) test::require(link < s.links.size(), "an input is in range");
        for (const u32 l : v.outputs) test::require(l < s.links.size(), "an output is in range");
        test::require(v.first_seat + v.seats <= s.seats.size(), "seats are in range");
        (void)telemetry::percentile_ms(v.latency, 0.99);
    }
    for (u32 k = 0; k < s.seats.size(); ++k) {
        test::require(s.seats[k].stage == shm::none || s.seats[k].stage < s.stages.size(),
                      "a seat's stage is in range");
        (void)s.seat_label(k);
        (void)telemetry::describe_exit_note(s.seats[k].exit_note);
        (void)telemetry::name_of(s.seats[k].state);
    }
    for (const telemetry::job_view& j : s.jobs)
        test::require(j.seat < s.seats.size(), "a job's seat is in range");
    for (const telemetry::link_view& l : s.links) {
        (void)s.stage_name(l.stage);
        for (const telemetry::slot_view& slot : l.slots) (void)telemetry::name_of(slot.phase);
        for (const telemetry::group_view& g : l.groups)
            test::require(g.index < shm::max_groups, "a group is in range");
    }
    (void)s.ended();
}

void inspect(const shm::control_block& before, const shm::control_block& c) {
    telemetry::rate_tracker rates;
    telemetry::event_tracker events;
    telemetry::timeline timeline;
    telemetry::history history(0);
    for (const shm::control_block* at : {&before, &c, &before}) {
        telemetry::snapshot s = telemetry::read_snapshot(*at);
        use(s);
        history.feed(s, rates.feed(s));
        events.feed(s);
        timeline.feed(s);
    }
}

void read_rings(shm::control_block& c) {
    for (u32 k = 0; k < std::min(c.links, shm::max_links); ++k) {
        ring::link_ref link(c, k);
        ring::ready_map ready;
        link.read_ready(ready);
        (void)link.has_free_slot();
        ring::latest_reader reader(c, k, 77);
        for (int n = 0; n < 3; ++n)
            if (const ring::slot_ref s = reader.acquire(); s) {
                test::require(s.index < shm::max_slots, "a slot is in range");
                (void)reader.release();
            }
        (void)ring::revoke_stale_leases(c, k, ~u64{0} / 2);
        (void)link.sweep();
    }
}

void repair(shm::control_block& c, u8 seat) {
    const u32 k = seat % std::max(1U, std::min(c.seats, shm::max_seats));
    // The dead process's epoch; or, as after a write over the seat's word, its successor's own.
    const u32 epoch = ring::seat_word::of(ring::load(c.seat[k].current)).epoch - (seat < 128 ? 0 : 1);
    (void)ring::census(c, k, epoch);
    (void)ring::revoke(c, k, epoch);
    (void)ring::requeue(c, k, epoch, ring::blame::own, 1);
    (void)ring::reclaim(c, k, epoch);
    ring::dismiss_latest(c, 77);
    for (u32 l = 0; l < std::min(c.links, shm::max_links); ++l) ring::close_group(c, l, 0);
    ring::begin_stop(c);
    (void)ring::try_finish_stop(c);
    (void)ring::all_delivered(c);
}

}  // namespace
}  // namespace carousel

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace carousel;
    static const auto work = std::make_unique<shm::control_block>();
    test::bytes in(data, size);
    const u8 what = in.u8_or(0), seat = in.u8_or(0);
    // Segments of rings that the block doesn't name are never read.
    std::memcpy(static_cast<void*>(work.get()), static_cast<const void*>(&pristine()),
                shm::word_bytes + pristine().links * sizeof(shm::frame_segment));
    while (in.left() >= 10) {
        const u32 where = in.number<u16>();
        const u64 value = in.number<u64>();
        const region& r = regions()[where >> 12U];
        const std::size_t offset = r.offset + (where & 0xFFFU) * 4 % (r.bytes < 8 ? 1 : r.bytes - 7);
        std::memcpy(reinterpret_cast<std::byte*>(work.get()) + offset, &value, sizeof value);
    }
    // A block that segment::open refuses never reaches the other targets.
    if (work->stages > shm::max_stages || work->seats > shm::max_seats || work->links > shm::max_links ||
        work->sources > shm::max_sources || work->jobs > shm::max_jobs || work->assets > shm::max_assets)
        return 0;
    if ((what & 1U) == 0) inspect(pristine(), *work);
    if ((what & 2U) == 0) read_rings(*work);
    if ((what & 4U) == 0) repair(*work, seat);
    if ((what & 8U) == 0) inspect(pristine(), *work);
    return 0;
}
