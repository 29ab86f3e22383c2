// The hash of a plane on the CPU: all threads share its blocks.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "device/cpu/pool.hpp"
#include "kernels/body/block_hash.hpp"
#include "kernels/cpu/entries.hpp"

namespace carousel::kernels::cpu {
namespace {

constexpr u64 blocks_at_once = 32;

/// A block's bytes in contiguous memory: in place if the block is whole and the plane dense, else gathered
/// into `room` and padded with zeros.
const unsigned char* block_of(const body::hash_view& in, u64 index, unsigned char* room) {
    const u64 begin = index * body::hash_block_bytes,
              end = std::min(in.bytes(), begin + body::hash_block_bytes);
    if (in.dense() && end - begin == body::hash_block_bytes) return in.data + begin;
    std::memset(room, 0, body::hash_block_bytes);
    for (u64 at = begin; at < end;) {
        const u64 in_row = in.dense() ? at : at % in.row_bytes;
        const u64 row = in.dense() ? 0 : at / in.row_bytes;
        const u64 count = std::min(end - at, (in.dense() ? in.bytes() : in.row_bytes) - in_row);
        std::memcpy(room + (at - begin), in.data + row * in.pitch + in_row, count);
        at += count;
    }
    return room;
}

}  // namespace

void run_hash_plane(device::cpu::pool& pool, const hash_args& args, const entries& use) {
    const body::hash_view in{reinterpret_cast<const unsigned char*>(args.data), args.row_bytes, args.rows,
                             args.pitch};
    std::atomic<u64> sum{0};
    pool.parallel_for(in.blocks(), blocks_at_once, [&](u64 begin, u64 end, unsigned) {
        alignas(64) unsigned char room[body::hash_block_bytes];
        u64 part = 0;
        for (u64 b = begin; b < end; ++b)
            part += body::hash_block(use.hash_columns_of(block_of(in, b, room)), b);
        sum.fetch_add(part, std::memory_order_relaxed);
    });
    *args.out = body::hash_finished(sum.load(std::memory_order_relaxed), in.bytes());
}

void hash_plane(device::queue& q, const hash_args& args) {
    q.submit([args](device::cpu::pool& pool) { run_hash_plane(pool, args, best_entries()); });
}

}  // namespace carousel::kernels::cpu
