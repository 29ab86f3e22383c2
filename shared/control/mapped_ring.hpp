#pragma once
// A ring's memory, leased by a run's supervisor to a program that reads the ring's frames: a viewer, or any
// program with a port. The memory is requested by one message over the control socket; the answer is checked
// against the run's control block before it is used.
// The connection stays open as long as this object exists. When the connection closes, the supervisor frees
// the place in the ring's latest groups; this also works if the process is killed, or if a forked child
// outlives the process. May be used from any thread, by one thread at a time.

#include <memory>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/described.hpp"
#include "device/backend.hpp"
#include "device/described.hpp"
#include "frame/frame_format.hpp"
#include "shm/control_block.hpp"
#include "shm/fd_socket.hpp"
#include "shm/process_fd.hpp"

namespace carousel::run {

struct mapped_ring {
    std::string socket_path;
    shm::process_fd connection;
    std::vector<shm::unique_fd> descriptors;  ///< `memory` refers to some of these descriptors
    device::memory_handle memory;
    device::device_id device;  ///< device of the stage that writes the ring
    ring::frame_format format;
    std::string stage;  ///< the stage that writes the ring
    u32 link = 0;
    u32 entry = 0;  ///< identifies this reader in latest groups
    u64 slot_bytes = 0;
    u32 slots = 0;
};

/// Requests the ring of output `stage` ("": the ring that the last sink reads); waits up to `patience_ns`.
/// Throws config_error with the supervisor's message if the supervisor refuses. Throws shm_error if no
/// process replies, if another run replies, or if the reply does not match the block (another version,
/// damage).
[[nodiscard]] mapped_ring map_ring(const shm::control_block& c, const std::string& socket_path,
                                   const std::string& stage, u64 patience_ns = 2 * ns_per_s);

// How a viewer gets the memory of a ring: one request and one answer with file descriptors over
// DIR/control.sock. The connection stays open; when it ends, the viewer's place in the ring becomes free.
// This file writes and reads request and answer.
//   {"type": "tap", "stage": "fragment"}            "": the ring that the last sink reads
//   {"ok": true, "run_id": "...", "link": 2, "stage": "fragment", "entry": 900, "format": {...},
//    "memory": {...}, "device": {"kind": "cpu", "uuid": "", "ordinal": 0}}     "memory": memory_message.hpp
// or a refusal (request_message.hpp).

struct tap_request {
    static constexpr const char* type = "tap";
    std::string stage;
    static constexpr field_rules rules{.sparse = true};
};
BOOST_DESCRIBE_STRUCT(tap_request, (), (stage))
struct tap_answer {
    std::string run_id;
    u32 link = 0;
    std::string stage;
    u32 entry = 0;                  ///< identifies the viewer in latest groups; no incarnation has this entry
    nlohmann::json format, memory;  ///< the ring's format (frame/frame_format.hpp) and memory
                                    ///< (memory_message.hpp)
    device::device_id device;       ///< device of the stage that writes the ring
    bool ok = true;
};
BOOST_DESCRIBE_STRUCT(tap_answer, (), (ok, run_id, link, stage, entry, format, memory, device))

/// Throws config_error for a refusal, json::exception for an answer of another version.
[[nodiscard]] tap_answer read_tap(const nlohmann::json& answer);

}  // namespace carousel::run
