#pragma once
// How a stage process gets into a run. One SOCK_SEQPACKET connection to the supervisor (DIR/control.sock),
// which stays open for life: its EOF tells the supervisor of a death within a millisecond, because the fd is
// moved above the driver's (files are closed in order of their number, and a GPU driver's take about 90 ms).
//
//   stage      -> hello (run/stage_message.hpp)
//   supervisor -> attach with fds (run/attach_message.hpp), or a refusal
//   stage      -> ready, once it is LIVE
//
// The supervisor starts a stage with CAROUSEL_ATTACH="DIR S K E" in its environment; a stage started by hand
// takes -p NAME --stage NAME and waits --wait seconds.

#include <map>
#include <string>
#include <vector>

#include <carousel/stage.hpp>
#include "device/backend.hpp"
#include "ring/frame_format.hpp"
#include "ring/participants.hpp"
#include "shm/fd_socket.hpp"
#include "stages/runner/depth_governor.hpp"

namespace carousel::stages {

struct attached_block {
    u32 index = 0;  ///< of the link or asset in the control block
    std::string name;
    device::memory_handle memory;
    u64 canary_bytes = 0;        ///< at the end of each of a ring's slots; 0: it has no canaries
    bool others_write = false;   ///< others than one instance of its maker can write into those
    bool readers_write = false;  ///< a reader is among them
};

/// A sampled input.
struct sampled_input_description : input_description {
    bool described = true;  ///< configure() gets its format
};

struct attachment {
    std::string run_id, runtime_directory, output_directory, stage;
    ring::incarnation_id incarnation;  ///< of a standby: epoch 0 until it takes over
    bool standby = false;
    u32 width = 0, height = 0;
    std::string settings_json;
    device::device_id device;
    std::vector<input_description> inputs;
    std::vector<sampled_input_description> sampled;  ///< sampled inputs, as the file names them
    std::vector<output_description> outputs;         ///< laid out; empty: a sink
    std::string asked_device = "auto", folder;       ///< as configure() gets them
    ring::parameter_schema parameters;               ///< of the pipeline; none: it has none
    depth_rule depth;
    bool graphs = false;  ///< work that is alike for every frame is played as graphs
    std::vector<attached_block> links, assets;
    /// of all memory of the run, open for life: a second supervisor gets them from here
    std::vector<shm::unique_fd> fds;
    std::string kept_json;  ///< what they are, as the supervisor put it
    double supervisor_grace_s =
        5;  ///< so long the stage goes on without a supervisor (CAROUSEL_SUPERVISOR_GRACE_S goes before it)
    shm::unique_fd socket;
};

struct attach_request {
    std::string directory;  ///< runtime directory
    std::string stage;
    ring::incarnation_id incarnation;  ///< empty: started by hand
    double wait_s = 0;
};

/// Connects, introduces itself and receives everything. Throws shm_error naming what is missing after wait_s.
[[nodiscard]] attachment attach(const attach_request& request);
/// Moves the socket above the driver's fds.
void move_above_driver(shm::unique_fd& socket);

}  // namespace carousel::stages
