#include "stages/runner/exit_note.hpp"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <system_error>

#include "core/errors.hpp"
#include "core/log.hpp"
#include "core/resource_limit.hpp"
#include "core/signal_stack.hpp"
#include "ring/participants.hpp"
#include "shm/block_guard.hpp"
#include "stages/runner/fault_recorder.hpp"

namespace carousel::stages {
namespace {

std::atomic<shm::incarnation*> own_entry{nullptr};  // lock-free: read in a signal handler
std::atomic<bool> exit_expected{false};

void note(u64 text) noexcept {
    shm::incarnation* e = own_entry.load(std::memory_order_acquire);
    const shm::block_open open;
    if (e != nullptr) e->exit_note.store(text, std::memory_order_release);
}

constexpr std::array fatal_signals{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
/// What other code had installed before, e.g. Python's faulthandler or a sanitizer.
std::array<struct sigaction, fatal_signals.size()> handlers_before;
std::atomic<pid_t> recording_thread{0};

constexpr unsigned recording_s = 2, chained_s = 60;  // a sanitizer's report takes longer than a recording
std::atomic<int> recorded_signal{0};

void unblock(int signal) noexcept {
    sigset_t one;
    ::sigemptyset(&one);
    ::sigaddset(&one, signal);
    ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
}

[[noreturn]] void end_by_default(int signal) noexcept {
    std::signal(signal, SIG_DFL);
    unblock(signal);
    ::raise(signal);
    ::_exit(128 + signal);  // not reached: the default action of these signals ends the process
}

/// Ends this process by `signal`, after the handler that was installed before, if there was one. The signal
/// is sent again with the same siginfo, so that this handler and the core file show the address.
[[noreturn]] void end_by(int signal, siginfo_t* from) noexcept {
    ::alarm(chained_s);
    const auto send = [&] {
        const pid_t pid = ::getpid(), thread = static_cast<pid_t>(::syscall(SYS_gettid));
        if (from == nullptr || ::syscall(SYS_rt_tgsigqueueinfo, pid, thread, signal, from) != 0)
            ::raise(signal);
    };
    for (std::size_t k = 0; k < fatal_signals.size(); ++k) {
        const struct sigaction& before = handlers_before[k];
        if (fatal_signals[k] != signal || before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN)
            continue;
        ::sigaction(signal, &before, nullptr);
        send();
    }
    std::signal(signal, SIG_DFL);
    unblock(signal);  // a sanitizer that calls this handler may have blocked it
    send();
    end_by_default(signal);
}

void on_recording_limit(int) { end_by_default(recorded_signal.load()); }

// The stack, the unwinder's locks or /proc may be in any state, so a recording may never return. SIGALRM may
// reach any thread that does not block it, and ends the process by the signal of the fault.
void limit_recording(int signal) noexcept {
    recorded_signal.store(signal);
    struct sigaction action {};
    action.sa_handler = on_recording_limit;
    action.sa_flags = SA_ONSTACK;
    ::sigaction(SIGALRM, &action, nullptr);
    unblock(SIGALRM);
    ::alarm(recording_s);
}

// Several threads may fault at once. The first one records its fault, and ends the process when it has done
// so; the others wait for that. A fault inside the recording is handled on the same thread.
void await_recording() noexcept {
    for (unsigned ms = 0; ms < recording_s * 1000; ++ms) {
        const timespec one_ms{0, 1'000'000};
        ::nanosleep(&one_ms, nullptr);
    }
}

// Distinguishes a fault or abort() of this process from a `kill -ABRT` by another process: only a fault or
// abort() counts against a frame.
void on_fatal_signal(int signal, siginfo_t* from, void* context) {
    shm::open_block_for_good();  // needed because the kernel starts the handler with the block closed, even
                                 // if the thread had opened it
    const auto self = static_cast<pid_t>(::syscall(SYS_gettid));
    pid_t first = 0;
    if (!recording_thread.compare_exchange_strong(first, self)) {
        if (first == self)
            record_fault(signal, from, context);
        else
            await_recording();
        end_by(signal, from);
    }
    const bool sent = from != nullptr && from->si_code <= 0 && from->si_pid != ::getpid();
    if (signal == SIGSEGV && from != nullptr &&
        (from->si_code == SEGV_ACCERR || from->si_code == SEGV_PKUERR)) {
        const ring::wild_write to = find_wild_write(from->si_addr);
        if (to.what != ring::wild_write_target::nothing) note_wild_write(to.pack());
    }
    note(sent ? ring::note_signal_from_outside(signal) : ring::note_signal(signal));
    limit_recording(signal);
    record_fault(signal, from, context);
    end_by(signal, from);
}

void on_exit() {
    if (!exit_expected.load(std::memory_order_acquire)) note(ring::note_exit(exit_code::stage_exception));
}

struct range {
    std::uintptr_t from = 0;
    u64 bytes = 0;  ///< length of the address range
    /// set only for a ring; first_slot is the offset of the first slot from the first address
    u64 slot_bytes = 0, stride = 0, first_slot = 0;
    ring::wild_write_target what = ring::wild_write_target::nothing;
    u32 index = 0;
};
/// Each row is written once per run, by the thread that has claimed it.
struct row {
    range of;
    std::atomic<bool> whole{false};  // lock-free: read in a signal handler
};
std::array<row, shm::max_inputs + shm::max_sampled_inputs + shm::max_outputs + shm::max_assets> rows;
std::atomic<u32> taken{0};
std::atomic<const shm::frame_segment*> segments{nullptr};

ring::wild_write in_headers(std::uintptr_t at) noexcept {
    const auto from = reinterpret_cast<std::uintptr_t>(segments.load(std::memory_order_acquire));
    if (from == 0 || at < from || at - from >= shm::max_links * sizeof(shm::frame_segment)) return {};
    const u64 offset = (at - from) % sizeof(shm::frame_segment);
    return {ring::wild_write_target::header, static_cast<u32>((at - from) / sizeof(shm::frame_segment)),
            static_cast<u32>(offset / sizeof(shm::frame_header)), offset % sizeof(shm::frame_header)};
}

/// Returns the place in the control block to which the address `at` belongs, in a process that has closed the
/// block's words to writes.
ring::wild_write in_block(std::uintptr_t at) noexcept {
    const auto from = reinterpret_cast<std::uintptr_t>(shm::guarded_block());
    if (from == 0 || at < from || at - from >= shm::word_bytes) return {};
    const shm::block_place place = shm::place_in_block(at - from);
    return {ring::wild_write_target::block, static_cast<u32>(place.part), place.index, place.offset};
}

// A write into the bytes that precede a slot in its piece, or into the gap before these bytes, is reported as
// a write after the previous slot.
ring::wild_write place_in(const range& r, u64 offset) noexcept {
    if (r.slot_bytes == 0) return {r.what, r.index, 0, offset};
    const u64 from_first = offset < r.first_slot ? 0 : offset - r.first_slot;
    const u64 within = from_first % r.stride;
    const bool is_after_slot = r.what == ring::wild_write_target::input && within >= r.slot_bytes;
    return {is_after_slot ? ring::wild_write_target::after_input : r.what, r.index,
            static_cast<u32>(from_first / r.stride), within};
}

}  // namespace

void install_exit_note(shm::incarnation& entry) noexcept {
    own_entry.store(&entry, std::memory_order_release);
    thread_local const signal_stack of_this_thread;
    static std::mutex one_thread;  // tests run several stages as threads of one process
    const std::lock_guard lock(one_thread);
    for (std::size_t k = 0; k < fatal_signals.size(); ++k) {
        struct sigaction now {};
        ::sigaction(fatal_signals[k], nullptr, &now);
        if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_fatal_signal) continue;
        handlers_before[k] = now;
        struct sigaction action {};
        action.sa_sigaction = on_fatal_signal;
        action.sa_flags = SA_NODEFER | SA_ONSTACK | SA_SIGINFO;
        ::sigaction(fatal_signals[k], &action, nullptr);
    }
    std::signal(SIGPIPE, SIG_IGN);
    // If a process group loses its parent while one of its members is stopped, the kernel sends SIGHUP to the
    // group. This happens if the supervisor is killed after `carousel stop`. A terminal's hang-up is handled
    // by the supervisor.
    std::signal(SIGHUP, SIG_IGN);
    static const int registered = std::atexit(on_exit);
    (void)registered;
}

void remove_exit_note() noexcept {
    own_entry.store(nullptr, std::memory_order_release);
    segments.store(nullptr, std::memory_order_release);
    for (row& each : rows) each.whole.store(false, std::memory_order_release);
    taken.store(0, std::memory_order_relaxed);
}

void note_wild_write(u64 packed) noexcept {
    shm::incarnation* e = own_entry.load(std::memory_order_acquire);
    u64 none = 0;
    const shm::block_open open;
    if (e != nullptr) e->wild_write.compare_exchange_strong(none, packed, std::memory_order_release);
}

void expect_exit() noexcept { exit_expected.store(true, std::memory_order_release); }

void with_exit_note(const std::function<void()>& work) {
    try {
        work();
    } catch (const out_of_resources& e) {
        log::error("{}", e.what());
        die(exit_code::no_resources);
    } catch (const carousel::error& e) {
        log::error("{}", e.what());
        die(e.code());
    } catch (const std::bad_alloc&) {
        log::error("out of memory: {}", no_memory_text(ENOMEM));
        die(exit_code::stage_exception);
    } catch (const std::system_error& e) {
        if (e.code() != std::errc::resource_unavailable_try_again) {
            log::error("{}", e.what());
            die(exit_code::stage_exception);
        }
        log::error("a thread could not be started: {}", no_thread_text(EAGAIN));
        die(exit_code::no_resources);
    } catch (const std::exception& e) {
        log::error("{}", e.what());
        die(exit_code::stage_exception);
    }
}

void die(int code) noexcept {
    // A process that ends because it was revoked, or because its supervisor has ended, has not failed
    // itself, so it leaves no note.
    if (code != exit_code::revoked && code != exit_code::supervisor_gone) note(ring::note_exit(code));
    // A client of an MPS domain that exits with work on the device may end other clients as well. The
    // supervisor ends a revoked client through the server (mps_control.hpp) and then kills it; the client
    // waits here for that kill, for the longest time that the kill may take.
    if (code == exit_code::revoked && std::getenv("CAROUSEL_MPS_CLIENT") != nullptr) ::sleep(5);
    ::_exit(code);
}

void guard(const device::mapping& memory, ring::wild_write_target what, u32 index, u64 slot_bytes,
           u32 slots) noexcept {
    const bool open = !memory.read_only() && !memory.has_gaps();
    if (open || memory.host_data() == nullptr) return;
    const u32 n = taken.fetch_add(1, std::memory_order_relaxed);  // relaxed order suffices: only a unique
                                                                  // number is needed
    if (n >= rows.size()) return;
    range r{
        reinterpret_cast<std::uintptr_t>(memory.host_data()), memory.bytes(), slot_bytes, 0, 0, what, index};
    if (slot_bytes != 0) {
        r.stride = memory.stride(slot_bytes);
        r.first_slot = static_cast<u64>(memory.slot(0, slot_bytes) - memory.data());
        r.bytes = slots * r.stride;
    }
    rows[n].of = r;
    rows[n].whole.store(true, std::memory_order_release);
}

void guard_headers(const shm::control_block& c) noexcept {
    segments.store(c.frames, std::memory_order_release);
}

ring::wild_write find_wild_write(const void* address) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    for (const row& each : rows) {
        const range& r = each.of;
        if (!each.whole.load(std::memory_order_acquire)) continue;
        if (at >= r.from && at - r.from < r.bytes) return place_in(r, at - r.from);
    }
    const ring::wild_write header = in_headers(at);
    return header.what != ring::wild_write_target::nothing ? header : in_block(at);
}

}  // namespace carousel::stages
