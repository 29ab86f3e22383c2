#pragma once
// The note that a dying stage leaves in its incarnation entry. The supervisor reads the note as soon as it
// detects the death, long before a zombie with a GPU context can be reaped. A death without a note counts as
// a death that was caused from outside.

#include <algorithm>
#include <exception>
#include <functional>
#include <utility>

#include "core/errors.hpp"
#include "core/log.hpp"
#include "device/backend.hpp"
#include "ring/exit_notes.hpp"
#include "shm/control_block.hpp"

namespace carousel::stages {

/// Installs handlers for the signals that a process can raise by its own actions (SEGV, BUS, FPE, ILL, ABRT,
/// TRAP, SYS). A handler stores the note, records the stack (fault_recorder.hpp), and then passes the signal
/// to the handler that was installed before, or lets it take its default action. A recording that takes
/// longer than 2 s is abandoned, and the signal takes its default action. After a write into guarded memory,
/// the handler also stores the target of the write. A note is also stored when the stage's own code calls
/// exit(n). Ignores SIGPIPE and SIGHUP.
void install_exit_note(shm::incarnation& entry) noexcept;
/// To be called before the entry and all guarded memory are unmapped: no note is stored from now on, and the
/// handlers know no guarded memory until install_exit_note() is called again.
void remove_exit_note() noexcept;
/// Stores the target of an out-of-bounds write by this process (ring/exit_notes.hpp). Async-signal-safe. Only
/// the first target is kept.
void note_wild_write(u64 packed) noexcept;
/// Stores the note and ends the process at once, without destructors, because a normal exit can hang on a
/// stuck stream.
[[noreturn]] void die(int code) noexcept;
/// Runs `work`. If `work` throws, logs the exception and exits without closing the connection first. If the
/// connection were closed before the note is stored, a supervisor would kill a client of an MPS domain
/// without knowing why the client exits.
void with_exit_note(const std::function<void()>& work);
/// After this call, exit(0) is treated as the planned exit of the process.
void expect_exit() noexcept;

// Records which addresses are read-only in this process because they belong to other processes, and which
// addresses lie in a gap between slots. From this table the SIGSEGV handler reports the target of an access.
// Threads: any; find_wild_write() also in a signal handler, because it reads a table of fixed size and takes
// no lock. A row is written by the thread that claimed it, and is read only after its flag marks it as
// complete (release). Only remove_exit_note() removes rows, because guarded memory stays mapped until then.

/// Registers the memory of a ring (`slots` of `slot_bytes` each) or of an asset (slot_bytes 0), as mapped in
/// this process. Does nothing for memory that the CPU cannot access, and for memory in which the CPU may
/// write to every byte.
void guard(const device::mapping& memory, ring::wild_write_target what, u32 index, u64 slot_bytes,
           u32 slots) noexcept;

/// Registers the frame segments of a run. A write to a header of the stage's own outputs faults only if that
/// header is closed by a protection key. The control block needs no registration, because
/// shm::guarded_block() returns its address.
void guard_headers(const shm::control_block& c) noexcept;

/// Returns the object at `address`; wild_write_target::nothing if it is not guarded.
[[nodiscard]] ring::wild_write find_wild_write(const void* address) noexcept;

// Calls a stage's own code from the runner. An exception from that code ends the process, with a note for the
// supervisor.

/// Frames in flight when a device failed. No driver call reports the address or the kernel, so any of the
/// frames in flight may be the cause.
struct frames_on_device {
    u64 oldest = 0, newest = 0;
    u32 count = 1;
};

inline void note_device_fault(const frames_on_device& f) {
    log::error(
        "the device reports neither the address nor the kernel, so any of the {} frames in flight, {} to {}, "
        "may be the cause",
        f.count, f.oldest, f.newest);
    note_wild_write(ring::wild_write{ring::wild_write_target::device, std::min(f.count, 255U),
                                     static_cast<u32>(std::min<u64>(f.newest - f.oldest, 255)), f.oldest}
                        .pack());
}

/// `in_flight`: called if the device has failed.
template <typename F, typename InFlight>
void guarded(const char* what, u64 ring_sequence, F&& fn, InFlight&& in_flight) {
    try {
        fn();
    } catch (const carousel::error& e) {
        log::error("{} of frame {}: {}", what, ring_sequence, e.what());
        if (e.code() == exit_code::gpu_fault) note_device_fault(in_flight());
        die(e.code());
    } catch (const std::exception& e) {
        log::error("{} of frame {} threw: {}", what, ring_sequence, e.what());
        die(exit_code::stage_exception);
    }
}

template <typename F>
void guarded(const char* what, u64 ring_sequence, F&& fn) {
    guarded(what, ring_sequence, std::forward<F>(fn), [&] {
        return frames_on_device{ring_sequence, ring_sequence};
    });
}

}  // namespace carousel::stages
