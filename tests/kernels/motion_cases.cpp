// Poses and moved vertices have the same bytes for every instruction set and number of threads, and on the
// GPU.
#include <vector>

#include "device/cpu/pool.hpp"
#include "kernels/cpu/shade_entries.hpp"
#include "tests/kernels/backend.hpp"
#include "tests/kernels/motion_block.hpp"

using namespace carousel;
using namespace carousel::kernels;
using namespace carousel::kernels::testing;

namespace {

/// All memory of a moving mesh on one device.
class mover {
public:
    mover(device::context& context, device::queue& queue, const motion_parts& parts)
        : queue_(queue), layout_(parts.layout()) {
        const std::vector<std::byte> bytes = parts.block();
        block_ = context.allocate(bytes.size());
        const auto staging = context.allocate_host(bytes.size());
        std::memcpy(staging->host_data(), bytes.data(), bytes.size());
        queue.copy(block_->data(), staging->data(), bytes.size());
        queue.drain();
        scratch_ = context.allocate(pose_scratch_bytes(layout_.counts));
        for (const u64 size : {u64{layout_.counts.matrices} * 48, u64{layout_.counts.weights} * 4,
                               u64{layout_.vertex_count} * 12 + 4, u64{layout_.vertex_count} * 32}) {
            results_.push_back(context.allocate(size));
            host_.push_back(context.allocate_host(size));
        }
    }
    pose_args pose_at(f64 time) { return {layout_, block_->data(), time, pose(), scratch_->data()}; }
    move_args moves() {
        return {layout_,
                block_->data(),
                pose(),
                {reinterpret_cast<f32*>(results_[2]->data()),
                 reinterpret_cast<shaded_vertex*>(results_[3]->data())}};
    }
    std::vector<std::byte> run(f64 time) {
        clear();
        compute_pose(queue_, pose_at(time));
        move_vertices(queue_, moves());
        return bytes();
    }
    std::vector<std::byte> run(f64 time, const cpu::entries& use, u32 threads) {
        device::cpu::pool pool(threads);
        clear();
        queue_.drain();
        cpu::run_pose(pose_at(time));
        cpu::run_move(pool, moves(), use);
        return bytes();
    }

private:
    pose_planes pose() {
        return {reinterpret_cast<f32*>(results_[0]->data()), reinterpret_cast<f32*>(results_[1]->data())};
    }
    void clear() {
        for (const auto& r : results_) queue_.fill(r->data(), 0xee, r->bytes());
    }
    std::vector<std::byte> bytes() {
        std::vector<std::byte> out;
        for (std::size_t i = 0; i < results_.size(); ++i)
            queue_.copy(host_[i]->data(), results_[i]->data(), results_[i]->bytes());
        queue_.drain();
        for (const auto& h : host_) out.insert(out.end(), h->host_data(), h->host_data() + h->bytes());
        return out;
    }

    device::queue& queue_;
    motion_layout layout_;
    std::unique_ptr<device::mapping> block_, scratch_;
    std::vector<std::unique_ptr<device::mapping>> results_, host_;
};

}  // namespace

#if CAROUSEL_TEST_CUDA
TEST_CASE("CPU and GPU: poses and moved vertices have the same bytes") {
    CAROUSEL_NEEDS_DEVICE();
    backend host = open_backend(device::device_kind::cpu);
    for (const u32 seed : {1U, 2U, 3U}) {
        const motion_parts parts = random_motion(seed, 20 + 300 * (seed - 1), 5000);
        mover gpu(*on.context, *on.queue, parts), cpu(*host.context, *host.queue, parts);
        for (const f64 time : {0.0, 0.37, 1.5, 4.0}) {
            CAPTURE(seed, time);
            REQUIRE(gpu.run(time) == cpu.run(time));
        }
    }
}
#else
TEST_CASE("moved vertices are equal for every instruction set and number of threads") {
    backend on = open_backend(device::device_kind::cpu, 2);
    const motion_parts parts = random_motion(7, 40, 3000);
    mover m(*on.context, *on.queue, parts);
    const std::vector<std::byte> start = m.run(0.0), expected = m.run(0.7);
    CHECK(start != expected);
    CHECK(m.run(0.7) == expected);
    for (const char* name : {"baseline", "avx2", "avx512"}) {
        const cpu::entries* const use = cpu::find_entries(name);
        if (use == nullptr) continue;
        CAPTURE(name);
        REQUIRE(m.run(0.7, *use, 1) == expected);
        REQUIRE(m.run(0.7, *use, 3) == expected);
    }
}
#endif
