#include "control/newest_frame.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/clock.hpp"
#include "core/crash_point.hpp"
#include "core/errors.hpp"
#include "core/poll_until.hpp"
#include "ring/own_pages.hpp"

namespace carousel::run {
namespace {

constexpr u64 connection_check_ns = 100 * ns_per_ms, answer_patience_ns = 200 * ns_per_ms;

/// The only event on this connection is its end.
bool has_ended(const shm::process_fd& connection) {
    return !connection || events_of(connection.get(), POLLIN) != 0;
}

}  // namespace

newest_frame::newest_frame(shm::control_block& c, mapped_ring from, device::context& on)
    : control_(&c),
      from_(std::move(from)),
      memory_(on.map(from_.memory, device::access::read)),
      torn_(on.allocate_host(sizeof(u32))),
      event_(on.make_event(&event_word_)) {
    shm::open_pages(c, ring::pages_of_reader(c, from_.link).pages());
    join();
}

void newest_frame::join() {
    reader_.reset();  // at most one place at a time
    reader_ = std::make_unique<ring::latest_reader>(*control_, from_.link, from_.entry, next_);
    if (!reader_->joined())
        throw config_error(
            fmt::format("all {} places for viewers, ports and displays at the ring of {} are "
                        "taken: close one",
                        shm::max_latest, from_.stage));
}

// Another supervisor leases the same memory, which is already mapped. A supervisor that is still taking the
// run over refuses, and another process may take a free place first: both are retried. The owner of the
// block's mapping detects that the run is over or has other memory.
void newest_frame::check_connection(u64 now) {
    if (now < next_check_ns_) return;
    next_check_ns_ = now + connection_check_ns;
    try {
        if (has_ended(from_.connection)) {
            mapped_ring again = map_ring(*control_, from_.socket_path, from_.stage, answer_patience_ns);
            if (again.link != from_.link || again.slot_bytes != from_.slot_bytes ||
                again.slots != from_.slots || again.format != from_.format)
                return;
            from_ = std::move(again);
            join();
        } else if (!reader_->joined()) {
            join();
        }
    } catch (const error&) {
    }
}

bool newest_frame::copy(device::queue& q, const ring::slot_ref& slot, std::byte* to, u64 offset, u64 bytes) {
    std::byte* const at = memory_->slot(slot.index, from_.slot_bytes);
    const auto* status = reinterpret_cast<const device::status_word*>(at);
    const u32 epoch = control_->frames[from_.link].header[slot.index].epoch;
    const device::status_word expected{slot.ring_sequence, epoch,
                                       static_cast<u32>(device::status_state::ready)};
    auto* torn = reinterpret_cast<u32*>(torn_->data());
    *reinterpret_cast<volatile u32*>(torn_->host_data()) = 0;
    q.check_status(status, expected, torn);
    q.copy(to, at + offset, bytes);
    q.check_status(status, expected, torn);
    event_->record(q, slot.ring_sequence);
    event_->wait();
    return *reinterpret_cast<volatile u32*>(torn_->host_data()) == 0;
}

bool newest_frame::take(device::queue& q, std::byte* to, u64 offset, u64 bytes, about& what, u64 only) {
    check_connection(now_ns());
    const ring::slot_ref slot = reader_->acquire(only);
    if (!slot) return false;
    next_ = slot.ring_sequence + 1;
    const u64 began = now_ns();
    crash_here(crash_point::latest_leased);
    // Read under the lease; discarded below if the lease was revoked meanwhile.
    const shm::frame_header& h = control_->frames[from_.link].header[slot.index];
    const bool is_tombstone = h.meta.is_tombstone();
    about found;
    ring::copy_facts(h, control_->parameters.bytes, found);
    found.ring_sequence = slot.ring_sequence;
    const bool fits = is_tombstone || copy(q, slot, to, offset, bytes);
    crash_here(crash_point::latest_read);
    const bool leased = reader_->release();
    crash_here(crash_point::latest_released);
    if (!leased)
        ++(reader_->header_changed() ? losses_.torn : losses_.revoked);
    else if (is_tombstone)
        ++losses_.tombstones;
    else if (!fits)
        ++losses_.torn;
    else {
        what = std::move(found);
        what.took_ns = now_ns() - began;
        return true;
    }
    return false;
}

// The ring's tail passes a frame that no blocking reader needs any more: its slot is free, or soon will be,
// except the newest frame's slot, which is kept for latest members.
bool newest_frame::may_arrive(u64 ring_sequence) const noexcept {
    const ring::link_ref link(*control_, from_.link);
    return ring_sequence >= next_ && (link.tail() <= ring_sequence || link.is_ready(ring_sequence));
}

// The reader's doorbell: the producer's also rings for its inputs.
shm::doorbell_word& newest_frame::bell() const noexcept {
    const shm::link_block& l = control_->link[from_.link];
    const u32 stage = l.blocking > 0 ? l.group_stage[0] : l.stage;
    return control_->stage[std::min(stage, shm::max_stages - 1)].doorbell;
}

}  // namespace carousel::run
