#pragma once
// Stands in for a device in the simulated histories: contents of slots, and events that fire on request.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "device/backend.hpp"
#include "ring/topology.hpp"
#include "shm/segment.hpp"
#include "simulation.hpp"

namespace carousel::test {

inline ring::plan plan_of(const simulation_options& o) {
    ring::plan p;
    p.pipeline = "simulated";
    p.stages = {{"source", {}, true, o.in_flight, 1},
                {"middle", {0}, true, o.in_flight, o.instances},
                {"left", {1}, false, 2, 1},
                {"right", {1}, false, 1, 1}};
    if (o.fork) {
        p.stages[2].inputs = {1, 0, 1};
        p.stages[2].input_outputs = {0, 1, 1};
        p.stages[3].input_outputs = {1};
    }
    for (u32 k = 0; k < 2; ++k) {
        p.stages[k].window = o.window;
        p.stages[k].slot_bytes = 256;
        // the second ring is narrower: the producer that fills the first ring completely must notice that
        if (o.fork) p.stages[k].more = {{p.stages[k].name + ".more", std::max(o.window, 4U) - 2, 256}};
    }
    p.stages[2].every = o.every;
    p.stages[0].ends = o.ends_at != ~u64{0};
    p.first = o.first;
    p.end = o.stop_early ? ring::end_unknown : o.frames;
    p.latest_lease_ns = ~u64{0} >> 1U;  // revoked by the scheduler, not by the clock
    return p;
}

/// The state of a device: the content per link and slot, and per (incarnation, slot) whether its event has
/// fired.
struct world {
    shm::private_block c = shm::make_private_block();
    std::map<std::pair<u32, u32>, u64> content;  // (link, slot) -> sequence written; ~0 while being written
    // (entry, slot of the first output) -> recorded and not complete
    std::map<std::pair<u32, u32>, bool> pending;
    std::map<u32, std::vector<u64>> delivered;  // sink stage -> sequences in order of commit
    simulation_result result;
    std::mt19937_64 random;
    u64 below(u64 n) { return random() % n; }
};

/// Events behave as CUDA's: one that was never recorded reads as complete; handles carry (entry, slot).
class fake_import final : public device::imported_event {
public:
    fake_import(world& w, u32 entry, u32 slot) : world_(&w), entry_(entry), slot_(slot) {}
    bool done(u64) noexcept override {
        const auto at = world_->pending.find({entry_, slot_});
        return at == world_->pending.end() || !at->second;
    }

private:
    world* world_;
    u32 entry_, slot_;
};

class fake_context final : public device::context {
public:
    explicit fake_context(world& w) : world_(&w) {}
    device::device_kind kind() const noexcept override { return device::device_kind::cuda; }
    std::string description() const override { return "simulated"; }
    std::unique_ptr<device::queue> make_queue() override { return nullptr; }
    std::unique_ptr<device::event> make_event(std::atomic<u64>*) override { return nullptr; }
    std::unique_ptr<device::imported_event> import_event(device::device_kind, const device::event::handle& h,
                                                         const std::atomic<u64>*) override {
        u32 names[2];
        std::memcpy(names, h.data(), sizeof names);
        return std::make_unique<fake_import>(*world_, names[0], names[1]);
    }
    std::unique_ptr<device::mapping> map(const device::memory_handle&, device::access) override {
        return nullptr;
    }
    std::unique_ptr<device::mapping> allocate(u64) override { return nullptr; }
    std::unique_ptr<device::mapping> allocate_host(u64) override { return nullptr; }

private:
    world* world_;
};

}  // namespace carousel::test
