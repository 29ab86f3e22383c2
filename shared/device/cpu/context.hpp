#pragma once
// The CPU as a device: memfd memory, and queues with one worker each that share one pool.

#include <memory>

#include "device/backend.hpp"
#include "device/cpu/pool.hpp"

namespace carousel::device::cpu {

class context final : public device::context {
public:
    /// `threads`: the pool's size; 0: one per core. Throws device_error.
    explicit context(unsigned threads) : pool_(std::make_shared<pool>(threads)) {}

    [[nodiscard]] device_kind kind() const noexcept override { return device_kind::cpu; }
    [[nodiscard]] std::string description() const override;
    [[nodiscard]] std::unique_ptr<device::queue> make_queue() override;
    [[nodiscard]] std::unique_ptr<device::event> make_event(std::atomic<u64>* shared) override;
    [[nodiscard]] std::unique_ptr<device::imported_event> import_event(
        device_kind from, const device::event::handle& handle, const std::atomic<u64>* shared) override;
    [[nodiscard]] std::unique_ptr<mapping> map(const memory_handle& handle, access wanted) override;
    [[nodiscard]] std::unique_ptr<mapping> allocate(u64 bytes) override;
    [[nodiscard]] std::unique_ptr<mapping> allocate_host(u64 bytes) override { return allocate(bytes); }

private:
    std::shared_ptr<pool> pool_;
};

}  // namespace carousel::device::cpu
