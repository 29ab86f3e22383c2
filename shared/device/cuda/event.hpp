#pragma once
// IPC events. The owner records its own events and waits for them; other processes only query the events that
// they imported: an event that a killed process had recorded never fires, and a stream that waits for it
// hangs forever.
//
// An event that was never recorded, or not yet recorded for this frame, reads as complete. It is therefore
// queried only after the job word is SUBMITTED (ring/words.hpp).
//
// The owner does not wait for the shared event itself: cudaEventSynchronize on an interprocess event spins on
// a whole core whatever its flags are, and never returns once the context has faulted (seen on an H200,
// driver 580). So a second, private event with blocking sync is recorded immediately after the shared one:
// when the private event is complete, the shared one is complete, too.

#include <cuda_runtime_api.h>

#include "device/backend.hpp"
#include "device/cuda/devices.hpp"

namespace carousel::device::cuda {

class event final : public device::event {
public:
    explicit event(const gpu& on);
    ~event() override;
    void record(device::queue& on, u64 tag) override;
    [[nodiscard]] bool done() override;
    void wait() override;
    [[nodiscard]] handle export_handle() const override;

private:
    const gpu& on_;
    std::string label_;
    cudaEvent_t shared_ = nullptr;   ///< for importers
    cudaEvent_t private_ = nullptr;  ///< for this process
};

class imported_event final : public device::imported_event {
public:
    /// Takes ownership of an opened event.
    imported_event(const gpu& on, cudaEvent_t opened) noexcept : on_(on), event_(opened) {}
    ~imported_event() override;
    [[nodiscard]] bool done(u64 tag) noexcept override;
    /// Null (with a warning) if CUDA refuses, because the event's maker has died or the event belongs to
    /// another GPU.
    [[nodiscard]] static std::unique_ptr<imported_event> open(const gpu& on,
                                                              const device::event::handle& from);

private:
    const gpu& on_;
    cudaEvent_t event_;
};

}  // namespace carousel::device::cuda
