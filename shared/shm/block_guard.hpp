#pragma once
// Which pages of the control block this process can write to, and when.
//
// A stage's process guards the block once, at set-up: all of it is for reading, but the pages that the
// protocol's steps of its own seat write (ring/own_pages.hpp). Where the CPU has memory protection keys,
// those bear a key and are closed to writes, too; a thread opens them for as long as it is in a function that
// writes, by a block_open on its stack. So a stray write of the stage's own code faults its writer wherever
// in the block it goes, while the ring's functions write as ever. This stops strays, not malice: any code may
// open what it likes.
//
// Who may call: guard_block() the main thread, before other threads are made that write into the block
// (rights of a key are a thread's own, a new thread has its maker's, and one that was there before can't even
// read what bears a key). block_open any thread, nested as often as it likes; it must not span a stage's own
// code, a call of the GPU's driver or the making of a thread. A signal handler begins with the kernel's own
// rights, in which every key is closed to reads, too: it calls open_block_for_good(). The kernel keeps to the
// key of the thread that calls it: a futex on a closed page can be waited on (that reads), and set only when
// open.
//
// Each outermost scope costs two writes of the thread's rights, so the runner holds one over several
// functions of the ring in a row; tests/stages/test_closed_run.cpp counts how many a frame takes.
//
// Processes that guard nothing (supervisor, observers, ports' programs, tests) pay one untaken branch.
// Crash: rights are this process's own and go with it.

#include <atomic>
#include <optional>
#include <span>

#include "shm/control_block.hpp"

namespace carousel::shm {

enum class block_guard : u8 {
    off = 0,       ///< all words can be written to
    pages = 1,     ///< own pages alone
    keys = 2,      ///< and those in a block_open alone, by a protection key
    emulated = 3,  ///< the same by mprotect, for all threads at once: for tests where a CPU has no keys
};

/// Whole pages of the block, from its begin.
struct page_range {
    u64 from = 0, bytes = 0;
    bool operator==(const page_range&) const noexcept = default;
};

/// Closes the block but for `own`. `wanted` keys: as pages where there are none. Returns what it has done.
/// Once a process. Throws shm_error.
block_guard guard_block(control_block& c, std::span<const page_range> own, block_guard wanted);
/// The same of another mapping, pages alone: for those who write a few words and aren't stages.
void guard_pages(control_block& c, std::span<const page_range> own);
/// More pages of a mapping that was given to guard_pages().
void open_pages(control_block& c, std::span<const page_range> own);

/// Whether this CPU and kernel have protection keys: tried once.
[[nodiscard]] bool has_protection_keys() noexcept;
/// Why not, for a sentence; "" where it has.
[[nodiscard]] const char* why_no_keys() noexcept;

/// Whether a write to that place of the guarded block faults now, outside of any block_open.
[[nodiscard]] bool is_closed(u64 offset) noexcept;
/// Of the guarded block; null: none is.
[[nodiscard]] const control_block* guarded_block() noexcept;
/// For this thread, from here on; what a signal handler may call.
void open_block_for_good() noexcept;

namespace guard_state {
extern std::atomic<bool> closes;  ///< set once, before there are threads that write
void enter() noexcept;
void leave() noexcept;
}  // namespace guard_state

/// How many outermost scopes this thread has begun behind a guard: each costs two writes of its rights.
[[nodiscard]] u64 scopes_of_this_thread() noexcept;
/// Whether this thread is in one.
[[nodiscard]] bool is_open_here() noexcept;

/// The guarded pages are open to this thread as long as this lives.
class block_open {
public:
    block_open() noexcept : counted_(guard_state::closes.load(std::memory_order_relaxed)) {
        if (counted_) [[unlikely]]
            guard_state::enter();
    }
    ~block_open() {
        if (counted_) [[unlikely]]
            guard_state::leave();
    }
    block_open(const block_open&) = delete;
    block_open& operator=(const block_open&) = delete;

private:
    bool counted_;  ///< a scope that began before the guard ends as it began
};

/// A scope that begins at the first write, if there is one: for a function that mostly looks.
class block_open_late {
public:
    void now() noexcept {
        if (!open_) open_.emplace();
    }

private:
    std::optional<block_open> open_;
};

/// A scope over several functions in a row, which is left for what lies between them and isn't the ring's.
class block_open_between {
public:
    /// Runs `work`, a stage's own code or a wait, outside of this scope.
    template <typename F>
    void leave_for(F&& work) {
        open_.reset();
        work();
        open_.emplace();
    }

private:
    std::optional<block_open> open_{std::in_place};
};

}  // namespace carousel::shm
