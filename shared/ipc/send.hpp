#pragma once
// Blocks of a pool that are sent through a queue: the element begins with a block_ref; in transit the block
// belongs to the cell. At every instant it has one owner.
//
// clang-format off
// step                                  | a crash right after it leaves         | repaired by
// send: the cell READY, names it        | the sender owns it, the cell names it | pool repair: the cell's
// send: OWNED(before) -> IN_QUEUE(after)| the cell's                            | not needed
// receive: the cell LEASED              | the cell's                            | queue repair: READY
// receive: IN_QUEUE, OWNED -> OWNED(f)  | the receiver owns it, the cell still  | queue repair: READY;
//                                       | names it                              | pool repair: the cell's
// receive: the cell -> FREE             | the receiver's alone                  | pool repair: freed
// clang-format on
//
// The cell is published before the block's word changes, and freed after it: a block whose owner dies is
// named by a published cell, or no process owns it. The serials (`before`, `after`) prevent a slow sender's
// change from affecting the block once a receiver has it.

#include <cstring>

#include "ipc/pool.hpp"
#include "ipc/queue.hpp"

namespace carousel::ipc {

/// `element`: has the size of the queue's elements and starts with a block_ref, which is filled in. Returns
/// false if the queue is full; the sender then keeps the block.
bool try_send(pool& from, const block& k, queue& to, void* element);
/// Empty if the queue is empty, or, with `damaged` set, if the element names no block.
[[nodiscard]] std::optional<block> try_receive(queue& from, pool& to, void* element, bool* damaged = nullptr);
/// Collects the blocks that the queue's published cells name.
void gather_named(queue_block& b, std::vector<block_ref>& named);

}  // namespace carousel::ipc
