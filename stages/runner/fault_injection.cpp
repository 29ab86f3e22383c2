#include "stages/runner/fault_injection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "core/log.hpp"
#include "device/device_failure.hpp"
#include "ring/own_pages.hpp"
#include "shm/block_guard.hpp"
#include "shm/injected_fault.hpp"
#include "stages/runner/exit_note.hpp"

namespace carousel::stages {
namespace {

/// Returns a pseudo-random number below `below`, the same for the same frame.
u64 chosen(u64 ring_sequence, u64 below) { return (ring_sequence * 0x9E37'79B9'7F4A'7C15ULL >> 32U) % below; }

/// Enqueues a write of 16 bytes into one of the frame's inputs, at a place derived from the frame's
/// sequence.
void scribble(runtime& r, const ring::job& at_work) {
    if (at_work.inputs == 0) return;
    const auto k = static_cast<u32>(chosen(at_work.ring_sequence, at_work.inputs));
    const ring::frame_format& format = r.input_format(k);
    const ring::plane& plane = format.planes[at_work.ring_sequence % format.planes.size()];
    const u64 places = std::max<u64>(1, plane.bytes() / sizeof(device::status_word));
    const u64 within =
        at_work.ring_sequence * 0x9E37'79B9'7F4A'7C15ULL % places * sizeof(device::status_word);
    log::warning("a write into its input {}, frame {}, plane {}, offset {}",
                 r.control().link[r.input(k).index].name, at_work.ring_sequence, plane.name, within);
    auto* const to = reinterpret_cast<device::status_word*>(r.input(k).slot(at_work.input[k].index) +
                                                            plane.offset + within);
    r.queue().write_status(to, {~u64{0}, ~0U, ~0U});
}

/// Enqueues the same write after the slot of one of the frame's outputs, less than 64 KiB beyond the slot's
/// end.
void overrun(runtime& r, const ring::job& at_work) {
    if (r.outputs() == 0) return;
    const u64 k = chosen(at_work.ring_sequence, r.outputs());
    mapped_link* const out = r.output(k);
    constexpr u64 reach = u64{64} * 1024 / sizeof(device::status_word);
    const u64 beyond = at_work.ring_sequence * 0x9E37'79B9'7F4A'7C15ULL % reach * sizeof(device::status_word);
    log::warning("a write {} bytes beyond its slot in ring {}, frame {}", beyond,
                 r.control().link[out->index].name, at_work.ring_sequence);
    auto* const to =
        reinterpret_cast<device::status_word*>(out->slot(at_work.output[k].index) + out->slot_bytes + beyond);
    r.queue().write_status(to, {~u64{0}, ~0U, ~0U});
}

/// Writes eight bytes into the control block from the stage's own code, at a place where the guard faults.
/// If the process's own pages are closed as well, half of the writes go into them. Without a guard, the write
/// goes to a word that is not zero: the unused words, which are most of the block, are zero, and a write to
/// them would have no effect.
void scribble_block(runtime& r, const ring::job& at_work) {
    const bool closed = shm::is_closed(0);
    const ring::page_list own = ring::pages_of(r.control(), r.incarnation(), r.attached().depth.token);
    u64 seed = at_work.ring_sequence + r.incarnation().epoch;
    const auto random = [&seed] {
        seed += 0x9E37'79B9'7F4A'7C15ULL;
        const u64 mixed = (seed ^ seed >> 31U) * 0xBF58'476D'1CE4'E5B9ULL;
        return mixed ^ mixed >> 29U;
    };
    // The process's own pages are closed only if keys are used.
    const bool own_too = !closed || shm::is_closed(own.pages()[0].from);
    const auto* const words = reinterpret_cast<const shm::word*>(&r.control());
    u64 place = 0;
    do {
        place = random() % (shm::word_bytes / 8) * 8;
        if (!own_too || at_work.ring_sequence % 2 == 0) continue;
        const shm::page_range& page = own.pages()[random() % own.pages().size()];
        place = page.from + random() % (page.bytes / 8) * 8;
    } while (closed ? !shm::is_closed(place) : words[place / 8].load(std::memory_order_relaxed) == 0);
    const shm::block_place to = shm::place_in_block(place);
    log::warning("a write into the control block, part {} of index {}, offset {}", static_cast<u32>(to.part),
                 to.index, to.offset);
    auto* const word = reinterpret_cast<shm::word*>(&r.control()) + place / 8;
    // While any thread is in a block_open scope, emulated keys leave the block open to all threads. Therefore
    // a write that changes nothing is repeated until one of the writes faults. With hardware keys the first
    // write faults.
    for (u32 k = 0; closed && k < 100; ++k) {
        u64 is = word->load();
        word->compare_exchange_strong(is, is);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    word->store(~u64{0});
}

void apply_fault(runtime& r, const ring::job& at_work, shm::word& at, u64 asked) {
    const shm::injected_fault kind = shm::fault_for(asked, r.incarnation().epoch);
    // the request is for this process's successor, because this process has been revoked and has not
    // detected the revocation yet
    if (asked >> 8U > r.incarnation().epoch) return;
    const bool taken = [&] {
        const shm::block_open open;
        return at.compare_exchange_strong(asked, 0, std::memory_order_acq_rel);
    }();
    // The kind is `nothing` if the request was for this process's predecessor, which died before it read the
    // request.
    if (!taken || kind == shm::injected_fault::nothing) return;
    log::warning("`carousel inject`: {}", shm::name_of(kind));
    switch (kind) {
        case shm::injected_fault::hang:
            for (;;) std::this_thread::sleep_for(std::chrono::milliseconds(100));
        case shm::injected_fault::gpu_fault:
            r.queue().fault();
            return;
        case shm::injected_fault::gpu_lost:
            device::fail_from_now_on(device::error_unavailable);
            return;
        case shm::injected_fault::scribble_input:
            scribble(r, at_work);
            return;
        case shm::injected_fault::overrun_output:
            overrun(r, at_work);
            return;
        case shm::injected_fault::scribble_control:
            scribble_block(r, at_work);
            return;
        case shm::injected_fault::exception:
            throw std::runtime_error(
                fmt::format("injected by `carousel inject`, frame {}", at_work.ring_sequence));
        case shm::injected_fault::exit:
            die(3);
        case shm::injected_fault::abort:
            std::abort();
        case shm::injected_fault::nothing:
            return;
    }
}

}  // namespace

bool is_fault_requested(const runtime& r) noexcept {
    return r.control().seat[r.incarnation().seat].fault.load(std::memory_order_relaxed) != 0;
}

void inject_fault(runtime& r, const ring::job& at_work) {
    shm::word& at = r.control().seat[r.incarnation().seat].fault;
    if (const u64 asked = at.load(std::memory_order_relaxed); asked != 0) apply_fault(r, at_work, at, asked);
}

}  // namespace carousel::stages
