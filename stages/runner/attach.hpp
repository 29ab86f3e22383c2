#pragma once
// How a stage process attaches to a run. The process opens one SOCK_SEQPACKET connection to the supervisor
// (DIR/control.sock), which stays open until the process ends. If the process dies, the supervisor sees the
// connection's EOF within a millisecond. For this purpose the process moves the connection's fd above the fds
// of the driver: at exit, the kernel releases the files with the highest fds first, and releasing those of a
// GPU driver takes about 90 ms.
//   stage      -> hello (control/stage_message.hpp)
//   supervisor -> attach with fds (control/stage_message.hpp), or a refusal
//   stage -> ready, after it is LIVE
//   supervisor -> start_over, to a standby at a rebuild
//   standby -> detached, after it has unmapped everything
//   supervisor -> attach with fds, for another entry; the process continues as a new one
// The supervisor starts a stage with CAROUSEL_ATTACH="DIR S K E" (seat, entry, epoch) in its environment; a
// stage started by hand takes -p NAME --stage NAME and waits up to --wait seconds.

#include <carousel/stage.hpp>

#include <map>
#include <string>
#include <vector>

#include "device/backend.hpp"
#include "frame/frame_format.hpp"
#include "ring/participants.hpp"
#include "session/attach.hpp"
#include "shm/control_block.hpp"
#include "stages/runner/depth_governor.hpp"

namespace carousel::stages {

using session::attached_block;
using session::mapped_link;

struct sampled_input_description : input_description {
    bool described = true;  ///< configure() receives its format
};

struct attachment {
    std::string run_id, runtime_directory, output_directory, stage;
    ring::incarnation_id incarnation;  ///< the epoch of a standby is 0 until the standby takes over
    bool standby = false;
    u32 width = 0, height = 0;
    std::string settings_json;
    device::device_id device;
    std::vector<input_description> inputs;
    std::vector<sampled_input_description> sampled;  ///< sampled inputs, as named in the pipeline file
    std::vector<output_description> outputs;    ///< formats of the outputs with their layouts; empty: a sink
    std::string asked_device = "auto", folder;  ///< as passed to configure()
    ring::parameter_schema parameters;          ///< parameters of the pipeline; empty if it has none
    depth_rule depth;
    bool graphs = false;  ///< true if work that is the same for every frame is run as graphs
    std::vector<attached_block> links, assets;
    /// fds of all memory of the run, open until the process ends: a second supervisor receives them from here
    std::vector<shm::unique_fd> fds;
    std::string kept_json;          ///< description of these fds, as sent by the supervisor
    double supervisor_grace_s = 5;  ///< time for which the stage continues after its supervisor has ended;
                                    ///< CAROUSEL_SUPERVISOR_GRACE_S overrides it
    std::string checkpoint_folder;  ///< of a run with states (run/checkpoint.hpp)
    u64 checkpoint_every = 0;       ///< in frames; 0: no checkpoints
    u64 checkpoint = 0;             ///< the state before that frame is read from its file; 0: none is
    shm::unique_fd socket;
};

struct attach_request {
    std::string directory;  ///< runtime directory
    std::string stage;
    ring::incarnation_id incarnation;  ///< empty: started by hand
    double wait_s = 0;
};

/// Connects (retrying for wait_s seconds), introduces the stage and receives the attach message. Throws a
/// shm_error that names the missing object.
[[nodiscard]] attachment attach(const attach_request& request);

/// Reports on a standby's connection that the process is detached (detach_from_run()). Throws a shm_error.
void report_detached(int socket, const std::string& stage);
/// Waits after that until the supervisor has an entry for the process in the rebuilt run. Throws a shm_error,
/// also if the supervisor ends.
[[nodiscard]] attachment attach_again(shm::unique_fd socket, const std::string& stage,
                                      const std::string& directory);

// Holds a shared lock on the control block and one on the lock file of the run's folder (shm/process_fd.hpp).
// By these locks, processes in every namespace can detect that this stage takes part in the run. A process
// can take part in only one run.

/// Maps the control block of the run and holds the lock on it until the process ends. Throws shm_error.
[[nodiscard]] shm::control_block& join_run(const std::string& run_id);
/// Holds the lock on the folder until the process ends; does nothing if the folder has no lock file.
void join_folder(const std::string& runtime_directory);
/// Unmaps the control block and releases both locks. To be called when no other thread uses the block, and
/// after remove_exit_note().
void detach_from_run() noexcept;
/// Releases both locks before the process ends, even if forked children of the process still exist. The
/// process must not access the run's memory afterwards.
void release_run() noexcept;

}  // namespace carousel::stages
