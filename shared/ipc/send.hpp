#pragma once
// Blocks of a pool that travel through a queue: the element begins with a block_ref, the block belongs to the
// cell on its way, and is owned once at every instant.
//
// step                                | a death right behind it leaves        | who mends it
// give: the cell READY, names it      | the giver owns it, the cell names it  | mend of the pool: the cell's
// give: OWNED(before) -> GIVEN(after) | the cell's                            | nobody needs to
// receive: the cell LEASED            | the cell's                            | mend of the queue: READY
// receive: GIVEN, OWNED -> OWNED(f)   | the receiver owns it, the cell names  | mend of the queue: READY;
// mend of
//                                     | it still                              | the pool: the cell's
// receive: the cell -> FREE           | the receiver's alone                  | mend of the pool: freed
//
// The cell is published before the block's word changes, and freed behind it: a block whose owner dies is
// named by a published cell, or nobody has a claim to it. Serials (`before`, `after`) keep a slow giver's
// change from touching the block once a receiver has it.

#include <cstring>

#include "ipc/pool.hpp"
#include "ipc/queue.hpp"

namespace carousel::ipc {

/// `element`: of the queue's size, a block_ref in front, which is filled in. False: the queue is full, the
/// block stays the giver's.
bool try_send(pool& from, const block& k, queue& to, void* element);
/// Empty: there is nothing, or (`damaged`) what came names no block.
[[nodiscard]] std::optional<block> try_receive(queue& from, pool& to, void* element, bool* damaged = nullptr);
/// What the published cells of the queue name.
void gather_named(queue_block& b, std::vector<block_ref>& named);

}  // namespace carousel::ipc
