#pragma once
// A counting semaphore between processes. A permit never has two holders, permits are granted in the order of
// the line, and a permit is recovered when its holder dies.
//
//   permit word P[k]   {generation, epoch, FREE | HELD}        FREE(g) -> HELD(g, e) -> FREE(g + 1)
//   line word L[n]     {lap, epoch, EMPTY | WAITING}           EMPTY(l) -> WAITING(l, e) -> EMPTY(l + 1)
//   head, tail         hints for the ends of the line; the words of the line are authoritative
//   late               a hint: {1 + ticket:28, since_ms:36}: the time since which the first of the line
//                      has left a permit unused
//
// Each permit is a separate word, so no more permits can be held than exist. Ticket t is at place t mod N of
// the line, in lap t / N. A client takes a ticket by the CAS that writes its epoch at this place, and gives
// the ticket back by one CAS that moves the place to the next lap, regardless of the ticket's position in the
// line. So no client can take ticket t + N, which has the same place, before ticket t has been given back.
//
// A waiter's turn has come when the number of waiters before it is smaller than the number of free permits. A
// client counts the waiters first, and then the free permits. A waiter takes its permit before it leaves the
// line, so no permit is counted for two waiters. One permit always remains for each waiter ahead, so later
// waiters cannot starve an earlier waiter.
//
// A client in the line that is stopped or slow would withhold a permit from all later waiters. So the first
// waiter is passed over when it has left a free permit unused for line_patience_ns: a client that detects
// such a waiter moves the waiter's place to the next lap. At its next check, the late client finds that its
// place has moved to another lap, and takes a new ticket. Only fairness depends on this time limit: a permit
// is always taken by the CAS of its word, whether or not the client is in the line. If the late client wakes
// between its check and that CAS, it still takes the permit, and a later client may get its permit one place
// too early.
//
// clang-format off
// step                          | a crash right after it leaves             | repaired by
// L: EMPTY -> WAITING           | a ticket that no client will use          | repair: EMPTY of the next lap
// P: FREE -> HELD               | a held permit, and its ticket in the line | repair: FREE(g + 1), the ticket
// L: WAITING -> EMPTY           | a held permit; no waiter woken            | repair rings; sleeps are 100 ms
// P: HELD -> FREE               | no waiter woken                           | the same
// L: another's WAITING -> EMPTY | no waiter woken                           | sleeps are 100 ms at most
// tail, head or late not moved  | an outdated hint                          | the next client moves it
// repair, interrupted anywhere  | some words repaired                       | the next holder repairs again
// clang-format on
//
// try_acquire takes a ticket as well, and leaves the line at once if its turn has not come, so it never
// overtakes a waiter.

#include <optional>
#include <vector>

#include "ipc/words.hpp"
#include "shm/doorbell.hpp"

namespace carousel::ipc {

enum class permit_state : u8 { free, held };
enum class line_state : u8 { empty, waiting };
using permit_word = owner_word<permit_state>;
using line_word = owner_word<line_state>;

inline constexpr u32 max_permits = 4096;
inline constexpr u32 max_line = 1024;  ///< a client that finds the line full waits without a ticket
/// Time for which the first waiter may leave a free permit unused. A running client checks its turn at least
/// every shm::max_sleep_ns.
inline constexpr u64 line_patience_ns = 5 * shm::max_sleep_ns;

struct semaphore_block {
    u32 permits, line;  ///< written once, before any other process sees the block
    shm::doorbell_word bell;
    alignas(64) word head;
    alignas(64) word tail;
    word late;
    // followed by the permit words, then the line words
    [[nodiscard]] word* permit() { return reinterpret_cast<word*>(this + 1); }
    [[nodiscard]] word* place() { return permit() + permits; }
    [[nodiscard]] static u64 bytes(u32 permits, u32 line = max_line) {
        return sizeof(semaphore_block) + u64{permits + line} * sizeof(word);
    }
    /// Initialises the semaphore in zeroed memory of bytes().
    void make(u32 number, u32 places = max_line) { permits = number, line = places; }
};
static_assert(sizeof(semaphore_block) == 256);

struct permit {
    u32 index = 0;
    u64 generation = 0;
};

class semaphore {
public:
    semaphore(semaphore_block& b, u32 epoch) : b_(&b), epoch_(epoch) {}
    /// Waits in the line, at most timeout_ns. Returns nothing if the wait timed out; holders() then returns
    /// the current owners of the permits.
    [[nodiscard]] std::optional<permit> acquire(u64 timeout_ns);
    [[nodiscard]] std::optional<permit> try_acquire() { return acquire(0); }
    /// Returns false if this client doesn't hold that permit (any more), because it was released before.
    bool release(const permit& p);

    /// The epochs of the holders, one entry per permit; not a snapshot.
    [[nodiscard]] std::vector<u32> holders() const;
    [[nodiscard]] u32 free_permits() const;
    [[nodiscard]] u32 waiting() const;

private:
    struct in_front {
        u32 waiting = 0;
        u64 first = 0;  ///< ticket of the first waiter that is counted here
    };
    [[nodiscard]] std::optional<u64> join();
    [[nodiscard]] bool in_line(u64 ticket) const;
    void leave(u64 ticket);
    [[nodiscard]] std::optional<permit> take(u64 ticket);
    [[nodiscard]] in_front before(u64 ticket);
    [[nodiscard]] std::optional<u32> free_beyond(u32 waiting) const;
    void pass_by_late(const in_front& others);
    [[nodiscard]] word& place(u64 ticket) const { return b_->place()[ticket % b_->line]; }
    [[nodiscard]] line_word lap_of(u64 ticket) const {
        return {(ticket / b_->line) & count_mask, 0, line_state::empty};
    }
    semaphore_block* b_;
    u32 epoch_;
};

/// Called after the fence of `dead`: frees its permits and its tickets. May be repeated.
void repair(semaphore_block& b, u32 dead);

}  // namespace carousel::ipc
