#include "stages/runner/exit_note.hpp"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <new>
#include <system_error>

#include "core/errors.hpp"
#include "core/log.hpp"
#include "core/resource_limit.hpp"
#include "ring/participants.hpp"
#include "shm/block_guard.hpp"
#include "stages/runner/guarded_memory.hpp"

namespace carousel::stages {
namespace {
std::atomic<shm::incarnation*> own_entry{nullptr};  // lock-free: read in a signal handler
std::atomic<bool> exit_expected{false};

void note(u64 text) noexcept {
    shm::incarnation* e = own_entry.load(std::memory_order_acquire);
    const shm::block_open open;
    if (e != nullptr) e->exit_note.store(text, std::memory_order_release);
}

// Distinguishes a fault or abort() of this process from a `kill -ABRT` by another process: only the former
// counts against a frame.
void on_fatal_signal(int signal, siginfo_t* from, void*) {
    shm::open_block_for_good();  // because the kernel closes the block to this handler, regardless of what
                                 // the thread was doing
    const bool sent = from != nullptr && from->si_code <= 0 && from->si_pid != ::getpid();
    if (signal == SIGSEGV && from != nullptr &&
        (from->si_code == SEGV_ACCERR || from->si_code == SEGV_PKUERR)) {
        const ring::wild_write to = find_wild_write(from->si_addr);
        if (to.what != ring::wild_write_target::nothing) note_wild_write(to.pack());
    }
    note(sent ? ring::note_signal_from_outside(signal) : ring::note_signal(signal));
    std::signal(signal, SIG_DFL);
    ::raise(signal);
}

void on_exit() {
    if (!exit_expected.load(std::memory_order_acquire)) note(ring::note_exit(exit_code::stage_exception));
}
}  // namespace

void install_exit_note(shm::incarnation& entry) noexcept {
    own_entry.store(&entry, std::memory_order_release);
    for (const int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) {
        struct sigaction action {};
        action.sa_sigaction = on_fatal_signal;
        action.sa_flags = SA_NODEFER | SA_RESETHAND | SA_SIGINFO;
        ::sigaction(s, &action, nullptr);
    }
    std::signal(SIGPIPE, SIG_IGN);
    // The kernel sends SIGHUP to a process group that loses its parent while one of its members is stopped:
    // this is the case after `carousel stop` if the supervisor is then killed. A terminal's hang-up is
    // handled by the supervisor.
    std::signal(SIGHUP, SIG_IGN);
    std::atexit(on_exit);
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
    // A process that is revoked, or whose supervisor has ended, has not failed, so it leaves no note.
    if (code != exit_code::revoked && code != exit_code::supervisor_gone) note(ring::note_exit(code));
    // A client of an MPS domain that exits with work on the device may end other clients as well. The
    // supervisor ends a revoked client through the server (mps_control.hpp) and then kills it; the client
    // waits here for that kill, for the longest time that it may take.
    if (code == exit_code::revoked && std::getenv("CAROUSEL_MPS_CLIENT") != nullptr) ::sleep(5);
    ::_exit(code);
}

}  // namespace carousel::stages
