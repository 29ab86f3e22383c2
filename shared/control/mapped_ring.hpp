#pragma once
// A ring's memory, leased by a run's supervisor to a program that reads the ring's frames: a viewer, or any
// program with a port. One request and one answer over the control socket (tap_message.hpp), checked against
// the run's control block before any of it is used.
//
// The connection stays open as long as this object exists. When the connection closes, the supervisor frees
// the place in the ring's latest groups; this also works after a kill, and if a forked child outlives the
// process. May be used from any thread, by one thread at a time.

#include <memory>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "device/backend.hpp"
#include "frame/frame_format.hpp"
#include "shm/control_block.hpp"
#include "shm/fd_socket.hpp"
#include "shm/process_fd.hpp"

namespace carousel::run {

struct mapped_ring {
    std::string socket_path;
    shm::process_fd connection;
    std::vector<shm::unique_fd> descriptors;  ///< `memory` refers to some of these
    device::memory_handle memory;
    device::device_id device;  ///< of the stage that writes the ring
    ring::frame_format format;
    std::string stage;  ///< that writes the ring
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

}  // namespace carousel::run
