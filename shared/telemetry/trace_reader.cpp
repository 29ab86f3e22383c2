#include "telemetry/trace_reader.hpp"

#include <algorithm>

namespace carousel::telemetry {

trace_reader::trace_reader(const shm::trace_segment& s, u64 begin_ns)
    : begin_ns_(begin_ns), rings_(s.seats()) {
    for (u32 k = 0; k < rings_.size(); ++k) {
        rings_[k].ring = s.ring(k);
        rings_[k].next = rings_[k].ring->head.load(std::memory_order_acquire);
    }
}

void trace_reader::poll() {
    for (u32 seat = 0; seat < rings_.size(); ++seat) {
        cursor& at = rings_[seat];
        const u64 head = at.ring->head.load(std::memory_order_acquire);
        const u64 oldest = head > shm::trace_records ? head - shm::trace_records : 0;
        stamp s;
        std::erase_if(at.pending, [&](u64 number) {
            if (read(*at.ring, number, s)) {
                take(seat, at, s);
                return true;
            }
            if (number >= oldest && number < head) return false;
            ++at.unreadable;
            return true;
        });
        if (head < at.next) at.next = head;  // head has been overwritten by a wild write
        if (at.next < oldest) {
            overwritten_ += oldest - at.next;
            at.next = oldest;
        }
        for (; at.next < head; ++at.next) {
            if (read(*at.ring, at.next, s))
                take(seat, at, s);
            else
                at.pending.push_back(at.next);
        }
    }
}

u64 trace_reader::unfinished() const {
    u64 sum = 0;
    for (const cursor& at : rings_) sum += at.unreadable + at.pending.size();
    return sum;
}

void trace_reader::take(u32 seat, cursor& at, const stamp& s) {
    if (s.kind == stamp_kind::waited) {
        if (s.b > s.a && s.b > begin_ns_)
            waits_.push_back({seat, s.epoch, s.why, std::max(s.a, begin_ns_), s.b});
        return;
    }
    if (s.kind == stamp_kind::none || std::max(s.a, s.b) < begin_ns_) return;
    const u64 key = s.ring_sequence << 24U | (s.epoch & 0xFF'FFFFU);
    const auto [found, fresh] = at.known.try_emplace(key, attempts_.size());
    if (fresh) {
        attempts_.emplace_back();
        attempts_.back().ring_sequence = s.ring_sequence;
        attempts_.back().seat = seat;
        attempts_.back().epoch = s.epoch;
    }
    attempt& a = attempts_[found->second];
    a.lane = s.lane;
    switch (s.kind) {
        case stamp_kind::claimed:
            a.claimed_ns = s.a;
            a.born_ns = s.b;
            a.capture_ns = s.c;
            break;
        case stamp_kind::submitted:
            a.process_ns = s.a;
            a.submitted_ns = s.b;
            a.is_tombstone = s.is_tombstone;
            break;
        case stamp_kind::committed:
            a.complete_ns = s.a;
            a.committed_ns = s.b;
            a.finished_ns = s.c;
            break;
        case stamp_kind::none:
        case stamp_kind::waited:
            break;
    }
}

}  // namespace carousel::telemetry
