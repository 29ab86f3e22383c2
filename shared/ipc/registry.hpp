#pragma once
// Who is attached to a space. The holder alone changes an entry's word; a client writes its heartbeat.
//
//   entry   FREE -> ATTACHED(pid, epoch) -> DEAD -> FENCED -> FREE
//                          DEAD -> ATTACHED   a client whose connection broke has come back
//
// DEAD: its connection has ended; what it holds stays its own, for it may still run. FENCED: its pidfd says
// that it has ended, or it has said itself that nothing of the space is mapped there any more. Only then is
// it mended, and only when all is mended is the entry FREE.
//
// step                        | a death of the holder right behind it leaves     | who mends it
// an epoch is drawn           | a number that nobody bears                       | nobody needs to
// start time, then ATTACHED   | an entry of a client that hasn't been told       | the next holder finds its
// process
//                             |                                                  | without a connection: it
//                             comes |                                                  | again or is seen to
//                             end
// DEAD, FENCED                | a client of which some words are mended          | the next holder mends it
// again FREE                        | nothing                                          |
//
// A pid that is used again can't fool it: an entry's process is (pid, start time), and whoever looks for it
// opens a pidfd and then compares the start time (shm::open_pidfd). Start time goes before the word, so who
// reads ATTACHED reads the right one.

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
    word heartbeat_ns;  ///< CLOCK_MONOTONIC, written by the client's own thread a few times a second
    word attached_ns;
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
    [[nodiscard]] explicit operator bool() const noexcept { return entry != no_entry; }
};

// ---- the holder
/// An entry for that process. Empty when all are taken.
[[nodiscard]] client_id attach(registry_block& r, const shm::process_id& process);
/// The same client on a new connection: its entry is ATTACHED. Empty: no entry bears that epoch for that
/// process, or it is fenced.
[[nodiscard]] client_id attach_again(registry_block& r, u32 epoch, const shm::process_id& process);
void mark_dead(registry_block& r, u32 entry);
void mark_fenced(registry_block& r, u32 entry);
/// Behind the mend: FENCED -> FREE.
void free_entry(registry_block& r, u32 entry);

// ---- anybody
[[nodiscard]] client_id client_at(const registry_block& r, u32 entry);
/// Empty: nobody bears that epoch (any more).
[[nodiscard]] client_id find_client(const registry_block& r, u32 epoch);
/// "process 1234", "process 1234, which has died", "a process that is gone"
[[nodiscard]] std::string client_text(const registry_block& r, u32 epoch);
/// "process 1234 (2), process 99": each once, with how often; "" for nobody.
[[nodiscard]] std::string clients_text(const registry_block& r, std::vector<u32> epochs);

}  // namespace carousel::ipc
