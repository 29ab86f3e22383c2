#pragma once
// A queue between processes, of elements of one size, with many producers and many consumers.
//
//   cell word   {lap, epoch, state}    ticket t is in cell t mod N, in lap t / N
//     FREE(l) -> CLAIMED(l, e) -> READY(l) -> POPPING(l, e) or LEASED(l, e) -> FREE(l + 1)
//     CLAIMED of a dead client -> TOMB(l) -> FREE(l + 1)       the cell is empty and can be reused
//     POPPING of a dead client -> LOST(l) -> FREE(l + 1)       it is counted: it may have been processed
//     LEASED of a dead client, or given back -> READY(l)
//   head, tail  hints at which a search begins; the cells are authoritative
//
// A claim is a CAS that stores the claimer's epoch in a cell, so it is always known which client has claimed
// a cell. try_pop delivers at most once: elements that a dead process had taken are counted in lost(). lease
// and commit deliver at least once: elements that a dead process had leased are delivered again, and
// committed once.
//
// Order: a consumer takes the first READY cell in the order of tickets. The consumer doesn't skip a CLAIMED
// cell, because the producer of that cell may have published further elements in later cells meanwhile. So
// consumers take the elements of one producer (one thread) in the order in which the producer pushed them;
// only redelivered elements are out of order. A producer that pauses between its claim and its publication
// blocks the elements in the following cells; claimers() returns the epoch of such a producer.
//
// clang-format off
// step                          | a crash right after it leaves         | repaired by
// FREE -> CLAIMED, the payload  | a cell that blocks the line           | repair: TOMB, counted, FREE(l + 1)
// CLAIMED -> READY              | an element; no waiter woken           | sleeps are 100 ms at most
// READY -> POPPING, the copy    | an element that no other process gets | repair: LOST, counted, FREE(l + 1)
// READY -> LEASED               | a lease                               | repair: READY
// POPPING, LEASED -> FREE(l+1)  | it is consumed; no waiter woken       | sleeps are 100 ms at most
// repair: -> TOMB, LOST         | a cell that is skipped                | the next holder counts and frees it
// repair: counted (count_once)  | the same; the tally names it          | the next holder frees it
// clang-format on
//
// Memory order: the payload is written between CLAIMED and READY, and read between POPPING or LEASED and
// FREE. Each of these transitions is a CAS (acq_rel) of the cell's word by the cell's owner, so a payload is
// read after it is written, and before the next lap's write.
//
// A queue may carry blocks of a pool. Then each element begins with a block_ref and must be leased, not
// popped (pool.hpp).

#include <optional>
#include <type_traits>
#include <vector>

#include "ipc/queue_body.hpp"
#include "ipc/step.hpp"

namespace carousel::ipc {

struct queue_block {
    u32 capacity, element_bytes;  ///< written once, before any other process sees the block
    u32 pool;                     ///< 0: plain elements; else 1 + the pool's place in the directory
    u32 reserved;
    shm::doorbell_word bell;
    alignas(64) word head;
    alignas(64) word tail;
    alignas(64) word lost;  ///< tallies
    word tombs;
    // followed by the cell words, then the elements
    [[nodiscard]] word* cell() { return reinterpret_cast<word*>(this + 1); }
    [[nodiscard]] u8* element(u64 k) {
        return reinterpret_cast<u8*>(cell() + capacity) + k * element_stride(element_bytes);
    }
    [[nodiscard]] static u64 bytes(u32 capacity, u32 element_bytes) {
        return sizeof(queue_block) + capacity * (sizeof(word) + element_stride(element_bytes));
    }
    [[nodiscard]] queue_parts<word> parts() {
        return {cell(), element(0), &head, &tail, &lost, &tombs, capacity, element_bytes};
    }
    void make(u32 cells, u32 bytes_each, u32 pool_place = 0) {
        capacity = cells, element_bytes = bytes_each, pool = pool_place;
    }
};
static_assert(sizeof(queue_block) == 320);

/// A leased element: its cell stays reserved until commit() or requeue().
struct lease {
    u64 ticket = 0;
};

/// The untyped queue. Clients use typed_queue (below).
class queue {
public:
    queue(queue_block& b, u32 epoch) : b_(&b), epoch_(epoch) {}
    /// Returns false if the queue is full, or if the bounded number of attempts failed because of contention.
    [[nodiscard]] bool try_push(const void* element);
    /// Waits at most timeout_ns. Returns false if the queue is still full after that time.
    [[nodiscard]] bool push(const void* element, u64 timeout_ns);
    /// Returns false if the queue is empty, or if the first cell is claimed but not published.
    [[nodiscard]] bool try_pop(void* element);
    [[nodiscard]] bool pop(void* element, u64 timeout_ns);
    [[nodiscard]] std::optional<lease> try_lease(void* element);
    [[nodiscard]] std::optional<lease> lease_one(void* element, u64 timeout_ns);
    /// Returns false if this client does not hold that lease (any more).
    bool commit(const lease& l);
    /// Makes the element available again to any client.
    bool requeue(const lease& l);

    /// Number of published elements that no consumer has taken; not a snapshot.
    [[nodiscard]] u32 size() const;
    [[nodiscard]] u64 lost() const { return counted(b_->lost); }
    [[nodiscard]] u64 tombs() const { return counted(b_->tombs); }
    /// claimers() returns the epochs of the clients that have claimed a cell and not published it yet;
    /// leasers() returns the epochs of the clients that have leased an element and not committed it yet.
    [[nodiscard]] std::vector<u32> claimers() const { return epochs(cell_state::claimed); }
    [[nodiscard]] std::vector<u32> leasers() const { return epochs(cell_state::leased); }

private:
    [[nodiscard]] std::optional<u64> take(cell_state as, void* to);
    [[nodiscard]] std::vector<u32> epochs(cell_state s) const;
    [[nodiscard]] queue_body<cpu_side> body() const { return {b_->parts(), epoch_}; }
    queue_block* b_;
    u32 epoch_;
};

/// Elements of T.
template <class T>
class typed_queue {
    static_assert(std::is_trivially_copyable_v<T>,
                  "use a trivially copyable type: elements are copied between processes as bytes");

public:
    typed_queue(queue_block& b, u32 epoch) : queue_(b, epoch) {}
    [[nodiscard]] bool try_push(const T& value) { return queue_.try_push(&value); }
    /// Pushes elements in order until the queue is full; returns their number. Each is published separately.
    [[nodiscard]] std::size_t try_push(const T* first, std::size_t count) {
        std::size_t n = 0;
        while (n < count && queue_.try_push(first + n)) ++n;
        return n;
    }
    [[nodiscard]] bool try_pop(T& value) { return queue_.try_pop(&value); }
    [[nodiscard]] std::size_t try_pop(T* first, std::size_t count) {
        std::size_t n = 0;
        while (n < count && queue_.try_pop(first + n)) ++n;
        return n;
    }
    [[nodiscard]] std::optional<lease> try_lease(T& value) { return queue_.try_lease(&value); }
    bool commit(const lease& l) { return queue_.commit(l); }
    [[nodiscard]] queue& bytes() { return queue_; }

private:
    queue queue_;
};

/// Called after the fence of `dead`. May be repeated.
void repair(queue_block& b, u32 dead);

}  // namespace carousel::ipc
