#include "shm/block_parts.hpp"

#include <cstddef>

namespace carousel::shm {
namespace {

/// A table with rows of one size; each row has up to three parts.
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
