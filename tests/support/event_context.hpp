#pragma once
// A device context for tests of the ring: it imports events and has nothing else. A handle carries the entry
// of the process that recorded the event, and its slot.

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "device/backend.hpp"

namespace carousel::test {

class event_context final : public device::context {
public:
    /// `done(entry, slot)`: whether that event reads as complete.
    using query = std::function<bool(u32 entry, u32 slot)>;
    explicit event_context(query done) : done_(std::move(done)) {}
    device::device_kind kind() const noexcept override { return device::device_kind::cuda; }
    std::string description() const override { return "events alone"; }
    std::unique_ptr<device::queue> make_queue() override { return nullptr; }
    std::unique_ptr<device::event> make_event(std::atomic<u64>*) override { return nullptr; }
    std::unique_ptr<device::imported_event> import_event(device::device_kind, const device::event::handle& h,
                                                         const std::atomic<u64>*) override {
        u32 names[2];
        std::memcpy(names, h.data(), sizeof names);
        return std::make_unique<imported>(done_, names[0], names[1]);
    }
    std::unique_ptr<device::mapping> map(const device::memory_handle&, device::access) override {
        return nullptr;
    }
    std::unique_ptr<device::mapping> allocate(u64) override { return nullptr; }
    std::unique_ptr<device::mapping> allocate_host(u64) override { return nullptr; }

private:
    class imported final : public device::imported_event {
    public:
        imported(const query& done, u32 entry, u32 slot) : done_(&done), entry_(entry), slot_(slot) {}
        bool done(u64) noexcept override { return (*done_)(entry_, slot_); }

    private:
        const query* done_;
        u32 entry_, slot_;
    };
    query done_;
};

}  // namespace carousel::test
