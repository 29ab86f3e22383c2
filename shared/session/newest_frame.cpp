#include "session/newest_frame.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/clock.hpp"
#include "core/crash_point.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "ring/own_pages.hpp"

namespace carousel::session {
namespace {

constexpr u64 connection_check_ns = 100 * ns_per_ms, answer_patience_ns = 200 * ns_per_ms;

/// The only event that can occur on this connection is its end.
bool has_ended(const shm::process_fd& connection) {
    return !connection || events_of(connection.get(), POLLIN) != 0;
}

}  // namespace

newest_frame::newest_frame(shm::control_block& c, run::mapped_ring from, device::context& on)
    : control_(&c),
      from_(std::move(from)),
      memory_(on.map(from_.memory, device::access::read)),
      reader_(c, from_.link, on) {
    shm::open_pages(c, ring::pages_of_reader(c, from_.link).pages());
    join();
}

void newest_frame::join() {
    if (!reader_.join(from_.entry))
        throw config_error(fmt::format(
            "all {} places for viewers, ports and displays at the ring of {} are taken: close one of them",
            shm::max_latest, from_.stage));
}

// Another supervisor leases the same memory, which is already mapped. A supervisor that is still taking the
// run over refuses, and another process may take a free place first; in both cases the request is repeated.
// The code that owns the mapping of the block detects that the run is over or has different memory.
void newest_frame::check_connection(u64 now) {
    if (now < next_check_ns_) return;
    next_check_ns_ = now + connection_check_ns;
    try {
        if (has_ended(from_.connection)) {
            run::mapped_ring again =
                run::map_ring(*control_, from_.socket_path, from_.stage, answer_patience_ns);
            if (again.link != from_.link || again.slot_bytes != from_.slot_bytes ||
                again.slots != from_.slots || again.format != from_.format)
                return;
            from_ = std::move(again);
            join();
        } else if (!reader_.joined()) {
            join();
        }
    } catch (const error&) {
    }
}

bool newest_frame::take(device::queue& q, std::byte* to, u64 offset, u64 bytes, about& what, u64 only) {
    check_connection(now_ns());
    if (!reader_.joined() || !reader_.acquire(only)) return false;
    const u64 began = now_ns();
    about found;
    ring::copy_facts(reader_.header(), control_->parameters.bytes, found);
    found.ring_sequence = reader_.slot().ring_sequence;
    if (!reader_.is_tombstone()) {
        const std::byte* const at = memory_->slot(reader_.slot().index, from_.slot_bytes);
        reader_.read(q, at, [&] { q.copy(to, at + offset, bytes); });
    }
    const read_result result = reader_.release();
    if (result != read_result::whole) {
        ++(result == read_result::tombstone ? losses_.tombstones
           : result == read_result::revoked ? losses_.revoked
                                            : losses_.torn);
        return false;
    }
    what = std::move(found);
    what.took_ns = now_ns() - began;
    return true;
}

// The ring's tail passes a frame that no blocking reader needs any more, so the frame's slot is free or will
// soon be free. The slot of the newest frame is an exception: it is kept for latest members.
bool newest_frame::may_arrive(u64 ring_sequence) const noexcept {
    const ring::link_ref& link = reader_.link();
    return ring_sequence >= reader_.next() && (link.tail() <= ring_sequence || link.is_ready(ring_sequence));
}

// Returns the doorbell of the ring's first blocking reader, if there is one. The producer's doorbell
// is avoided, because it also rings for changes at the producer's inputs.
shm::doorbell_word& newest_frame::bell() const noexcept {
    const shm::link_block& l = control_->link[from_.link];
    const u32 stage = l.blocking > 0 ? l.group_stage[0] : l.stage;
    return control_->stage[std::min(stage, shm::max_stages - 1)].doorbell;
}

newest_reader::newest_reader(shm::control_block& c, u32 link, device::context& on)
    : control_(&c),
      link_(c, link),
      torn_(on.allocate_host(sizeof(u32))),
      event_(on.make_event(&event_word_)) {}

bool newest_reader::join(u32 entry) {
    member_.reset();  // the reader has at most one place at a time
    member_ = std::make_unique<ring::latest_reader>(*control_, link_.index(), entry, next_);
    return member_->joined();
}

bool newest_reader::acquire(u64 only) {
    slot_ = member_->acquire(only);
    if (!slot_) return false;
    next_ = slot_.ring_sequence + 1;
    torn_words_ = 0;
    crash_here(crash_point::latest_leased);
    // This value is read under the lease: if the lease is revoked in the meantime, the value may belong to
    // another frame, and is discarded.
    is_tombstone_ = header().meta.is_tombstone();
    return true;
}

read_result newest_reader::release() {
    crash_here(crash_point::latest_read);
    const bool leased = member_->release();
    crash_here(crash_point::latest_released);
    if (!leased) return member_->header_changed() ? read_result::changed : read_result::revoked;
    if (is_tombstone_) return read_result::tombstone;
    return torn_words_ != 0 ? read_result::torn : read_result::whole;
}

}  // namespace carousel::session
