#pragma once
// The folder of a space, by its name: $XDG_RUNTIME_DIR/carousel-spaces/NAME/   else
// /tmp/carousel-spaces-UID/NAME/     (0700, ours)
//     hold.sock   SOCK_SEQPACKET: clients attach, reconnect and request primitives
//     lock        locked exclusively by the holder and shared by each client (shm/runtime_folder.hpp)
//     record      "PID ID": the holder, and the id of its memory
// A crash of the holder leaves this folder; the next holder of that name uses it.
//
// Messages are JSON; a client sends first:
//   {"attach": {"version", ...}}                           -> {"welcome": {"epoch", "entry"}} and the memory
//   {"return": {"version", ..., "epoch"}} and the memory   -> {"welcome": ...} without it
//   ("...": the client's process and clock, see introduction.hpp)
//   {"make": {"name", "kind", "count", "each", "more"}}    -> {"made": place}
//   {"leave": true}    nothing of the space is mapped there any more; no reply
// or {"refused": "why, and what to do"}; {"busy": "why"} if a later attempt may be accepted.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::ipc {

struct hold_place {
    std::string folder;
    [[nodiscard]] std::string socket() const { return folder + "/hold.sock"; }
    [[nodiscard]] std::string record() const { return folder + "/record"; }
};

/// Returns the path of the folder with all spaces of this user; does not create it.
[[nodiscard]] std::string spaces_folder();
/// Throws config_error if the name is not valid for a folder (letters, digits, -, _ and inner dots, at most
/// 40 characters, as for runs).
[[nodiscard]] hold_place place_of(const std::string& name);
/// Creates the folders. Throws shm_error if the folder belongs to another user or can't be created.
void make_place_folder(const hold_place& p);

/// The record contains this text instead of an id as long as no client has requested the memory.
inline constexpr const char* no_memory = "-";
struct hold_record {
    i32 pid = 0;
    std::string id;
};
/// The record is written atomically (temporary file, rename). Throws shm_error.
void write_record(const hold_place& p, const hold_record& r);
[[nodiscard]] std::optional<hold_record> read_record(const hold_place& p);

/// Sends a request to a holder and waits up to `wait_ns` for the reply, whose descriptors are in `answer`.
/// Returns null if the holder has ended, does not reply, or replies with something other than an object.
/// `checked`: the thread's wait check may end the wait; the caller must have no lock.
[[nodiscard]] nlohmann::json ask_holder(int socket, const std::string& request, shm::message& answer,
                                        u64 wait_ns, const std::vector<int>& fds = {}, bool checked = false);

}  // namespace carousel::ipc
