#pragma once
// A ring's memory as a run's supervisor lends it to a program that looks at its frames: a viewer, or any
// program with a port. One question and one answer over the control socket (tap_message.hpp), checked against
// the run's control block before anything of it is used.
//
// The connection stays open as long as this lives: its end tells the supervisor that the place in the ring's
// latest groups is free again, also after a kill, and also if a forked child outlives it. Any thread, one at
// a time.

#include <memory>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "device/backend.hpp"
#include "ring/frame_format.hpp"
#include "shm/control_block.hpp"
#include "shm/fd_socket.hpp"
#include "shm/process_fd.hpp"

namespace carousel::run {

struct mapped_ring {
    std::string socket_path;
    shm::process_fd connection;
    std::vector<shm::unique_fd> descriptors;  ///< `memory` names one of them
    device::memory_handle memory;
    device::device_id device;  ///< of the stage that fills it
    ring::frame_format format;
    std::string stage;  ///< that fills it
    u32 link = 0;
    u32 entry = 0;  ///< names this borrower in latest groups
    u64 slot_bytes = 0;
    u32 slots = 0;
};

/// Asks for what `stage` puts out ("": for what the last sink reads); waits `patience_ns` at most. Throws
/// config_error: the supervisor refuses, with its sentence; shm_error: nobody answers, another run does, or
/// the answer doesn't fit the block (another version, damage).
[[nodiscard]] mapped_ring map_ring(const shm::control_block& c, const std::string& socket_path,
                                   const std::string& stage, u64 patience_ns = 2 * ns_per_s);

}  // namespace carousel::run
