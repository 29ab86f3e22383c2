#pragma once
// A pool between processes: one region of memory that consists of units of one size. A block consists of
// consecutive units and has one owner.
//   unit word   {serial, epoch, state}   the first unit of a block names its owner:
//     FREE -> CLAIMING(s, e) -> OWNED(s, e) -> LEAVING(s, e) -> FREE
//     OWNED(s, e) -> IN_QUEUE(t) -> OWNED(t, f)     through a cell that names it
//   the others  {first unit, 0, BODY}    FREE -> BODY -> FREE, changed only by the owner of the first
//   serial      every claim and every transfer has a number of its own, so a stale name of a block
//               never matches
// Allocation is first fit. A client claims the first unit of a block, then the others in ascending order; it
// frees them in descending order, the first unit last. So as long as any unit belongs to a block, the block's
// first unit shows that the block exists. The block's length need not be stored: the block contains all
// consecutive units that name its first unit. There is no list and no lock: at every instant the FREE units
// are the free room. A crash during a claim or a release leaves a first unit that is CLAIMING or LEAVING, and
// some of its BODY units; the repair frees these units. If two claims overlap, they collide at one unit: the
// claim that finds this unit taken gives its units back and continues the search after this unit.
// clang-format off
// step                          | a crash right after it leaves            | repaired by
// a serial is drawn             | a number that no block has               | not needed
// FREE -> CLAIMING, BODY, BODY  | part of a block                          | repair: freed downwards
// CLAIMING -> OWNED             | a block                                  | repair: LEAVING, then freed; but
//                               |                                          | IN_QUEUE if a published cell
//                               |                                          | names it
// OWNED -> LEAVING, -> FREE ... | part of a block                          | repair: continues
// the first unit -> FREE        | no waiter woken                          | repair rings; sleeps are 100 ms
// repair, interrupted anywhere  | OWNED, IN_QUEUE or LEAVING as above      | the next holder repairs again
// clang-format on
// The blocks of a dead client stay OWNED until the client's fence. This is their quarantine, because the
// client may still write to them.
// Memory order: a unit is freed by a CAS (acq_rel) after its owner's last write, and claimed by a CAS before
// the next owner's first write, so the writes of the two never overlap.

#include <cstring>
#include <optional>
#include <vector>

#include "core/types.hpp"
#include "ipc/queue.hpp"
#include "ipc/words.hpp"

namespace carousel::ipc {

enum class unit_state : u8 { free, claiming, owned, leaving, in_queue, body };
using unit_word = owner_word<unit_state>;

struct pool_block {
    /// Both are written once. `offset` is the distance in bytes from the start of the space to unit 0.
    u64 unit_bytes, offset;
    u32 units, reserved;
    shm::doorbell_word bell;
    alignas(64) word serial;
    // followed by the unit words
    [[nodiscard]] word* unit() { return reinterpret_cast<word*>(this + 1); }
    [[nodiscard]] static u64 bytes(u32 units) { return sizeof(pool_block) + u64{units} * sizeof(word); }
    void make(u32 number, u64 bytes_each, u64 memory) {
        units = number, unit_bytes = bytes_each, offset = memory;
    }
};
static_assert(sizeof(pool_block) == 192);

/// A block that this client owns.
struct block {
    u32 unit = 0, units = 0;
    u64 serial = 0;
};
/// The name by which a cell refers to the block that it contains.
struct block_ref {
    u64 unit = 0, before = 0, after = 0;  ///< serials of the block: it has `before` while the sender owns it,
                                          ///< and `after` while the cell or the receiver owns it
};
struct pool_use {
    u32 units = 0, free = 0, largest_free = 0;  ///< largest_free: the longest free run
    u32 blocks = 0;                             ///< owned
    u32 in_queue = 0;                           ///< carried by cells
};

class pool {
public:
    pool(pool_block& b, u32 epoch) : b_(&b), epoch_(epoch) {}
    /// Returns nothing if no run of `units` units is free.
    [[nodiscard]] std::optional<block> try_acquire(u32 units);
    /// Waits at most timeout_ns. Requests are not served in order: large blocks may wait longer than small
    /// ones.
    [[nodiscard]] std::optional<block> acquire(u32 units, u64 timeout_ns);
    /// Returns false if this client doesn't own the block (any more).
    bool release(const block& k);
    [[nodiscard]] u64 offset(const block& k) const { return b_->offset + k.unit * b_->unit_bytes; }
    [[nodiscard]] u32 units_for(u64 bytes) const {
        const u64 n = div_ceil(bytes, b_->unit_bytes);
        return n == 0 ? 1 : n > b_->units ? b_->units + 1 : static_cast<u32>(n);
    }
    /// The result is not a snapshot, because other processes continue meanwhile.
    [[nodiscard]] pool_use use() const;
    /// The epochs of the owners, one entry per block.
    [[nodiscard]] std::vector<u32> owners() const;

    // ---- transfers, described below
    /// Returns the name by which a cell can refer to the block. The block still belongs to its owner.
    [[nodiscard]] block_ref name(const block& k);
    /// Called after the cell is published. Returns false if a receiver already has the block.
    bool transfer(const block_ref& r);
    /// Called by the client that has leased the cell which names the block. Returns nothing if there is no
    /// such block, which means that the cell is damaged.
    [[nodiscard]] std::optional<block> take(const block_ref& r);

private:
    [[nodiscard]] u64 draw();
    [[nodiscard]] std::optional<block> claim(u32 first, u32 units, u64 serial, u32& reached);
    pool_block* b_;
    u32 epoch_;
};

/// True if the block still belongs to the client that had it with that serial. Data of the block that was
/// read before this call is then the data of that client.
[[nodiscard]] bool is_owned(pool_block& b, const block& k, u32 by);

/// Called after the fence of `dead`. `named` contains the blocks of this pool that published cells name; it
/// is gathered after the fence, and after the queues with these cells are repaired. May be repeated.
void repair(pool_block& b, u32 dead, const std::vector<block_ref>& named);

// Sends blocks of a pool through a queue. The element of such a queue begins with a block_ref. In transit,
// the block belongs to the cell, so the block has one owner at every instant.
// clang-format off
// step                                  | a crash right after it leaves         | repaired by
// send: the cell READY, names it        | the sender owns it, the cell names it | pool repair: the cell owns it
// send: OWNED(before) -> IN_QUEUE(after)| the cell owns it                      | not needed
// receive: the cell LEASED              | the cell owns it                      | queue repair: READY
// receive: IN_QUEUE, OWNED -> OWNED(f)  | the receiver owns it, the cell still  | queue repair: READY;
//                                       | names it                              | pool repair: the cell owns it
// receive: the cell -> FREE             | only the receiver owns it             | pool repair: freed
// clang-format on
// The cell is published before the block's word changes, and freed after that change. So when the owner of a
// block dies, either a published cell names the block, or no process owns it. The serials (`before`, `after`)
// prevent a slow sender's change from affecting the block once a receiver has it.

/// `element` has the size of the queue's elements and begins with a block_ref, which try_send() fills in.
/// Returns false if the queue is full; the sender then keeps the block.
bool try_send(pool& from, const block& k, queue& to, void* element);
/// Returns nothing if the queue is empty. Also returns nothing, and sets `damaged`, if the element does not
/// name a block.
[[nodiscard]] std::optional<block> try_receive(queue& from, pool& to, void* element, bool* damaged = nullptr);
/// Collects the blocks that the queue's published cells name.
void gather_named(queue_block& b, std::vector<block_ref>& named);

}  // namespace carousel::ipc
