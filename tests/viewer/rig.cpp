#include "tests/viewer/rig.hpp"

#include <fmt/format.h>

#include "core/errors.hpp"

namespace carousel::test {

using namespace ring;

rig::rig(plan p, shm::control_block* c)
    : own_(c == nullptr ? std::make_unique<shm::control_block>() : nullptr),
      c_(c == nullptr ? own_.get() : c) {
    initialise(*c_, p);
    seats_.resize(c_->seats);
}

void rig::sit(u32 seat) {
    sitting& s = seats_[seat];
    s.incarnation = s.successor ? s.successor : appoint(*c_, seat);
    s.successor = {};
    CAROUSEL_ASSERT(s.incarnation);
    (void)revoke(*c_, seat, s.incarnation.epoch - 1);
    CAROUSEL_ASSERT(claim(*c_, s.incarnation) == claim_result::ok);
    CAROUSEL_ASSERT(go_live(*c_, s.incarnation));
    s.w = std::make_unique<ring::worker>(*c_, s.incarnation.seat, s.incarnation.entry, s.incarnation.epoch);
    s.open.clear();
}

void rig::sit_all() {
    for (u32 k = 0; k < seats_.size(); ++k) sit(k);
}

void rig::die(u32 seat) {
    sitting& s = seats_[seat];
    doom(*c_, s.incarnation.entry);
    s.successor = appoint(*c_, seat);
    (void)revoke(*c_, seat, s.incarnation.epoch);
    (void)requeue(*c_, seat, s.incarnation.epoch, blame::none, static_cast<u32>(s.open.size()));
    s.w.reset();
}

void rig::retire(u32 seat) {
    sitting& s = seats_[seat];
    mark_fenced(*c_, s.incarnation.entry);
    (void)requeue(*c_, seat, s.incarnation.epoch, blame::none, 0);
    (void)reclaim(*c_, seat, s.incarnation.epoch);
}

bool rig::begin(u32 seat) {
    sitting& s = seats_[seat];
    if (!s.w) return false;
    job j;
    if (s.w->begin(j, static_cast<u32>(s.open.size())) != outcome::ok) return false;
    s.w->start_clock(j);
    s.open.push_back(j);
    return true;
}

bool rig::finish(u32 seat) {
    sitting& s = seats_[seat];
    if (s.open.empty() || !s.w) return false;
    job j = s.open.front();
    s.open.erase(s.open.begin());
    if (work) work(seat, j);
    return s.w->submit(j) && s.w->commit(j) && s.w->complete(j);
}

bool rig::pass(u32 seat) { return begin(seat) && finish(seat); }

void rig::turn() {
    for (u32 k = 0; k < seats_.size(); ++k) (void)pass(k);
}

plan chain_of(u32 stages, u64 slot_bytes) {
    plan p;
    p.pipeline = "chain";
    for (u32 k = 0; k < stages; ++k) {
        stage_plan s;
        s.name = k == 0 ? "source" : k + 1 == stages ? "sink" : fmt::format("middle-{}", k);
        if (k > 0) s.inputs = {k - 1};
        s.has_output = k + 1 < stages;
        s.slot_bytes = slot_bytes;
        p.stages.push_back(s);
    }
    return p;
}

plan forked_plan() {
    plan p;
    p.pipeline = "forked";
    p.stages.resize(3);
    p.stages[0].name = "fork";
    p.stages[0].has_output = true;
    p.stages[0].slot_bytes = 4096;
    p.stages[0].more = {{"fork.square", 0, 4096}};
    for (u32 k = 1; k < 3; ++k) {
        p.stages[k].name = k == 1 ? "quick" : "slow";
        p.stages[k].inputs = {0};
        p.stages[k].input_outputs = {k - 1};
    }
    return p;
}

plan demo_plan(u32 width, u32 height) {
    plan p;
    p.pipeline = "demo";
    p.width = width;
    p.height = height;
    p.stages.resize(4);
    const char* names[] = {"geometry", "vertex", "fragment", "display"};
    const u64 bytes[] = {4096, 1'048'576, 256 + u64{width} * height * 4, 0};
    for (u32 k = 0; k < 4; ++k) {
        p.stages[k].name = names[k];
        if (k > 0) p.stages[k].inputs = {k - 1};
        p.stages[k].has_output = k < 3;
        p.stages[k].slot_bytes = (bytes[k] + 255) / 256 * 256;
    }
    return p;
}

}  // namespace carousel::test
