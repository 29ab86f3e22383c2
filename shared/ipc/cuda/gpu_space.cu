// Host part of <carousel/ipc_cuda.cuh>.
#include <algorithm>
#include <vector>

#include "device/cuda/check.hpp"
#include "ipc/attachment.hpp"
#include "ipc/cuda/carousel/ipc_cuda.cuh"
#include "ipc/cuda/stream_gates.hpp"

namespace carousel::ipc {
namespace {

/// Copies in a separate stream, concurrently with all kernels of this process.
class reader {
public:
    reader() { CAROUSEL_CUDA_SETUP("CUDA", cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
    ~reader() { (void)cudaStreamDestroy(stream_); }
    reader(const reader&) = delete;
    reader& operator=(const reader&) = delete;
    [[nodiscard]] std::vector<u64> words(const u64* from, u64 count) const {
        std::vector<u64> out(count);
        CAROUSEL_CUDA_SETUP(
            "CUDA", cudaMemcpyAsync(out.data(), from, count * sizeof(u64), cudaMemcpyDeviceToHost, stream_));
        CAROUSEL_CUDA_SETUP("CUDA", cudaStreamSynchronize(stream_));
        return out;
    }

private:
    cudaStream_t stream_ = nullptr;
};

}  // namespace

u32 gpu_primitive::epoch() const { return on_->to()->epoch(); }

queue_parts<u64> gpu_queue_base::parts() const {
    const directory_entry& e = on_->to()->block().place[place_];
    return gpu_queue_at(on_->data() + e.gpu_offset, static_cast<u32>(e.count), static_cast<u32>(e.each));
}

gpu_queue_state gpu_queue_base::state() const {
    const queue_parts<u64> p = parts();
    const reader here;
    gpu_queue_state s;
    std::vector<u32> holders;
    for (const u64 w : here.words(p.cell, p.capacity)) {
        const cell_word c = cell_word::of(w);
        s.waiting += c.state == cell_state::ready ? 1U : 0U;
        s.claimed += c.state == cell_state::claimed ? 1U : 0U;
        s.taken += c.state == cell_state::popping || c.state == cell_state::leased ? 1U : 0U;
        if (c.epoch != 0) holders.push_back(c.epoch);
    }
    s.lost = here.words(p.lost, 1)[0] >> 40U;
    s.tombs = here.words(p.tombs, 1)[0] >> 40U;
    s.holders = clients_text(on_->to()->block().registry, std::move(holders));
    return s;
}

task_parts<u64> gpu_work_queue_base::parts() const {
    const directory_entry& e = on_->to()->block().place[place_];
    return gpu_work_queue_at(on_->data() + e.gpu_offset, static_cast<u32>(e.count), static_cast<u32>(e.each),
                             static_cast<u32>(e.more));
}

gpu_work_state gpu_work_queue_base::state() const {
    const task_parts<u64> p = parts();
    gpu_work_state s;
    std::vector<u32> holders;
    for (const u64 word : reader().words(p.place, p.capacity)) {
        const task_word w = task_word::of(word);
        s.waiting += w.state == task_state::waiting ? 1U : 0U;
        s.claimed += w.state == task_state::claimed ? 1U : 0U;
        s.dead_letters += w.state == task_state::dead_letter || w.state == task_state::reading ? 1U : 0U;
        if (w.state == task_state::claimed) holders.push_back(w.epoch);
    }
    s.holders = clients_text(on_->to()->block().registry, std::move(holders));
    return s;
}

stream_permit& stream_permit::operator=(stream_permit&& other) noexcept {
    if (this == &other) return *this;
    drop();
    on_ = std::move(other.on_);
    wait_ = std::move(other.wait_);
    return *this;
}
void stream_permit::drop() noexcept {
    if (wait_ && on_->to()->is_here()) on_->gates().drop(wait_);
    wait_.reset();
}
permit_now stream_permit::now() const {
    return wait_ ? static_cast<permit_now>(state_of(*wait_)) : permit_now::closed;
}
permit_view stream_permit::device() const {
    if (!wait_) return {nullptr, 0};
    return {on_->gates().word_of(*wait_), gate_word(wait_->generation, gate_state::granted)};
}
void stream_permit::release(cudaStream_t stream) {
    if (!wait_) return;
    on_->gates().release(wait_, stream);
    wait_.reset();
}

stream_permit gpu_semaphore::acquire(cudaStream_t stream, nanoseconds timeout) {
    return {on_, on_->gates().acquire(place_, stream, timeout.count(), name())};
}

gpu_space::gpu_space(const space& s) : on_(new gpu_mapping(s.to_), delete_by_owner<gpu_mapping>{}) {}

u32 gpu_space::queue_place(const std::string& name, u32 elements, u64 bytes_each, u64 type) const {
    return on_->to()->place(name, {kind::gpu_queue, elements, bytes_each, 0, type});
}

u32 gpu_space::work_queue_place(const std::string& name, u32 tasks, u64 bytes_each, u32 attempts,
                                u64 type) const {
    return on_->to()->place(name, {kind::gpu_work_queue, tasks, bytes_each, attempts, type});
}

gpu_semaphore gpu_space::semaphore(const std::string& name, u32 permits) {
    return {on_, on_->to()->place(name, {kind::semaphore, permits, 0, 0}), name};
}

shared_pool gpu_space::pool(const std::string& name, u64 bytes, u64 unit_bytes) {
    const u64 unit = std::max<u64>(unit_bytes, 1), whole = (bytes + unit - 1) / unit * unit;
    // Every object derived from the pool keeps the memory mapped, because a block's data() is a pointer into
    // that memory.
    const std::shared_ptr<attachment> to(on_, on_->to().get());
    return {to, to->place(name, {kind::gpu_pool, whole, unit_bytes, 0}), name};
}

std::byte* gpu_space::at(u64 offset, u64 bytes) const { return on_->at(offset, bytes); }
u64 gpu_space::offset_of(const void* pointer) const { return on_->offset_of(pointer); }

}  // namespace carousel::ipc
