#include "shm/block_guard.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <mutex>

#include "core/errors.hpp"

namespace carousel::shm {
namespace {

/// An array of equally sized elements (rows) in the control block; each row consists of up to three parts.
struct rows {
    u64 from, row_bytes, count;
    block_part first, second, third;
    u64 second_at, third_at;
};

constexpr u64 nowhere = ~u64{0};

constexpr rows all_rows[] = {
    {offsetof(control_block, stage), sizeof(stage_block), max_stages, block_part::stage, block_part::doorbell,
     block_part::telemetry, offsetof(stage_block, doorbell), offsetof(stage_block, counters)},
    {offsetof(control_block, seat), sizeof(seat_block), max_seats, block_part::seat, block_part::seat_asked,
     block_part::seat_asked, offsetof(seat_block, fault), nowhere},
    {offsetof(control_block, link), sizeof(link_block), max_links, block_part::ring, block_part::ring_words,
     block_part::ring_words, offsetof(link_block, tail), nowhere},
    {offsetof(control_block, source), sizeof(source_block), max_sources, block_part::source,
     block_part::numbers, block_part::numbers, offsetof(source_block, ended), nowhere},
    {offsetof(control_block, asset), sizeof(asset_block), max_assets, block_part::asset, block_part::asset,
     block_part::asset, nowhere, nowhere},
    {offsetof(control_block, turn), sizeof(turn_block), max_turns, block_part::turn, block_part::turn,
     block_part::turn, nowhere, nowhere},
    {offsetof(control_block, job), sizeof(control_block::job), 1, block_part::jobs, block_part::jobs,
     block_part::jobs, nowhere, nowhere},
    {offsetof(control_block, job_info), sizeof(control_block::job_info), 1, block_part::job_records,
     block_part::job_records, block_part::job_records, nowhere, nowhere},
    {offsetof(control_block, entry), sizeof(incarnation), max_incarnations, block_part::entry,
     block_part::entry, block_part::entry, nowhere, nowhere},
    {offsetof(control_block, event_handle), sizeof(control_block::event_handle) / max_incarnations,
     max_incarnations, block_part::events, block_part::events, block_part::events, nowhere, nowhere},
    {offsetof(control_block, frames), sizeof(frame_segment), max_links, block_part::headers,
     block_part::headers, block_part::headers, nowhere, nowhere},
};

}  // namespace

namespace guard_state {
std::atomic<bool> closes{false};
}  // namespace guard_state

namespace {

constexpr std::size_t most_ranges = 128;

// Written by guard_block(), before it stores `block` and `closes` (release); after that it is only read, also
// by signal handlers, until forget_block().
std::array<page_range, most_ranges> own_ranges;
std::size_t ranges = 0;
int key = -1;
std::atomic<control_block*> block{nullptr};
std::atomic<block_guard> how{block_guard::off};

thread_local u32 depth = 0;  ///< nesting depth of this thread's scopes; only the outermost scope changes the
                             ///< thread's rights
thread_local u64 outermost = 0;

// Used only for block_guard::emulated. In this mode the rights are those of the whole process, so the scopes
// of all threads are counted together.
std::mutex emulation;
u32 open_scopes = 0;
std::atomic<bool> open_for_good{false};

[[noreturn]] void refused(const char* call, u64 bytes) {
    throw shm_error(fmt::format("setting the permissions of {} KiB of the control block ({}): {}",
                                bytes / 1024, call, errno_text(errno)));
}

std::byte* at(control_block& c, u64 offset) noexcept { return reinterpret_cast<std::byte*>(&c) + offset; }

void set_rights(control_block& c, const page_range& r, int rights) {
    if (::mprotect(at(c, r.from), r.bytes, rights) != 0) refused("mprotect", r.bytes);
}

/// Async-signal-safe. A failure is ignored, since a caller could not handle it.
void emulate(int rights) noexcept {
    control_block* const c = block.load(std::memory_order_acquire);
    for (std::size_t k = 0; c != nullptr && k < ranges; ++k)
        (void)::mprotect(at(*c, own_ranges[k].from), own_ranges[k].bytes, rights);
}

struct probe {
    bool there = false;
    const char* why = "";
    probe() noexcept {
        const int got = ::pkey_alloc(0, 0);
        there = got >= 0;
        if (there)
            ::pkey_free(got);
        else
            why = errno == EPERM ? "they are forbidden here" : "the CPU or the kernel has none";
    }
};
const probe& probed() noexcept {
    static const probe p;
    return p;
}

bool take_key(control_block& c) {
    // closed to this thread and to threads that it creates later
    static const int first = ::pkey_alloc(0, PKEY_DISABLE_WRITE);
    key = first;
    if (key < 0) return false;
    for (std::size_t k = 0; k < ranges; ++k)
        if (::pkey_mprotect(at(c, own_ranges[k].from), own_ranges[k].bytes, PROT_READ | PROT_WRITE, key) != 0)
            refused("pkey_mprotect", own_ranges[k].bytes);
    return true;
}

}  // namespace

namespace guard_state {

void enter() noexcept {
    if (depth++ != 0) return;
    ++outermost;
    if (how.load(std::memory_order_relaxed) == block_guard::keys) {
        (void)::pkey_set(key, 0);
        return;
    }
    const std::lock_guard lock(emulation);
    if (open_scopes++ == 0) emulate(PROT_READ | PROT_WRITE);
}

void leave() noexcept {
    if (--depth != 0) return;
    if (how.load(std::memory_order_relaxed) == block_guard::keys) {
        (void)::pkey_set(key, PKEY_DISABLE_WRITE);
        return;
    }
    const std::lock_guard lock(emulation);
    if (--open_scopes == 0 && !open_for_good.load(std::memory_order_acquire)) emulate(PROT_READ);
}

}  // namespace guard_state

u64 scopes_of_this_thread() noexcept { return outermost; }
bool is_open_here() noexcept { return depth != 0; }

bool has_protection_keys() noexcept { return probed().there; }
const char* why_no_keys() noexcept { return probed().why; }

void guard_pages(control_block& c, std::span<const page_range> own) {
    set_rights(c, {0, word_bytes}, PROT_READ);
    open_pages(c, own);
}

void open_pages(control_block& c, std::span<const page_range> own) {
    for (const page_range& r : own) set_rights(c, r, PROT_READ | PROT_WRITE);
}

block_guard guard_block(control_block& c, std::span<const page_range> own, block_guard wanted) {
    if (wanted == block_guard::off) return block_guard::off;
    CAROUSEL_ASSERT(own.size() <= most_ranges && block.load(std::memory_order_relaxed) == nullptr);
    std::copy(own.begin(), own.end(), own_ranges.begin());
    ranges = own.size();
    guard_pages(c, own);
    block_guard is = wanted;
    if (wanted == block_guard::keys && !take_key(c)) is = block_guard::pages;
    block.store(&c, std::memory_order_release);
    how.store(is, std::memory_order_release);
    if (is == block_guard::emulated) emulate(PROT_READ);
    guard_state::closes.store(is != block_guard::pages, std::memory_order_release);
    return is;
}

void forget_block() noexcept {
    guard_state::closes.store(false, std::memory_order_release);
    how.store(block_guard::off, std::memory_order_release);
    block.store(nullptr, std::memory_order_release);
    ranges = 0;
}

bool is_closed(u64 offset) noexcept {
    const block_guard is = how.load(std::memory_order_acquire);
    if (is != block_guard::pages) return is != block_guard::off;
    return std::none_of(own_ranges.begin(), own_ranges.begin() + static_cast<std::ptrdiff_t>(ranges),
                        [&](const page_range& r) { return offset >= r.from && offset - r.from < r.bytes; });
}

const control_block* guarded_block() noexcept { return block.load(std::memory_order_acquire); }

void open_block_for_good() noexcept {
    switch (how.load(std::memory_order_acquire)) {
        case block_guard::keys:
            (void)::pkey_set(key, 0);
            return;
        case block_guard::emulated:
            open_for_good.store(true, std::memory_order_release);
            emulate(PROT_READ | PROT_WRITE);
            return;
        case block_guard::pages:
        case block_guard::off:
            return;
    }
}

block_place place_in_block(u64 offset) noexcept {
    for (const rows& r : all_rows) {
        if (offset < r.from || offset - r.from >= r.row_bytes * r.count) continue;
        const u32 index = static_cast<u32>((offset - r.from) / r.row_bytes);
        const u64 within = (offset - r.from) % r.row_bytes;
        if (within >= r.third_at) return {r.third, index, within - r.third_at};
        if (within >= r.second_at) return {r.second, index, within - r.second_at};
        return {r.first, index, within};
    }
    if (offset < offsetof(control_block, next_source_ns)) return {block_part::head, 0, offset};
    if (offset < offsetof(control_block, parameters))
        return {block_part::pace, 0, offset - offsetof(control_block, next_source_ns)};
    if (offset < offsetof(control_block, stage))
        return {block_part::parameters, 0, offset - offsetof(control_block, parameters)};
    return {block_part::head, 0, offset};  // unused rest of a page after the last row of a table
}

}  // namespace carousel::shm
