#include "device/cuda/context.hpp"

#include "core/errors.hpp"
#include "device/cpu/event.hpp"
#include "device/cuda/check.hpp"
#include "device/cuda/devices.hpp"
#include "device/cuda/event.hpp"
#include "device/cuda/memory.hpp"
#include "device/cuda/queue.hpp"

namespace carousel::device::cuda {
namespace {

class context final : public device::context {
public:
    explicit context(gpu on) : on_(std::move(on)) {
        open_gpu(on_);
        warm_up();
    }

    void bind() const { on_.bind(); }
    [[nodiscard]] device_kind kind() const noexcept override { return device_kind::cuda; }
    [[nodiscard]] std::string description() const override { return on_.label(); }
    [[nodiscard]] std::unique_ptr<device::queue> make_queue() override {
        return std::make_unique<queue>(on_);
    }
    [[nodiscard]] std::unique_ptr<device::event> make_event(std::atomic<u64>*) override {
        return std::make_unique<event>(on_);
    }

    [[nodiscard]] std::unique_ptr<device::imported_event> import_event(
        device_kind from, const device::event::handle& handle, const std::atomic<u64>* shared) override {
        if (from == device_kind::cuda) return imported_event::open(on_, handle);
        if (shared == nullptr) return nullptr;
        // An event of a CPU queue is a word in shared memory.
        return std::make_unique<cpu::imported_event>(shared);
    }

    [[nodiscard]] std::unique_ptr<mapping> map(const memory_handle& handle, access wanted) override {
        return map_memory(on_, handle, wanted);
    }
    [[nodiscard]] std::unique_ptr<mapping> allocate(u64 bytes) override {
        return allocate_device(on_, bytes);
    }
    [[nodiscard]] std::unique_ptr<mapping> allocate_host(u64 bytes) override {
        return allocate_pinned(on_, bytes);
    }

private:
    /// Checks at set-up, with a clear message, whether this build's kernels run on this GPU.
    void warm_up() {
        const auto memory = allocate_pinned(on_, 2 * sizeof(status_word));
        auto* word = reinterpret_cast<status_word*>(memory->data());
        auto* torn = reinterpret_cast<u32*>(memory->data() + sizeof(status_word));
        const status_word value{1, 1, static_cast<u32>(status_state::ready)};
        queue q(on_);
        try {
            q.write_status(word, value);
            q.check_status(word, value, torn);
            q.drain();
        } catch (const cuda_error& e) {
            throw device_error(std::string("the first kernels failed: ") + e.what());
        }
        if (*torn != 0)
            throw device_error(on_.label() +
                               ": a status word that a kernel wrote did not read back; the GPU is unusable");
    }

    gpu on_;
};

}  // namespace

std::unique_ptr<device::context> open_context(const device_id& id) {
    return std::make_unique<context>(find_gpu(id));
}

void bind_thread(const device::context& to) { dynamic_cast<const context&>(to).bind(); }

}  // namespace carousel::device::cuda
