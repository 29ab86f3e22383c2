#include "stages/hosts/link_frame.hpp"

#include <carousel/hash.hpp>

#include <algorithm>
#include <iterator>

#include "stages/hosts/link_end.hpp"

namespace carousel::hosts {
namespace {

constexpr std::size_t longest_reason = 1000;

}  // namespace

frame_message message_of(frame& f) {
    frame_message m;
    m.ring_sequence = f.ring_sequence();
    m.frame_number = f.frame_number();
    m.time_s = f.time_s();
    m.born_ns = f.born_ns();
    m.capture_ns = f.capture_ns();
    m.clock = static_cast<u8>(f.capture_clock());
    m.parameter_number = f.parameter_number();
    m.parameters.assign(f.parameter_bytes().begin(), f.parameter_bytes().end());
    const auto metadata = f.metadata().bytes();
    m.metadata.assign(metadata.begin(), metadata.end());
    m.tombstone_reason = f.tombstone_reason().substr(0, longest_reason);
    return m;
}

used_planes used_of(const shm::used_extents& from) {
    used_planes out;
    out.planes = from.planes & ((1U << shm::max_used_planes) - 1);
    for (u32 k = 0; k < shm::max_used_planes; ++k)
        std::copy(std::begin(from.of[k]), std::end(from.of[k]), out.of[k].begin());
    return out;
}

shm::used_extents extents_of(const used_planes& from) {
    shm::used_extents to{};
    to.planes = from.planes;
    for (u32 k = 0; k < shm::max_used_planes; ++k)
        std::copy(from.of[k].begin(), from.of[k].end(), std::begin(to.of[k]));
    return to;
}

void outgoing_payload::prepare(environment& env, u64 bytes, bool direct) {
    bytes_ = bytes;
    device::context& c = env.context();
    hashes_ = c.allocate_host(u64{env.in_flight()} * sizeof(u64));
    if (const u64 scratch = kernels::hash_scratch_bytes(c.kind()); scratch > 0)
        scratch_ = c.allocate(scratch);
    if (c.kind() == device_kind::cpu) return;
    if (direct) {
        gpu_ = &c;
        return;
    }
    for (u32 lane = 0; lane < env.in_flight(); ++lane) lanes_.push_back(c.allocate_host(bytes));
}

void outgoing_payload::enqueue(frame& f) {
    const std::byte* const payload = f.input().slot() + before_payload;
    kernels::hash_args args{.data = payload, .row_bytes = bytes_};
    if (scratch_) args.scratch = scratch_->data(), args.scratch_bytes = scratch_->bytes();
    args.out = reinterpret_cast<u64*>(hashes_->data()) + f.lane();
    kernels::hash_plane(f.queue(), args);
    if (!lanes_.empty()) f.queue().copy(lanes_[f.lane()]->data(), payload, bytes_);
}

const std::byte* outgoing_payload::describe(const frame& f, frame_message& m) const {
    m.bytes = m.packed_bytes = bytes_;
    m.hash = reinterpret_cast<const u64*>(hashes_->host_data())[f.lane()];
    if (const shm::used_extents* const used = f.input().used()) m.used = used_of(*used);
    return lanes_.empty() ? f.input().slot() + before_payload : lanes_[f.lane()]->host_data();
}

}  // namespace carousel::hosts
