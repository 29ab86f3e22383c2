#include "ipc/space_block.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/errors.hpp"
#include "core/types.hpp"
#include "ipc/gpu_layout.hpp"
#include "ipc/pool.hpp"
#include "ipc/semaphore.hpp"
#include "ipc/step.hpp"
#include "ipc/work_queue.hpp"

namespace carousel::ipc {
namespace {

constexpr u64 page = 4096;
constexpr u64 most_cells = u64{1} << 22, most_bytes_each = u64{1} << 20, most_units = u64{1} << 20;

// Size of the primitive's words; the memory of a pool is not included.
u64 words_of(const shape& s) {
    switch (s.what) {
        case kind::semaphore:
            return semaphore_block::bytes(static_cast<u32>(s.count));
        case kind::queue:
            return queue_block::bytes(static_cast<u32>(s.count), static_cast<u32>(s.each));
        case kind::work_queue:
            return work_queue_block::bytes(static_cast<u32>(s.count), static_cast<u32>(s.each));
        case kind::pool:
        case kind::gpu_pool:
            return pool_block::bytes(static_cast<u32>(s.count / s.each));
        case kind::gpu_queue:
        case kind::gpu_work_queue:
        case kind::none:
            break;
    }
    return 0;
}

u64 gpu_bytes_of(const shape& s) {
    if (s.what == kind::gpu_pool) return s.count;
    if (s.what == kind::gpu_queue) return gpu_queue_bytes(s.count, static_cast<u32>(s.each));
    return s.what == kind::gpu_work_queue ? gpu_work_queue_bytes(s.count, static_cast<u32>(s.each)) : 0;
}

u64 bytes_of(const shape& s) {
    return s.what == kind::pool ? add_sat(round_up_sat(words_of(s), page), s.count)
                                : round_up_sat(words_of(s), 64);
}

u64 gpu_end(const space_block& s) {
    u64 end = 0;
    for (const directory_entry& e : s.place)
        if (place_word::of(load(e.state)).state == place_state::ready)
            end = std::max(end, add_sat(e.gpu_offset, e.gpu_bytes));
    return end;
}

u64 arena_end(const space_block& s) {
    u64 end = round_up_sat(sizeof(space_block), page);
    for (const directory_entry& e : s.place)
        if (place_word::of(load(e.state)).state == place_state::ready)
            end = std::max(end, add_sat(e.offset, e.bytes));
    return end;
}

void make_words(space_block& s, u32 k, const shape& w) {
    const auto count = static_cast<u32>(w.count), each = static_cast<u32>(w.each);
    switch (w.what) {
        case kind::semaphore:
            s.block_of<semaphore_block>(k).make(count);
            break;
        case kind::queue:
            s.block_of<queue_block>(k).make(count, each, static_cast<u32>(w.more));
            break;
        case kind::work_queue:
            s.block_of<work_queue_block>(k).make(count, each, static_cast<u32>(w.more));
            break;
        case kind::pool:
            s.block_of<pool_block>(k).make(static_cast<u32>(w.count / w.each), w.each,
                                           s.place[k].offset + round_up_sat(words_of(w), page));
            break;
        case kind::gpu_pool:
            s.block_of<pool_block>(k).make(static_cast<u32>(w.count / w.each), w.each, s.place[k].gpu_offset);
            break;
        case kind::gpu_queue:  // the GPU memory is zeroed, so the queue is empty
        case kind::gpu_work_queue:
        case kind::none:
            break;
    }
}

[[noreturn]] void refuse(const std::string& name, const shape& s, const std::string& why) {
    throw config_error(fmt::format("\"{}\" as {}: {}", name, text_of(s), why));
}

}  // namespace

const char* name_of(kind k) noexcept {
    constexpr const char* names[] = {"nothing",
                                     "semaphore",
                                     "queue",
                                     "work queue",
                                     "pool",
                                     "GPU pool",
                                     "queue on the GPU",
                                     "work queue on the GPU"};
    return static_cast<u8>(k) < std::size(names) ? names[static_cast<u8>(k)] : "?";
}

std::string text_of(const shape& s) {
    switch (s.what) {
        case kind::semaphore:
            return fmt::format("a semaphore of {} permits", s.count);
        case kind::queue:
            return fmt::format("a queue of {} elements of {} bytes{}", s.count, s.each,
                               s.more == 0 ? "" : ", which carry blocks of a pool");
        case kind::work_queue:
            return fmt::format("a work queue of {} tasks of {} bytes and {} attempts", s.count, s.each,
                               s.more);
        case kind::pool:
            return fmt::format("a pool of {} bytes in units of {}", s.count, s.each);
        case kind::gpu_pool:
            return fmt::format("a GPU pool of {} bytes in units of {}", s.count, s.each);
        case kind::gpu_queue:
            return fmt::format("a queue on the GPU of {} elements of {} bytes", s.count, s.each);
        case kind::gpu_work_queue:
            return fmt::format("a work queue on the GPU of {} tasks of {} bytes and {} attempts", s.count,
                               s.each, s.more);
        case kind::none:
            break;
    }
    return "nothing";
}

void check_shape(const std::string& name, const shape& s) {
    const bool plain = std::all_of(name.begin(), name.end(), [](char c) { return c >= ' ' && c <= '~'; });
    if (name.empty() || name.size() > longest_name || !plain)
        refuse(name, s, fmt::format("expected a name of 1 to {} printable characters", longest_name));
    const bool cells = s.count >= 1 && s.count <= most_cells && s.each >= 1 && s.each <= most_bytes_each;
    switch (s.what) {
        case kind::semaphore:
            if (s.count < 1 || s.count > max_permits)
                refuse(name, s, fmt::format("expected 1 to {} permits", max_permits));
            return;
        case kind::work_queue:
        case kind::gpu_work_queue:
            if (s.more < 1 || s.more > most_attempts)
                refuse(name, s, fmt::format("expected 1 to {} attempts per task", most_attempts));
            [[fallthrough]];
        case kind::gpu_queue:
        case kind::queue:
            if (!cells)
                refuse(name, s,
                       fmt::format("expected 1 to {} places of 1 to {} bytes", most_cells, most_bytes_each));
            if (s.what == kind::queue && s.more != 0 && s.each < sizeof(block_ref))
                refuse(name, s, "an element that carries a block must begin with a block_ref");
            return;
        case kind::pool:
        case kind::gpu_pool:
            if (s.each < page || s.each % page != 0 || s.count % s.each != 0 || s.count / s.each < 1 ||
                s.count / s.each > most_units)
                refuse(name, s,
                       fmt::format("expected 1 to {} units of equal size, which is a multiple of {} bytes",
                                   most_units, page));
            return;
        case kind::none:
            break;
    }
    refuse(name, s, "unknown kind of primitive");
}

void require_shape(const space_block& s, u32 place, const shape& wanted) {
    shape have = s.place[place].shaped();
    const bool same = have.type == wanted.type || have.type == 0 || wanted.type == 0;
    have.type = wanted.type;
    if (have == wanted && !same)
        throw config_error(fmt::format(
            "\"{}\" exists as {}, but with another type than requested: use the same struct in all "
            "programs, or another name",
            s.place[place].name, text_of(have)));
    if (have != wanted)
        throw config_error(
            fmt::format("\"{}\" exists as {}, but {} was requested: use the existing one, or another name",
                        s.place[place].name, text_of(have), text_of(wanted)));
}

u32 find_place(const space_block& s, const std::string& name) {
    for (u32 k = 0; k < max_primitives; ++k)
        if (place_word::of(load(s.place[k].state)).state == place_state::ready && name == s.place[k].name)
            return k;
    return no_place;
}

u32 make_place(space_block& s, const std::string& name, const shape& wanted) {
    check_shape(name, wanted);
    if (const u32 k = find_place(s, name); k != no_place) {
        require_shape(s, k, wanted);
        return k;
    }
    if (wanted.what == kind::queue && wanted.more != 0 &&
        (wanted.more > max_primitives || !is_pool(s.place[wanted.more - 1].shaped().what)))
        refuse(name, wanted, "there is no such pool");
    u32 k = 0;
    while (k < max_primitives && place_word::of(load(s.place[k].state)).state != place_state::empty) ++k;
    if (k == max_primitives)
        refuse(name, wanted, fmt::format("the space already has {} primitives, which is the limit", k));
    const u64 begin = arena_end(s), size = round_up_sat(bytes_of(wanted), page);
    if (!is_within(begin, size, s.bytes))
        refuse(name, wanted,
               fmt::format("it needs {} KiB, but the space has {} KiB left: hold a larger space (carousel "
                           "hold {} --size; of a run: space_mib in its file)",
                           size / 1024, (s.bytes - std::min(begin, s.bytes)) / 1024, s.name));
    const u64 gpu_begin = round_up_sat(gpu_end(s), page), gpu_size = gpu_bytes_of(wanted);
    if (gpu_size > 0 && s.gpu_bytes == 0)
        refuse(name, wanted,
               fmt::format("the space has no GPU memory: hold it with GPU memory (carousel hold {} --device "
                           "cuda:0); the space of a running pipeline has none",
                           s.name));
    if (gpu_size > 0 && !is_within(gpu_begin, gpu_size, s.gpu_bytes))
        refuse(name, wanted,
               fmt::format("it needs {} KiB of GPU memory, but the space has {} KiB left: hold a larger "
                           "space (carousel hold {} --device-size)",
                           gpu_size / 1024, (s.gpu_bytes - std::min(gpu_begin, s.gpu_bytes)) / 1024, s.name));
    directory_entry& e = s.place[k];
    e.offset = begin, e.bytes = size;
    e.gpu_offset = gpu_size == 0 ? 0 : gpu_begin, e.gpu_bytes = gpu_size;
    e.what = static_cast<u64>(wanted.what), e.count = wanted.count, e.each = wanted.each,
    e.more = wanted.more, e.type = wanted.type;
    std::memset(e.name, 0, sizeof e.name);
    name.copy(e.name, longest_name);
    // Clears this memory, because a previous holder may have died while it created another primitive here; no
    // process has seen that primitive.
    std::memset(s.at(begin), 0, round_up_sat(words_of(wanted), 64));
    make_words(s, k, wanted);
    const u64 before = load(e.state);
    (void)cas(e.state, before, place_word{place_word::of(before).count + 1, 0, place_state::ready}.pack());
    shm::ring(s.bell);
    return k;
}

void repair_all(space_block& s, u32 dead) {
    // Queues are repaired before pools, because a published cell is authoritative for the owner of the block
    // that it names.
    for (u32 k = 0; k < max_primitives; ++k) {
        const directory_entry& e = s.place[k];
        if (place_word::of(load(e.state)).state != place_state::ready) continue;
        if (e.shaped().what == kind::semaphore) repair(s.block_of<semaphore_block>(k), dead);
        if (e.shaped().what == kind::work_queue) repair(s.block_of<work_queue_block>(k), dead);
        if (e.shaped().what == kind::queue) repair(s.block_of<queue_block>(k), dead);
    }
    for (u32 pool = 0; pool < max_primitives; ++pool) {
        if (place_word::of(load(s.place[pool].state)).state != place_state::ready ||
            !is_pool(s.place[pool].shaped().what))
            continue;
        std::vector<block_ref> refs;
        for (u32 k = 0; k < max_primitives; ++k)
            if (place_word::of(load(s.place[k].state)).state == place_state::ready &&
                s.place[k].shaped().what == kind::queue && s.place[k].more == pool + 1)
                gather_named(s.block_of<queue_block>(k), refs);
        repair(s.block_of<pool_block>(pool), dead, refs);
    }
}

bool has_gpu_words(const space_block& s) {
    return std::any_of(std::begin(s.place), std::end(s.place), [](const directory_entry& e) {
        return place_word::of(load(e.state)).state == place_state::ready && has_gpu_words(e.shaped().what);
    });
}

}  // namespace carousel::ipc
