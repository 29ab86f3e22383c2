#pragma once
// Traces of this host's part that a supervisor has made for `carousel trace` of the near host, which can't
// read this host's memory. Each is recorded by a `carousel trace` of this run, a process of its own in the
// run's folder, and handed over in parts. The engine's thread; nothing here waits, but for the ends of
// processes when all is over.
//
// Who dies: who asks no more for 15 s has its trace ended, and its file removed. The recording process ends
// with the run, and with its supervisor; who asks the next one is told that there is no such trace: no two
// supervisors give the same number. The folder of the files is emptied by the next supervisor that makes one,
// and with the run's runtime directory.

#include <istream>
#include <map>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "os/spawn.hpp"
#include "run/trace_message.hpp"

namespace carousel::supervisor {

class trace_files {
public:
    trace_files() = default;
    ~trace_files();
    trace_files(const trace_files&) = delete;
    trace_files& operator=(const trace_files&) = delete;

    /// Of the run of that name, in a folder below its own. Throws config_error: as many as may be are made
    /// already, or it can't be started.
    [[nodiscard]] run::trace_file_answer begin(const std::string& run_folder, const std::string& name,
                                               u64 now);
    /// `stop`: it is to be written. `at`: of what is handed over; behind the end: it is removed. Throws
    /// config_error: no such trace, it has failed (why), it is longer than what is handed over.
    [[nodiscard]] run::trace_file_answer poll(u64 id, bool stop, u64 at, u64 now);
    void tick(u64 now);
    /// Of a file of so many bytes the part at `at`, a multiple of run::trace_part: see there.
    [[nodiscard]] static std::string part_of(std::istream& file, u64 bytes, u64 at);

private:
    struct recording {
        spawned child;
        std::string path;  ///< of the file; what the process has said is in path + ".log"
        bool stopped = false, over = false;
        exit_status how;
        u64 polled_ns = 0;
    };
    void discard(recording r) noexcept;
    static void remove(const recording& r) noexcept;
    /// Where it writes before it is done.
    [[nodiscard]] static std::string part_path(const recording& r);

    std::map<u64, recording> all_;
    std::vector<recording> dying_;  ///< killed, and not gone yet
    std::string folder_;
    u64 last_ = now_ns();
};

}  // namespace carousel::supervisor
