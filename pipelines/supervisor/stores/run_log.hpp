#pragma once
// Records what happened in a run: the cost of each death of a stage, and the events of the stages.

#include <deque>
#include <string>
#include <vector>

#include "control/trace_message.hpp"
#include "core/described.hpp"
#include "core/types.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::supervisor {

// Log of the times that each death of a stage has cost, measured by the machine's clock (CLOCK_MONOTONIC,
// ns). The report's detection, fence and takeover times come from here, and `carousel chaos` matches its
// faults to these entries by pid. Kept in memory and in DIR/recoveries.jsonl, one line of JSON per step. Each
// line is written by one write to a file opened for appending, so a supervisor that is killed leaves complete
// lines, and the supervisor that takes the run over continues the log. A step that is reported twice (the
// second supervisor finishes a half-done retirement) overwrites itself. One thread. A run may last for
// months, so only the newest deaths are kept, and earlier deaths are only counted. When the file has many
// lines, it is rewritten from the kept deaths under another name and renamed: a kill in between leaves either
// the old or the new file.

/// Times are 0 if the step has not happened, or was not observed.
struct recovery {
    std::string seat;  ///< "fragment", "fragment.1"
    i32 pid = 0;
    u32 epoch = 0;
    std::string how = {};  ///< cause of the death, as `carousel ps` shows it; "": the death is not judged yet
    u64 signalled_ns = 0;  ///< time at which `carousel kill` sent the signal
    u64 seen_ns = 0;       ///< time at which the process was found to be dead or hung, or was to be replaced
    u64 fenced_ns = 0;     ///< time at which the process and its device work had ended
    /// time of a successor's first commit; if several processes died before that commit, it is set only for
    /// the first of them
    u64 followed_ns = 0;
    bool standby = false;  ///< the successor was a warm standby
    /// for a process that was replaced while it was alive, how the process ended later: "signal 9", "exit
    /// code 71"
    std::string ended = {};
    u64 domain_end = 0;   ///< number (from 1) of the MPS domain's end to which this death belongs; 0: none
    bool shared = false;  ///< the death was not the process's fault: the process was killed with its domain,
                          ///< or all clients got a device fault
    std::vector<u64> committed = {};  ///< for a sink: frames whose job words were still COMMITTED, so their
                                      ///< marks in the ledger may be missing
    /// times at which the successor was started, connected to the supervisor, and reported that it is ready
    u64 started_ns = 0, attached_ns = 0, ready_ns = 0;
    /// target of the write by which the process faulted, see process_events.hpp
    std::string wild_write = {};
    static constexpr field_rules rules{.sparse = true};
};
BOOST_DESCRIBE_STRUCT(recovery, (),
                      (seat, pid, epoch, how, signalled_ns, seen_ns, fenced_ns, followed_ns, standby, ended,
                       domain_end, shared, committed, started_ns, attached_ns, ready_ns, wild_write))

class recovery_log {
public:
    static constexpr std::size_t kept = 10'000;
    recovery_log() = default;  ///< in memory only
    /// Continues an existing file. If the file cannot be opened, read or written, the log is kept in memory
    /// only. `keep`: number of deaths to keep, for tests.
    explicit recovery_log(const std::string& path, std::size_t keep = kept);
    /// `r` identifies its process by seat, pid and epoch; members that are 0 or empty in `r` stay unchanged.
    void report(const recovery& r);
    /// The newest deaths: between `keep` and 1.25 * `keep` of them, once that many have occurred.
    [[nodiscard]] const std::vector<recovery>& all() const noexcept { return all_; }
    [[nodiscard]] u64 dropped() const noexcept { return dropped_; }  ///< number of earlier deaths

private:
    void merge(const recovery& r);
    void drop_old();
    void rewrite();
    void append(const std::string& line);
    std::string path_;
    std::size_t keep_ = kept;
    std::vector<recovery> all_;
    shm::unique_fd file_;
    u64 lines_ = 0, dropped_ = 0;
};

/// Returns one object per death for the report, with those members of `recovery` that are known.
[[nodiscard]] nlohmann::json recoveries_json(const std::vector<recovery>& all);
/// Converts one object of that list back. Throws nlohmann::json::exception.
[[nodiscard]] recovery recovery_from(const nlohmann::json& j);

/// Returns the milliseconds from the signal to the detection of the death, for processes signalled by
/// `carousel kill`.
[[nodiscard]] std::vector<f64> detections_ms(const std::vector<recovery>& all);
/// Returns the milliseconds from the detection of the death to the fence.
[[nodiscard]] std::vector<f64> fences_ms(const std::vector<recovery>& all);
/// Returns the milliseconds from the signal (or, if there was no signal, from the detection of the death) to
/// the successor's first committed frame.
[[nodiscard]] std::vector<f64> takeovers_ms(const std::vector<recovery>& all, bool standbys_only);

/// The four consecutive parts of takeover times in milliseconds, for takeovers without a standby. The parts
/// end when the successor's process was started, when it had connected to the supervisor, when it was ready,
/// and when it had committed its first frame.
struct takeover_parts {
    std::vector<f64> to_start, to_attach, to_ready, to_frame;
};
[[nodiscard]] takeover_parts parts_of_takeovers_ms(const std::vector<recovery>& all);
/// Returns for each end of the MPS domain the milliseconds from the first detected death until every stage of
/// the domain has committed a frame again.
[[nodiscard]] std::vector<f64> domains_back_ms(const std::vector<recovery>& all);

// The newest events of the stages of a run, kept for later requests (`carousel trace`) and numbered from 1.
// One thread.

struct run_note {
    u64 id = 0, time_ns = 0;
    const char* kind = "";  ///< started, ready, died, quarantined, freed, given up, held, goes on
    u32 seat = 0, epoch = 0;
    i32 pid = 0;
    std::string text;  ///< to be printed after the stage's name
};

class run_notes {
public:
    void add(run_note n);
    /// Returns the notes with a number above `id`, oldest first, as many as fit into one reply. The caller
    /// fills in the other fields of the reply.
    [[nodiscard]] run::trace_answer since(u64 id) const;

private:
    std::deque<run_note> notes_;
    u64 last_ = 0;
};

}  // namespace carousel::supervisor
