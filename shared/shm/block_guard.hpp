#pragma once
// Determines which pages of the control block this process can write to, and when.
// A stage's process guards the block once, at set-up: the block becomes read-only, except for the pages to
// which its own seat writes in the protocol (ring/own_pages.hpp). If the CPU has memory protection keys,
// those pages get a key and are also closed to writes; a thread opens them with a block_open on its stack
// while it executes a function that writes. A wild write of the stage's own code to any address in the block
// then faults, while the ring's functions write without restriction. This stops accidental writes, not
// malicious ones: any code may open the pages.
// Callers: the main thread calls guard_block() before it creates threads that write into the block, because
// PKRU is per thread and inherited at creation: a thread that was created earlier cannot even read pages with
// the key. block_open may be used by any thread and nested to any depth; it must not span a stage's own code,
// a call of the GPU driver or the creation of a thread. A signal handler starts with the kernel's default
// rights, in which every key is also closed to reads, so it calls open_block_for_good(). In a system call the
// kernel applies the calling thread's rights: a thread can wait on a futex on a closed page (the kernel only
// reads the word), but can change the futex only while the page is open.
// Each outermost scope costs two writes of the thread's rights, so the runner keeps one scope over several
// consecutive functions of the ring; tests/stages/test_closed_run.cpp counts the scopes per frame.
// In processes that guard nothing (supervisor, observers, programs with ports, tests) a scope costs one
// branch that is not taken. Crash: the rights belong to the process and end with it.

#include <atomic>
#include <optional>
#include <span>

#include "shm/control_block.hpp"

namespace carousel::shm {

enum class block_guard : u8 {
    off = 0,       ///< all words are writable
    pages = 1,     ///< only the process's own pages are writable
    keys = 2,      ///< only the process's own pages are writable, and only inside a block_open; a protection
                   ///< key enforces this
    emulated = 3,  ///< the rights are those of `keys`, but mprotect sets them for all threads together; for
                   ///< tests on CPUs without protection keys
};

/// Whole pages of the block; `from` is the offset from the block's start.
struct page_range {
    u64 from = 0, bytes = 0;
    bool operator==(const page_range&) const noexcept = default;
};

/// Makes the block read-only except for the ranges in `own`. If `wanted` is keys and the CPU or the kernel
/// has no keys, the guard is pages. Returns the guard that is in effect. One block per process at a time.
/// Throws shm_error.
block_guard guard_block(control_block& c, std::span<const page_range> own, block_guard wanted);
/// To be called before the guarded block is unmapped, while no thread has a block_open. The process keeps its
/// protection key: the threads that exist have their rights to it, and would have none to a new key.
void forget_block() noexcept;
/// Guards any mapping of a control block, always with block_guard::pages. Used by processes that are not
/// stages and write only a few words. Throws shm_error.
void guard_pages(control_block& c, std::span<const page_range> own);
/// Makes further pages writable, in a mapping that was passed to guard_pages(). Throws shm_error.
void open_pages(control_block& c, std::span<const page_range> own);

/// True if this CPU and kernel have protection keys; checked once.
[[nodiscard]] bool has_protection_keys() noexcept;
/// Returns the reason why there are no protection keys, worded as a part of a sentence; "" if there are keys.
[[nodiscard]] const char* why_no_keys() noexcept;

/// True if a write at `offset` of the guarded block would fault now, outside of any block_open.
[[nodiscard]] bool is_closed(u64 offset) noexcept;
/// The guarded block; null if no block is guarded.
[[nodiscard]] const control_block* guarded_block() noexcept;
/// Opens the block for this thread permanently; may be called in a signal handler.
void open_block_for_good() noexcept;

namespace guard_state {
extern std::atomic<bool> closes;  ///< set once, before the process has threads that write into the block
void enter() noexcept;
void leave() noexcept;
}  // namespace guard_state

/// Number of outermost scopes that this thread has begun since the block was guarded; each scope costs two
/// writes of the thread's rights.
[[nodiscard]] u64 scopes_of_this_thread() noexcept;
/// True if this thread is inside a scope.
[[nodiscard]] bool is_open_here() noexcept;

/// Opens the guarded pages to this thread as long as the object exists.
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
    bool counted_;  ///< whether this scope is counted: a scope that began before the guard was set must not
                    ///< close the pages at its end
};

/// A scope that begins at the first write, if there is one; for functions that mostly read.
class block_open_late {
public:
    void now() noexcept {
        if (!open_) open_.emplace();
    }

private:
    std::optional<block_open> open_;
};

/// A scope over several consecutive functions of the ring, with interruptions for the code between them.
class block_open_between {
public:
    /// Runs `work` outside of this scope; `work` is a stage's own code, or a wait.
    template <typename F>
    void leave_for(F&& work) {
        open_.reset();
        work();
        open_.emplace();
    }

private:
    std::optional<block_open> open_{std::in_place};
};

// Maps an offset in the control block to the object that lies there, for reports of wild writes.

/// The numeric values are stored in a word (ring/exit_notes.hpp) and must not change.
enum class block_part : u8 {
    head = 0,  ///< identity, sizes, END, the supervisor's own words; static, or written by the supervisor
    pace = 1,  ///< the time when the next frame is due
    parameters = 2,  ///< the parameter sets, and the first frame to which each set applies
    stage = 3,  ///< a stage's description; `index` is the index of the stage; in the parts below, it is the
                ///< index of the part's own object
    doorbell = 4,      ///< of a stage
    telemetry = 5,     ///< a stage's counters
    seat = 6,          ///< the process on a seat
    seat_asked = 7,    ///< the requests to a seat, and its bell
    ring = 8,          ///< a ring's description
    ring_words = 9,    ///< a ring's tail, slots, groups, event tags
    source = 10,       ///< a source's description
    numbers = 11,      ///< a source's lap words and claim
    asset = 12,        ///< description and state of an asset
    turn = 13,         ///< a GPU's token
    jobs = 14,         ///< the job words of all seats
    job_records = 15,  ///< timestamps and the sequence of each job
    entry = 16,        ///< the entry of an incarnation
    events = 17,       ///< event handles of an incarnation
    headers = 18,      ///< frame headers of a ring
};

struct block_place {
    block_part part = block_part::head;
    u32 index = 0;   ///< index of the stage, ring, incarnation ...
    u64 offset = 0;  ///< in that part
};

/// Returns the part at `offset`, which must be below sizeof(control_block).
[[nodiscard]] block_place place_in_block(u64 offset) noexcept;

}  // namespace carousel::shm
