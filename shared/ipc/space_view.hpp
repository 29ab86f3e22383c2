#pragma once
// What a space has, as `carousel ps` shows it: its clients with what each holds, its primitives with what is
// in them. The holder reads it from the words and stops nobody: each word is true at the instant of its read,
// sums are no snapshot. It travels over the holder's socket, written and read in space_view.cpp alone; who
// asks is no client and needs none of the memory.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "ipc/space_block.hpp"

namespace carousel::ipc {

/// What a client has of one primitive.
struct holding {
    std::string primitive;
    std::string as;  ///< "permits", "in line", "blocks", "claimed", "popping", "leased", "tasks", ...
    u64 count = 0, bytes = 0;  ///< bytes: of blocks
};
struct client_view {
    i32 pid = 0;
    u32 epoch = 0;
    std::string state;    ///< "attached", "dead" (its connection has ended), "fenced" (its process has)
    std::string command;  ///< by /proc; "" when it is gone
    f64 age_s = 0, silent_s = 0;  ///< since it was attached, and since its last sign of life
    std::vector<holding> holds;
};
struct primitive_view {
    std::string name, kind, shape;                          ///< shape: text_of()
    std::vector<std::pair<std::string, u64>> figures = {};  ///< "free", "waiting", "lost", ...
                                                            ///< "gpu_bytes": its own in GPU memory
};
struct space_view {
    std::string name, id;  ///< id "": nobody has asked for its memory yet
    i32 holder = 0;
    bool of_run = false;   ///< its holder is the supervisor of the run of that name
    u64 incarnations = 0;  ///< of its holder: 1 until it is taken over
    u64 bytes = 0, free_bytes = 0;
    u64 gpu_bytes = 0, gpu_free_bytes = 0;  ///< of its GPU memory; 0: it has none
    bool truncated = false;                 ///< too much for one message: what clients hold is left out
    std::vector<client_view> clients = {};
    std::vector<primitive_view> primitives = {};
};

/// The holder's. Name, holder and of_run are filled in by who knows them.
[[nodiscard]] space_view view_of(space_block& s);

[[nodiscard]] nlohmann::json to_json(const space_view& v);
/// What is missing or of another type keeps its default: the text is another program's.
[[nodiscard]] space_view read_view(const nlohmann::json& j);

// ---- the messages
[[nodiscard]] std::string inspect_request();
[[nodiscard]] bool is_inspect_request(const nlohmann::json& request);
/// The answer, at most as long as one message can be.
[[nodiscard]] std::string text_of(space_view v);

}  // namespace carousel::ipc
