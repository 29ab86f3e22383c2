#pragma once
// The contents of a space, as `carousel ps` shows them: its clients, each with the objects that it holds, and
// its primitives with their state. The holder reads the words without stopping any client: each word is valid
// at the instant when it is read, but sums are not a snapshot. The view is sent over the holder's socket;
// only space_view.cpp converts it to and from a message. A process that requests the view need not be a
// client and does not need the space's memory.

#include <map>
#include <string>
#include <vector>

#include "core/described.hpp"
#include "ipc/space_block.hpp"

namespace carousel::ipc {

/// The objects that one client holds of one primitive.
struct holding {
    std::string primitive;
    std::string as;  ///< "permits", "in line", "blocks", "claimed", "popping", "leased", "tasks", ...
    u64 count = 0, bytes = 0;  ///< bytes: size of the blocks
};
BOOST_DESCRIBE_STRUCT(holding, (), (primitive, as, count, bytes))
struct client_view {
    i32 pid = 0;
    u32 epoch = 0;
    std::string state;    ///< "attached", "dead" (its connection has ended), "fenced" (its process has ended)
    std::string command;  ///< command line from /proc; "" if the process has ended
    f64 age_s = 0, silent_s = 0;  ///< seconds since it was attached, and since its last heartbeat
    std::vector<holding> holds;
};
BOOST_DESCRIBE_STRUCT(client_view, (), (pid, epoch, state, command, age_s, silent_s, holds))
struct primitive_view {
    std::string name, kind, shape;            ///< shape: text_of()
    std::map<std::string, u64> figures = {};  ///< "free", "waiting", "lost", ... "gpu_bytes": the primitive's
                                              ///< bytes in GPU memory
};
BOOST_DESCRIBE_STRUCT(primitive_view, (), (name, kind, shape, figures))
struct space_view {
    std::string name, id;  ///< id is "" if the space's memory was not requested yet
    i32 holder = 0;
    bool of_run = false;   ///< the holder is the supervisor of the run of that name
    u64 incarnations = 0;  ///< how many holders the space has had: 1 until it is taken over
    u64 bytes = 0, free_bytes = 0;
    u64 gpu_bytes = 0, gpu_free_bytes = 0;  ///< bytes of the space's GPU memory; 0: none
    bool truncated = false;  ///< the complete view would exceed one message, so the holdings are omitted
    std::vector<client_view> clients = {};
    std::vector<primitive_view> primitives = {};
};
BOOST_DESCRIBE_STRUCT(space_view, (),
                      (name, id, holder, of_run, incarnations, bytes, free_bytes, gpu_bytes, gpu_free_bytes,
                       truncated, clients, primitives))

/// The holder's view. The caller fills in name, holder and of_run.
[[nodiscard]] space_view view_of(space_block& s);

[[nodiscard]] nlohmann::json to_json(const space_view& v);
/// A value that is missing or has another type keeps its default, because the text comes from another
/// program.
[[nodiscard]] space_view read_view(const nlohmann::json& j);

// ---- the messages
[[nodiscard]] std::string inspect_request();
[[nodiscard]] bool is_inspect_request(const nlohmann::json& request);
/// Returns the reply; it is shortened if it would exceed one message.
[[nodiscard]] std::string text_of(space_view v);

// These functions determine from a primitive's words which clients own its parts.

[[nodiscard]] bool is_ready(const space_block& s, u32 place);
/// Returns the bytes of the arena that are available for further primitives.
[[nodiscard]] u64 free_bytes(const space_block& s);
/// Returns the bytes of the space's GPU memory that are available for further primitives.
[[nodiscard]] u64 gpu_free_bytes(const space_block& s);
/// Describes the primitive at that place. Adds to `of_epoch` the objects of this primitive that each client
/// holds.
[[nodiscard]] primitive_view gather(space_block& s, u32 place, std::map<u32, std::vector<holding>>& of_epoch);

}  // namespace carousel::ipc
