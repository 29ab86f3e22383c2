#pragma once
// The checkpoints of a run (run/checkpoint.hpp), as the supervisor sees them: it completes those for which
// every stage with a state has written its file, and knows from which frame the states can be made again
// after the memory of the rings is lost. A supervisor that dies leaves the list of its last complete
// checkpoint, from which the next one continues.
//
// Called by one thread, the one that restarts stages. It must not wait for a busy disk, which may take
// seconds even to list a folder. So another thread reads and changes the folder, one task at a time, and the
// next tick() takes the result. Functions that a run calls while none of its stages has a process wait for
// that thread, up to 10 s.
//
// What a crash leaves: the thread ends with the process, between any two steps of run/checkpoint.hpp. What a
// late thread may do: it removes only files of numbers that are neither in numbers_ nor in the list that it
// writes, and numbers_ gets a new number only with the result. So no state that is in use is removed, and no
// state is used before its number is on the disk.

#include <functional>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "shm/fd_socket.hpp"

namespace carousel {
namespace exit_code {
/// every frame arrived, but stages have begun with a fresh state, which the report lists
inline constexpr int state_lost = 5;
}  // namespace exit_code

namespace supervisor {

struct run_setup;

/// Returns the newest checkpoint of that setup; 0: there is none yet. Throws config_error if the run has no
/// such frame, output_error if the list cannot be read.
[[nodiscard]] u64 find_newest_checkpoint(const run_setup& setup);

class checkpoint_store {
public:
    explicit checkpoint_store(const run_setup& setup);
    /// Waits for the disk for 10 s at most.
    ~checkpoint_store();
    checkpoint_store(const checkpoint_store&) = delete;
    checkpoint_store& operator=(const checkpoint_store&) = delete;

    /// Called for a new run, before anything is allocated. Returns true if the states before `first` are
    /// those of a run without an interruption; if not, the checkpoints in the folder are removed. Throws
    /// config_error if another run uses the folder, or if `first` is 0 and the folder has checkpoints;
    /// output_error if the folder cannot be used, or if the checkpoint for `first` is not whole.
    [[nodiscard]] bool begin(u64 first);
    /// Called before the run begins again at `first`, while no stage has a process: removes what has been
    /// written for frames that are made again. Such a frame may become a tombstone this time, so files of two
    /// attempts must not become one checkpoint. `done_below`, by stage: the stage makes only frames from this
    /// number on again, so its states up to there stay, and become complete as without the rebuild; empty: no
    /// state outside the list stays. Throws output_error if the other files cannot be removed.
    void begin_again(u64 first, const std::vector<u64>& done_below = {});
    /// Called for a run that is taken over, before anything of it is changed. Returns the text to be logged
    /// if the folder cannot be opened, or "". Throws config_error if another run uses the folder.
    [[nodiscard]] std::string lock_again();
    /// Called after lock_again(). `first`: where it began; `is_fresh`: with fresh states;
    /// `block_first`: the first frame of its control block. Returns the text to be logged, or "".
    [[nodiscard]] std::string adopt(u64 first, bool is_fresh, u64 block_first);
    /// Completes the newest checkpoint whose files are there, over several calls; waits for the disk for 1 ms
    /// at most. `delivered_below` returns the first frame that a sink lacks; it is called only if there is
    /// such a checkpoint, and may throw carousel::error. Returns the text to be logged, or "".
    [[nodiscard]] std::string tick(u64 now, const std::function<u64()>& delivered_below);
    /// The newest frame up to `most` from which all states can be made again: a checkpoint whose files are
    /// there, or the first frame of the run. Nothing if the run has no checkpoints. It stays until the next
    /// call of another function. Throws output_error if the disk does not take a list in time.
    [[nodiscard]] std::optional<u64> newest(u64 most);
    /// The frame at which the control block begins, if the states before it are those of a checkpoint, which
    /// a stage reads that has no newer state; otherwise 0.
    [[nodiscard]] u64 restored_at() const noexcept { return is_kept(block_first_) ? block_first_ : 0; }
    /// True if the states before the first frame of the run are those of a checkpoint that is gone.
    [[nodiscard]] bool has_lost_beginning() const noexcept { return is_continued_ && !is_kept(first_); }
    /// Sinks may get the frames from this number on again.
    [[nodiscard]] u64 repeats_from() const noexcept;
    /// True if a run that ends at `end` before its last frame still lacks a state before that frame, which
    /// the stages write when they have no more frames.
    [[nodiscard]] bool lacks_states(u64 end) const;
    /// The same for one stage.
    [[nodiscard]] bool lacks_state(const std::string& stage, u64 end) const;
    /// Called after such a run, when all of its frames are delivered and no stage has a process: completes
    /// the checkpoint for `end`, if its files are there. Returns the text to be logged, or "". Throws
    /// output_error if the disk does not take a list in time.
    [[nodiscard]] std::string complete_last(u64 end);
    /// Called when the run is complete: removes its checkpoints.
    void remove();

private:
    /// What the thread has found or done in the folder.
    struct disk_result {
        bool is_list = false;      ///< it has written a list
        std::vector<u64> numbers;  ///< that list, or the numbers for which all states are there
        int failed = 0;            ///< the error number
    };

    [[nodiscard]] bool is_kept(u64 number) const noexcept;
    [[nodiscard]] bool lock_folder(u64 until);
    void require_states(u64 number) const;
    void begin_on_disk(std::function<disk_result()> task);
    [[nodiscard]] bool is_done_within(u64 ns) const;
    [[nodiscard]] disk_result do_on_disk(std::function<disk_result()> task);
    [[nodiscard]] std::function<disk_result()> search() const;
    [[nodiscard]] std::string late_text() const;
    void add(u64 number);
    void write_list(std::vector<u64> numbers);
    void settle(u64 until_ns);
    [[nodiscard]] std::string take_list(const disk_result& r);
    [[nodiscard]] std::string take_result(u64 now, const std::function<u64()>& delivered_below);
    void complete(std::vector<u64> found, const std::function<u64()>& delivered_below);
    [[nodiscard]] std::string note_failure(const std::string& what);

    const run_setup* setup_;
    std::vector<std::string> stages_;  ///< with a state
    std::vector<u64> numbers_;         ///< of the complete checkpoints that are kept
    shm::unique_fd folder_;            ///< locked, so that no other run writes there
    u64 first_ = 0, block_first_ = 0, next_ns_ = 0, busy_since_ns_ = 0;
    bool is_awaited_ = false;    ///< another host keeps its frames until a checkpoint has them
    bool is_continued_ = false;  ///< the states before first_ are those of a checkpoint
    bool list_is_due_ = false;   ///< the file has not numbers_
    bool failed_ = false;        ///< the last list could not be written, which has been logged
    /// Valid from the start of a task until its result is taken.
    std::future<disk_result> on_disk_;
};

}  // namespace supervisor
}  // namespace carousel
