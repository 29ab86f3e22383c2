#pragma once
// A counting semaphore between processes: permits that nobody can have twice, in the order of the line, and
// that come back when their holder dies.
//
//   permit word P[k]   {generation, epoch, FREE | HELD}        FREE(g) -> HELD(g, e) -> FREE(g + 1)
//   line word L[n]     {lap, epoch, EMPTY | WAITING}           EMPTY(l) -> WAITING(l, e) -> EMPTY(l + 1)
//   head, tail         hints: where the line begins and ends; the words of the line are the truth
//   late               a hint: {1 + ticket:28, since_ms:36}: the first of the line lets a permit lie since
//   then
//
// Each permit is a word of its own, so there are never more out than there are. Ticket t stands at place
// t mod N of the line, in lap t / N: a ticket is taken by the one CAS that says who waits there, and given
// back by one CAS to the next lap, wherever in the line it stands. So a ticket whose place has gone on to
// another lap has left, and nobody can take ticket t + N before ticket t has left.
//
// Whose turn it is: who has fewer waiting in front of it than permits are free. Those in front are counted
// first, then the free permits: who has left the line had taken its permit before, so no permit is counted
// for two. One is always left for each of those in front: nobody starves behind later ones.
//
// A client that is stopped in the line, or slow, would keep a permit from all behind it. So the first of the
// line is passed by when it has let a free permit lie for line_patience_ns: whoever sees that moves its place
// on to the next lap. It finds its place gone when it looks again, and takes a new ticket. Only fairness
// rests on that clock: a permit is taken by the CAS of its word, in the line or out of it. If the late one
// wakes between its look and that CAS it takes the permit all the same, and one behind it may get its own a
// place too early.
//
// clang-format off
// step                            | a death right behind it leaves           | who mends it
// L: EMPTY -> WAITING             | a ticket that nobody will use            | mend: EMPTY of the next lap
// P: FREE -> HELD                 | a permit out, and its ticket in the line | mend: FREE(g + 1), and the ticket
// L: WAITING -> EMPTY             | a permit out; nobody woken               | mend rings; sleeps are 100 ms
// P: HELD -> FREE                 | nobody woken                             | the same
// L: another's WAITING -> EMPTY   | nobody woken                             | sleeps are 100 ms at most
// tail, head or late not moved    | a hint that is behind                    | whoever comes next moves it
// mend, cut off anywhere          | some words mended                        | the next holder mends again
// clang-format on
//
// try_acquire takes a ticket as well, and leaves at once if its turn hasn't come: it overtakes nobody.

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
inline constexpr u32 max_line = 1024;  ///< who finds the line full waits in front of it, without a ticket
/// So long the first of the line may let a free permit lie: who runs looks at least every shm::max_sleep_ns.
inline constexpr u64 line_patience_ns = 5 * shm::max_sleep_ns;

struct semaphore_block {
    u32 permits, line;  ///< written once, before anybody sees the block
    shm::doorbell_word bell;
    alignas(64) word head;
    alignas(64) word tail;
    word late;
    // permits words, then line words
    [[nodiscard]] word* permit() { return reinterpret_cast<word*>(this + 1); }
    [[nodiscard]] word* place() { return permit() + permits; }
    [[nodiscard]] static u64 bytes(u32 permits, u32 line = max_line) {
        return sizeof(semaphore_block) + u64{permits + line} * sizeof(word);
    }
    /// Into zeroed memory of bytes().
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
    /// Waits in the line, at most so long. Empty: the time is over; holders() says who has the permits.
    [[nodiscard]] std::optional<permit> acquire(u64 timeout_ns);
    [[nodiscard]] std::optional<permit> try_acquire() { return acquire(0); }
    /// False: this life doesn't hold that permit (any more): it was released before.
    bool release(const permit& p);

    /// The epochs of those who have permits, one each; no snapshot.
    [[nodiscard]] std::vector<u32> holders() const;
    [[nodiscard]] u32 free_permits() const;
    [[nodiscard]] u32 waiting() const;

private:
    struct in_front {
        u32 waiting = 0;
        u64 first = 0;  ///< of them
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

/// Behind the fence of `dead`: its permits are free, its tickets have left. May be repeated.
void repair(semaphore_block& b, u32 dead);

}  // namespace carousel::ipc
