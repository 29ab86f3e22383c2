#pragma once
// What each death of a stage cost, by the clock of the machine (CLOCK_MONOTONIC, ns): the report's detection,
// fence and takeover come from here, and `carousel chaos` joins its faults to it by pid.
//
// Kept in memory and, a line of JSON at each step, in DIR/recoveries.jsonl: each line goes out by one write
// to a file opened for appending, so a supervisor that is killed leaves whole lines, and the one that takes
// its run over continues the same account. A step that is told twice (the second supervisor finishes a
// half-done retirement) replaces itself. One thread. A run may last for months: the newest deaths are kept,
// one that came before them is a number. Once the file has many lines it is written anew from what is kept,
// aside and renamed: a kill in between leaves the old file or the new one.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::supervisor {

/// 0: has not happened, or was not seen.
struct recovery {
    std::string seat;  ///< "fragment", "fragment.1"
    i32 pid = 0;
    u32 epoch = 0;
    std::string how = {};  ///< as `carousel ps` shows it; "": not judged yet
    u64 signalled_ns = 0;  ///< `carousel kill` sent the signal
    u64 seen_ns = 0;       ///< first known to be dead, hung or unwanted
    u64 fenced_ns = 0;     ///< the process and its device work are gone
    /// first committed frame of a successor; deaths until then are told by the first of them
    u64 followed_ns = 0;
    bool standby = false;  ///< a warm standby was that successor
    /// how a process that was replaced while it lived ended at last: "signal 9", "exit code 71"
    std::string ended = {};
    u64 domain_end = 0;   ///< the end of the MPS domain, counted from 1, that it fell into; 0: none
    bool shared = false;  ///< and by no doing of its own: killed with its domain, or its device failed as it
                          ///< would for every client
    std::vector<u64> committed = {};  ///< of a sink: frames that its job words still called COMMITTED; maybe
                                      ///< without its mark in the ledger
    /// of that successor: its process was started, came to the supervisor, said that it is ready
    u64 started_ns = 0, attached_ns = 0, ready_ns = 0;
    std::string wild_write = {};  ///< where a write of its own that faulted was to go, wild_write_text.hpp
};

class recovery_log {
public:
    static constexpr std::size_t kept = 10'000;
    recovery_log() = default;  ///< in memory only
    /// Continues the file if there is one. A file that can't be opened, read or written is done without.
    /// `keep`: deaths, for tests.
    explicit recovery_log(const std::string& path, std::size_t keep = kept);
    /// `r` names its process by seat, pid and epoch; what is 0 or empty in it stays as it was.
    void report(const recovery& r);
    /// The newest deaths: as many as are kept, and a quarter more at most.
    [[nodiscard]] const std::vector<recovery>& all() const noexcept { return all_; }
    [[nodiscard]] u64 dropped() const noexcept { return dropped_; }  ///< deaths before those

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

/// For the report: an object each with the members above that are known.
[[nodiscard]] nlohmann::json recoveries_json(const std::vector<recovery>& all);
/// The other way round. Throws nlohmann::json::exception.
[[nodiscard]] recovery recovery_from(const nlohmann::json& j);

/// Milliseconds from the signal to the death being seen, of those who were signalled by `carousel kill`.
[[nodiscard]] std::vector<f64> detections_ms(const std::vector<recovery>& all);
/// From the death being seen to the fence.
[[nodiscard]] std::vector<f64> fences_ms(const std::vector<recovery>& all);
/// From the signal, or the death being seen, to the successor's first committed frame.
[[nodiscard]] std::vector<f64> takeovers_ms(const std::vector<recovery>& all, bool standbys_only);

/// Where a takeover's time went, of those that no standby made: until the successor's process was started,
/// until it came to the supervisor, until it was ready, until its first committed frame.
struct takeover_parts {
    std::vector<f64> to_start, to_attach, to_ready, to_frame;
};
[[nodiscard]] takeover_parts parts_of_takeovers_ms(const std::vector<recovery>& all);
/// Of each end of the MPS domain: from the first death that was seen to the first frame of the last of its
/// stages that came back.
[[nodiscard]] std::vector<f64> domains_back_ms(const std::vector<recovery>& all);

}  // namespace carousel::supervisor
