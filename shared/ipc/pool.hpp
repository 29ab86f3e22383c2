#pragma once
// A pool between processes: one piece of memory in units of one size, and blocks of some units each, every
// block with one owner.
//
//   unit word   {serial, epoch, state}   the first unit of a block says whose it is:
//     FREE -> CLAIMING(s, e) -> OWNED(s, e) -> LEAVING(s, e) -> FREE
//     OWNED(s, e) -> GIVEN(t) -> OWNED(t, f)     by way of a cell that names it (send.hpp)
//   the others  {first unit, 0, BODY}    FREE -> BODY -> FREE, changed by the owner of the first alone
//   serial      every claim and every gift has a number of its own, so no name of a block ever fits again
//
// First fit. A block is claimed first unit first, the others upwards; it is freed downwards, first unit last.
// So while any unit belongs to a block its first one says so, and how long the block is needn't be kept: it
// goes on for as long as the units name its first one. No list, no lock: free room is what is FREE, at every
// instant, and a death in the middle leaves a first unit that is CLAIMING or LEAVING and the rest of its
// body, which whoever mends walks again. Two that claim the same room meet at one unit: the later one gives
// back what it has and looks further up.
//
// step                          | a death right behind it leaves           | who mends it
// a serial is drawn             | a number that nobody bears               | nobody needs to
// FREE -> CLAIMING, BODY, BODY  | part of a block                          | mend: freed downwards
// CLAIMING -> OWNED             | a block                                  | mend: LEAVING, then freed; but
//                               |                                          | GIVEN if a published cell names
//                               it
// OWNED -> LEAVING, -> FREE ... | part of a block                          | mend: goes on
// the first unit -> FREE        | nobody woken                             | mend rings; sleeps are 100 ms
// mend, cut off anywhere        | OWNED, GIVEN or LEAVING as above         | the next holder mends again
//
// Before the fence a dead one's blocks stay OWNED: that is their quarantine, for the dead may still write.
//
// Memory order: a unit is freed by a CAS (acq_rel) behind its owner's last write, and claimed by a CAS before
// the next owner's first one: the writes of one don't meet those of the other.

#include <optional>
#include <vector>

#include "core/checked.hpp"
#include "ipc/words.hpp"

namespace carousel::ipc {

enum class unit_state : u8 { free, claiming, owned, leaving, in_queue, body };
using unit_word = owner_word<unit_state>;

struct pool_block {
    u64 unit_bytes, offset;  ///< written once: where unit 0 begins, in bytes from the beginning of the space
    u32 units, reserved;
    shm::doorbell_word bell;
    alignas(64) word serial;
    // unit words
    [[nodiscard]] word* unit() { return reinterpret_cast<word*>(this + 1); }
    [[nodiscard]] static u64 bytes(u32 units) { return sizeof(pool_block) + u64{units} * sizeof(word); }
    void make(u32 number, u64 bytes_each, u64 memory) {
        units = number, unit_bytes = bytes_each, offset = memory;
    }
};
static_assert(sizeof(pool_block) == 192);

/// A block that this life owns.
struct block {
    u32 unit = 0, units = 0;
    u64 serial = 0;
};
/// What a cell says of the block it carries.
struct block_ref {
    u64 unit = 0, before = 0, after = 0;  ///< its serial with the giver, and with the cell and the receiver
};
struct pool_use {
    u32 units = 0, free = 0, largest_free = 0;  ///< largest_free: the longest run
    u32 blocks = 0;                             ///< owned
    u32 in_queue = 0;                           ///< that cells carry
};

class pool {
public:
    pool(pool_block& b, u32 epoch) : b_(&b), epoch_(epoch) {}
    /// Empty: no run of so many units is free.
    [[nodiscard]] std::optional<block> try_acquire(u32 units);
    /// At most so long. Not in order: large blocks may wait longer than small ones.
    [[nodiscard]] std::optional<block> acquire(u32 units, u64 timeout_ns);
    /// False: this life doesn't own it (any more).
    bool release(const block& k);
    [[nodiscard]] u64 offset(const block& k) const { return b_->offset + k.unit * b_->unit_bytes; }
    [[nodiscard]] u32 units_for(u64 bytes) const {
        const u64 n = div_ceil(bytes, b_->unit_bytes);
        return n == 0 ? 1 : n > b_->units ? b_->units + 1 : static_cast<u32>(n);
    }
    /// No snapshot: others go on meanwhile.
    [[nodiscard]] pool_use use() const;
    /// The epochs of those who own blocks, one each.
    [[nodiscard]] std::vector<u32> owners() const;

    // ---- gifts, see send.hpp
    /// The name under which a cell is to carry the block. The block stays its owner's.
    [[nodiscard]] block_ref name(const block& k);
    /// Behind the publication of the cell. False: a receiver has it already.
    bool transfer(const block_ref& r);
    /// For who has leased the cell that names it. Empty: no such block; the cell is damaged.
    [[nodiscard]] std::optional<block> take(const block_ref& r);

private:
    [[nodiscard]] u64 draw();
    [[nodiscard]] std::optional<block> claim(u32 first, u32 units, u64 serial, u32& reached);
    pool_block* b_;
    u32 epoch_;
};

/// Behind the fence of `dead`. `named`: what published cells of this pool name, gathered behind the fence and
/// behind the mend of those queues. May be repeated.
void repair(pool_block& b, u32 dead, const std::vector<block_ref>& named);

}  // namespace carousel::ipc
