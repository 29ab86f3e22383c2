#include "session/newest_reader.hpp"

#include "core/crash_point.hpp"

namespace carousel::session {

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
    // Read under the lease: if the lease is revoked in the meantime, this value may belong to another frame,
    // and is discarded.
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
