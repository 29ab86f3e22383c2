#include "stages/hosts/outgoing_payload.hpp"

#include <carousel/hash.hpp>
#include "stages/hosts/frame_to_message.hpp"
#include "stages/hosts/link_settings.hpp"

namespace carousel::hosts {

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
