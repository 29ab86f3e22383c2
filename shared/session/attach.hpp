#pragma once
// How a process joins a run and maps its rings. The process sends HELLO over the supervisor's socket and
// receives ATTACH with the descriptors of the memory (control/stage_message.hpp). The connection stays open
// as long as the process takes part; EOF on the connection informs the supervisor of the process's death.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "control/stage_message.hpp"
#include "core/errors.hpp"
#include "device/backend.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::session {

/// The request is refused now, but may be accepted later: the process that holds the seat may be dead,
/// although its death has not been detected yet.
class seat_taken : public config_error {
public:
    using config_error::config_error;
};

struct attached_block {
    u32 index = 0;  ///< index of the link or asset in the control block
    std::string name;
    device::memory_handle memory;
    u64 canary_bytes = 0;  ///< size in bytes of the canary at the end of each slot of a ring; 0: no canaries
    /// true if processes other than one instance of the producer can write into the canaries
    bool others_write = false;
    bool readers_write = false;  ///< a reader is among the processes that can write into the canaries
};

struct attached {
    run::attach_message message;
    std::vector<shm::unique_fd> fds;            ///< all descriptors that came with the message
    std::vector<attached_block> links, assets;  ///< blocks of the message; they refer to `fds`
};

/// The block of link `link`. Throws shm_error if the supervisor sent no such block.
[[nodiscard]] const attached_block& block_of_link(std::span<const attached_block> blocks, u32 link);

/// Introduces this process by `hello`, which is completed with its pid, start time and clock. `descriptors`
/// are sent with the message. Waits up to `patience_ns` for the answer. Throws seat_taken, config_error
/// (refused permanently), or shm_error (no reply, or an unreadable reply).
[[nodiscard]] attached introduce(int socket, run::hello_message hello, u64 patience_ns,
                                 const std::vector<int>& descriptors = {});

/// Waits up to `patience_ns` for the answer to a message that introduces the process `self` ("stage x").
/// Throws as introduce().
[[nodiscard]] attached await_answer(int socket, const std::string& self, u64 patience_ns);

/// Gives a descriptor a number above the descriptors of a GPU driver: at exit, the kernel releases the files
/// with the highest numbers first, and releasing the driver's files takes about 90 ms. On failure (a low
/// RLIMIT_NOFILE) the descriptor is not moved, and a death is detected later.
void move_above_driver(shm::unique_fd& fd);

/// The mapped ring memory of one link.
struct mapped_link {
    u32 index = shm::none;
    std::unique_ptr<device::mapping> memory;
    u64 slot_bytes = 0;    ///< size of a slot without the area that follows the payload
    u64 canary_bytes = 0;  ///< size of the canary after the payload; 0: no canary
    u32 slots = 0;
    /// For an output: the canary_key() that this process has planted after each slot; 0: none.
    std::vector<u64> planted;
    /// the canaries are planted again for each frame, because several processes can write to them: instances
    /// of the producer, or readers
    bool others_write = false;
    /// according to the plan, a reader is among the processes that can write into the canaries
    bool readers_write = false;
    /// for a ring on another GPU: one slot on this process's GPU (stages/runner/depth_governor.hpp);
    /// otherwise null
    std::unique_ptr<device::mapping> staging;
    [[nodiscard]] std::byte* slot(u32 k) const noexcept { return memory->slot(k, slot_bytes + canary_bytes); }
    [[nodiscard]] u64* canary(u32 k) const noexcept { return reinterpret_cast<u64*>(slot(k) + slot_bytes); }
    [[nodiscard]] device::status_word* status(u32 k) const noexcept {
        return reinterpret_cast<device::status_word*>(slot(k));
    }
};

/// Maps a link's ring with the access `wanted`. Throws shm_error if the slots do not fit the memory (a
/// damaged control block), device_error if the device cannot map it.
[[nodiscard]] mapped_link map_link(const shm::control_block& c, const attached_block& block,
                                   device::context& on, device::access wanted);

/// Returns the bits of shm::memory_guard that describe how a process has mapped its rings.
[[nodiscard]] u32 guards_of(std::span<const mapped_link> inputs,
                            std::span<const mapped_link> outputs) noexcept;

}  // namespace carousel::session
