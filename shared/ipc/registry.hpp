#pragma once
// The clients attached to a space. Only the holder changes an entry's word; a client writes its heartbeat,
// and `left` when it ends its attachment.
//
//   entry   FREE -> ATTACHED(pid, epoch) -> DEAD -> FENCED -> FREE
//                          DEAD -> ATTACHED   a client whose connection broke has come back
//
// DEAD: the client's connection has ended; the client keeps the objects that it holds, because it may still
// run.
// FENCED: the client's pidfd has reported its exit, or the client itself has reported that it maps nothing of
// the space any more. The client's state is repaired only after that, and the entry is FREE only after all
// repairs are done.
//
// clang-format off
// step                      | a crash of the holder right after it leaves     | repaired by
// an epoch is drawn         | a number that no entry has                      | not needed
// start time, then ATTACHED | an entry of a client that has not been notified | the next holder: the client has
//                           |                                                 | no connection, attaches again
//                           |                                                 | or is seen to end
// DEAD, FENCED              | a client with some of its words repaired        | the next holder repairs again
// FREE                      | nothing                                         |
// left (by the client)      | a client that owns nothing and exits later      | the holder at its exit: no death
// clang-format on
//
// If a client's pid is reused, the new process is not mistaken for the client, because an entry identifies
// its process by pid and start time: a check opens a pidfd and then compares the start time
// (shm::open_pidfd). The start time is stored before the entry's word, so a process that reads the word as
// ATTACHED then reads the matching start time.

#include <string>
#include <vector>

#include "ipc/words.hpp"
#include "shm/process_id.hpp"

namespace carousel::ipc {

inline constexpr u32 max_clients = 256;
inline constexpr u32 no_entry = ~u32{0};

enum class entry_state : u8 { free, attached, dead, fenced };
using entry_word = owner_word<entry_state>;  ///< count: the pid

struct alignas(64) registry_entry {
    word identity;
    word start_time;
    word heartbeat_ns;  ///< CLOCK_MONOTONIC, written by the client's own thread a few times per second
    word attached_ns;
    /// The epoch of a client that has ended its attachment: its exit is not a death, also if no holder has
    /// received its report.
    word left;
    /// Inode of the pid namespace in which the pid of `identity` is valid; 0: unknown, the holder's.
    word pid_namespace;
};
struct registry_block {
    word last_epoch;
    registry_entry entry[max_clients];
};
static_assert(sizeof(registry_entry) == 64);

struct client_id {
    u32 entry = no_entry, epoch = 0;
    shm::process_id process;
    entry_state state = entry_state::free;
    u64 pid_namespace = 0;  ///< in which process.pid is valid
    [[nodiscard]] explicit operator bool() const noexcept { return entry != no_entry; }
};

// ---- for the holder
/// Adds an entry for that process. Returns no client if all entries are in use.
/// `pid_namespace`: the inode of the one in which the pid is valid.
[[nodiscard]] client_id attach(registry_block& r, const shm::process_id& process, u64 pid_namespace = 0);
/// Attaches a known client that has a new connection: its entry becomes ATTACHED. Returns no client if no
/// entry has that epoch for that process, or if the entry is fenced. A pid of another namespace than the
/// entry's is not compared, and replaces the entry's.
[[nodiscard]] client_id attach_again(registry_block& r, u32 epoch, const shm::process_id& process,
                                     u64 pid_namespace = 0);
void mark_dead(registry_block& r, u32 entry);
void mark_fenced(registry_block& r, u32 entry);
/// After the repair: FENCED -> FREE.
void free_entry(registry_block& r, u32 entry);

// ---- for a client
/// Called when the client owns nothing any more and can no longer claim anything.
void note_leaving(registry_block& r, u32 entry, u32 epoch);

// ---- for any process
/// True if the client has called note_leaving().
[[nodiscard]] bool has_left(const registry_block& r, u32 entry, u32 epoch);
[[nodiscard]] client_id client_at(const registry_block& r, u32 entry);
/// Returns no client if no entry has that epoch (any more).
[[nodiscard]] client_id find_client(const registry_block& r, u32 epoch);
/// Returns "process 1234", "process 1234, which has died" or "a process that is gone".
[[nodiscard]] std::string client_text(const registry_block& r, u32 epoch);
/// Returns "process 1234 (2), process 99": each process once, with the number of its entries in `epochs` if
/// there are several; "" if `epochs` is empty.
[[nodiscard]] std::string clients_text(const registry_block& r, std::vector<u32> epochs);

}  // namespace carousel::ipc
