#pragma once
// `carousel trace`. The command repeats its request while it reads the timestamps; the stages stop recording
// by themselves when the requests end.

#include <istream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "control/request_message.hpp"
#include "control/trace_message.hpp"
#include "core/clock.hpp"
#include "os/spawn.hpp"
#include "shm/segment.hpp"

namespace carousel::supervisor {

class block_custodian;
struct process_table;
struct run_setup;

// Traces of this host's partition for `carousel trace` on the coordinator, which cannot read this host's
// memory. The supervisor starts a separate process for each trace, a `carousel trace` of this run in the
// run's folder, and transfers the recorded file in parts. Used only by the engine's thread. Only the
// destructor blocks: it waits until the recording processes have ended. A trace that is not polled for 15 s
// is stopped and its file removed. The recording process ends with the run and with its supervisor; a client
// that polls the next supervisor gets an error, since no two supervisors give their traces the same number.
// The folder of the files is emptied by the next supervisor that records a trace, and removed with the run's
// runtime directory.

class trace_files {
public:
    trace_files() = default;
    ~trace_files();
    trace_files(const trace_files&) = delete;
    trace_files& operator=(const trace_files&) = delete;

    /// Starts a trace of the run `name`, in a folder below `run_folder`. Throws config_error if too many
    /// traces are recorded already, or if the process cannot be started.
    [[nodiscard]] run::trace_file_answer begin(const std::string& run_folder, const std::string& name,
                                               u64 now);
    /// Polls trace `id`. `stop`: ends the recording and writes the file. `at`: offset in bytes of the part to
    /// return; if the offset is at or beyond the end of the file, the trace is removed. Throws config_error
    /// if the trace does not exist, has failed (with the cause), or is longer than the limit.
    [[nodiscard]] run::trace_file_answer poll(u64 id, bool stop, u64 at, u64 now);
    void tick(u64 now);
    /// Returns the part of a file that begins at offset `at`, a multiple of run::trace_part (see there);
    /// `bytes`: size of the file.
    [[nodiscard]] static std::string part_of(std::istream& file, u64 bytes, u64 at);

private:
    struct recording {
        spawned child;
        std::string path;  ///< path of the file; the output of the process is in path + ".log"
        bool stopped = false, over = false;
        exit_status how;
        u64 polled_ns = 0;
    };
    void discard(recording r) noexcept;
    static void remove(const recording& r) noexcept;
    /// Returns the path of the temporary file that the process writes until it is done.
    [[nodiscard]] static std::string part_path(const recording& r);

    std::map<u64, recording> all_;
    std::vector<recording> dying_;  ///< recordings whose processes were killed but have not ended yet
    std::string folder_;
    u64 last_ = now_ns();
};

class trace_control {
public:
    trace_control(const run_setup& setup, std::string run_id, const process_table& seats,
                  block_custodian& block)
        : setup_(&setup), run_id_(std::move(run_id)), seats_(&seats), block_(&block) {}

    /// Extends the time during which the stages record timestamps. `state`: the state of the run, for the
    /// reply.
    [[nodiscard]] run::trace_answer carry_out(const run::trace_request& r, const std::string& state);
    /// Handles clients that trace this run from another host. Throws config_error.
    [[nodiscard]] run::trace_file_answer carry_out(const run::trace_file_request& r);
    void tick(u64 now) { files_.tick(now); }

private:
    const run_setup* setup_;
    std::string run_id_;
    const process_table* seats_;
    block_custodian* block_;
    std::unique_ptr<shm::trace_segment> trace_;  ///< null before the first request
    trace_files files_;
};

}  // namespace carousel::supervisor
