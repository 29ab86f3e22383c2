#include "supervisor/stores/checkpoint_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "run/checkpoint.hpp"
#include "supervisor/plan/run_setup.hpp"

namespace carousel::supervisor {
namespace {

constexpr std::size_t most_kept = 2;  // the older one is for damage that is found late
constexpr u64 poll_interval_ns = 200 * ns_per_ms;
constexpr u64 disk_timeout_ns = 10 * ns_per_s;
// A killed supervisor loses its locks one after the other, and a process that it has just forked holds copies
// of them until it has started its program.
constexpr u64 dead_owner_timeout_ns = ns_per_s;

}  // namespace

u64 find_newest_checkpoint(const run_setup& setup) {
    const std::vector<u64> all = run::read_checkpoints(setup.checkpoint_folder);
    if (all.empty()) return 0;
    if (all.back() >= setup.end)
        throw config_error(
            fmt::format("--first checkpoint: the newest one, in {}, is for frame {}, but the run has {} "
                        "frames, numbered from 0: raise frames, or remove the folder",
                        setup.checkpoint_folder, all.back(), setup.end));
    return all.back();
}

checkpoint_store::checkpoint_store(const run_setup& setup) : setup_(&setup) {
    if (setup.checkpoint_every == 0) return;
    for (const stage_setup& st : setup.stages)
        if (st.state) stages_.push_back(st.spec.name);
    is_awaited_ = std::any_of(setup.stages.begin(), setup.stages.end(),
                              [](const stage_setup& st) { return st.receives(); });
}

/// A file system without locks is accepted. Returns false if another run has the lock until `until`.
bool checkpoint_store::lock_folder(u64 until) {
    const std::string& folder = setup_->checkpoint_folder;
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    if (!failed) {
        folder_ = shm::unique_fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (!folder_) failed = std::error_code(errno, std::system_category());
    }
    if (failed)
        throw output_error(fmt::format("opening the folder of the checkpoints, {}: {}: set checkpoint_to",
                                       folder, failed.message()));
    for (;; ::usleep(10'000)) {
        if (::flock(folder_.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return true;
        if (now_ns() >= until) return false;
    }
}

/// A number in the list has its files unless they were removed by hand.
void checkpoint_store::require_states(u64 number) const {
    for (const std::string& stage : stages_) {
        const std::string path = run::state_path(setup_->checkpoint_folder, stage, number);
        std::error_code ignored;
        if (!std::filesystem::exists(path, ignored))
            throw output_error(
                fmt::format("the checkpoint for frame {} lacks the state of stage {}, {}: continue with "
                            "--first at another frame, or remove the folder",
                            number, stage, path));
    }
}

bool checkpoint_store::begin(u64 first) {
    first_ = first;
    if (stages_.empty()) return first == 0 || !setup_->has_state();
    const std::string& folder = setup_->checkpoint_folder;
    if (!lock_folder(0))
        throw config_error(
            fmt::format("another run writes its checkpoints to {}: set checkpoint_to", folder));
    numbers_ = run::read_checkpoints(folder);
    if (first == 0 && !numbers_.empty())
        throw config_error(
            fmt::format("the folder {} has checkpoints for the frames {} of a run that is not complete: "
                        "continue with --first checkpoint, or remove the folder",
                        folder, fmt::join(numbers_, ", ")));
    const bool continues = is_kept(first);
    if (continues)
        require_states(first);
    else if (!numbers_.empty())
        list_is_due_ = true;
    is_continued_ = continues;
    if (!continues) numbers_.clear();
    begin_again(first);
    return first == 0 || continues;
}

void checkpoint_store::begin_again(u64 first) {
    if (stages_.empty()) return;
    const std::string& folder = setup_->checkpoint_folder;
    settle();
    block_first_ = first;
    list_is_due_ |= std::erase_if(numbers_, [&](u64 number) { return number > first; }) > 0;
    // tick() writes the shorter list again, and syncs it. If there is no space even for this one, no list
    // remains until then.
    int failed = 0;
    if (list_is_due_ && (numbers_.empty() || run::write_checkpoints(folder, numbers_, {}, false) != 0))
        failed = run::remove_list(folder);
    if (failed == 0) failed = run::remove_states(folder, [&](u64 number) { return is_kept(number); });
    if (failed != 0)
        throw output_error(fmt::format("removing later checkpoints from {}: {}", folder, errno_text(failed)));
}

bool checkpoint_store::is_kept(u64 number) const noexcept {
    return std::find(numbers_.begin(), numbers_.end(), number) != numbers_.end();
}

u64 checkpoint_store::repeats_from() const noexcept {
    if (stages_.empty()) return ~u64{0};
    return numbers_.empty() ? first_ : numbers_.front();
}

std::string checkpoint_store::lock_again() {
    if (stages_.empty()) return "";
    try {
        if (lock_folder(now_ns() + dead_owner_timeout_ns)) return "";
    } catch (const output_error& e) {  // the run continues, and has no checkpoints until the next start
        return e.what();
    }
    throw config_error(fmt::format(
        "the stages of {} continue without a supervisor, and another run writes its checkpoints to their "
        "folder, {}. End the other run and start this one again before its supervisor_grace_s is over; give "
        "each run a checkpoint_to of its own",
        setup_->name, setup_->checkpoint_folder));
}

std::string checkpoint_store::adopt(u64 first, bool is_fresh, u64 block_first) {
    first_ = first;
    block_first_ = block_first;
    is_continued_ = first > 0 && !is_fresh;
    if (stages_.empty()) return "";
    try {
        const std::string& folder = setup_->checkpoint_folder;
        numbers_ = run::read_checkpoints(folder);
        // On a full disk begin_again() leaves no list. Of the block's first frame, it leaves only the states
        // of a checkpoint, and no stage writes them again.
        const std::vector<u64> whole = run::numbers_with_states(folder, stages_);
        if (block_first > 0 && !is_kept(block_first) &&
            std::binary_search(whole.begin(), whole.end(), block_first)) {
            numbers_.insert(numbers_.begin(), block_first);
            std::sort(numbers_.begin(), numbers_.end());
            list_is_due_ = true;
        }
        return "";
    } catch (const error& e) {
        return e.what();
    }
}

/// The files of a number that is not in the new list are not used from here on.
void checkpoint_store::write_list(std::vector<u64> numbers) {
    const auto is_in = [](const std::vector<u64>& list, u64 number) {
        return std::find(list.begin(), list.end(), number) != list.end();
    };
    std::erase_if(numbers_, [&](u64 number) { return !is_in(numbers, number); });
    writing_ = std::move(numbers);
    written_ = std::async(std::launch::async, [folder = setup_->checkpoint_folder, list = writing_, is_in] {
        const int failed = run::write_checkpoints(folder, list);
        // A file that can't be removed now is removed with the next checkpoint.
        if (failed == 0)
            (void)run::remove_states(folder,
                                     [&](u64 number) { return number > list.back() || is_in(list, number); });
        return failed;
    });
}

/// Waits for the list that is being written.
void checkpoint_store::settle() {
    if (!is_written_within(disk_timeout_ns))
        throw output_error(fmt::format("the list of checkpoints in {} is not on the disk after {} s",
                                       setup_->checkpoint_folder, disk_timeout_ns / ns_per_s));
    (void)take_result();
}

bool checkpoint_store::is_written_within(u64 ns) const {
    return !written_.valid() || written_.wait_for(std::chrono::nanoseconds(ns)) == std::future_status::ready;
}

/// Does nothing if no list was being written. Waits until it is written.
std::string checkpoint_store::take_result() {
    if (!written_.valid()) return "";
    if (const int failed = written_.get(); failed != 0)
        return note_failure(fmt::format("the checkpoint for frame {} can't be completed in {}: {}",
                                        writing_.back(), setup_->checkpoint_folder, errno_text(failed)));
    failed_ = list_is_due_ = false;
    numbers_ = std::move(writing_);
    return "";
}

std::string checkpoint_store::note_failure(const std::string& what) {
    return std::exchange(failed_, true) ? "" : what + "; retrying";
}

std::string checkpoint_store::tick(u64 now, const std::function<u64()>& delivered_below) {
    if (stages_.empty() || now < next_ns_) return "";
    next_ns_ = is_awaited_ ? now : now + poll_interval_ns;
    if (written_.valid()) return is_written_within(0) ? take_result() : "";
    try {
        return find_next(delivered_below);
    } catch (const std::exception& e) {  // e.g. no descriptor or no thread is left
        return note_failure(fmt::format("checkpoints can't be completed: {}", e.what()));
    }
}

std::string checkpoint_store::find_next(const std::function<u64()>& delivered_below) {
    std::vector<u64> found = run::numbers_with_states(setup_->checkpoint_folder, stages_);
    const u64 last = numbers_.empty() ? first_ : std::max(first_, numbers_.back());
    std::erase_if(found, [&](u64 number) { return number <= last; });
    if (!found.empty()) {
        const u64 below = delivered_below();
        std::erase_if(found, [&](u64 number) { return number > below; });
    }
    if (!found.empty())
        add(found.back());
    else if (!numbers_.empty() && list_is_due_)
        write_list(numbers_);
    return "";
}

void checkpoint_store::add(u64 number) {
    std::vector<u64> next = numbers_;
    next.push_back(number);
    if (next.size() > most_kept) next.erase(next.begin());
    write_list(std::move(next));
}

// A run that is stopped before its first frame has no state to write. If it is rebuilt at its end, its states
// are those that the rebuild has kept.
bool checkpoint_store::lacks_states(u64 end) const {
    if (stages_.empty() || end <= first_ || is_kept(end)) return false;
    const std::vector<u64> whole = run::numbers_with_states(setup_->checkpoint_folder, stages_);
    return !std::binary_search(whole.begin(), whole.end(), end);
}

bool checkpoint_store::lacks_state(const std::string& stage, u64 end) const {
    std::error_code ignored;
    return end > first_ && std::find(stages_.begin(), stages_.end(), stage) != stages_.end() &&
           !std::filesystem::exists(run::state_path(setup_->checkpoint_folder, stage, end), ignored);
}

std::string checkpoint_store::complete_last(u64 end) {
    if (stages_.empty() || end <= first_) return "";
    settle();
    if (is_kept(end)) return "";
    if (lacks_states(end))
        return fmt::format(
            "the states before frame {}, at which the run has ended, are not all in {}: it continues at an "
            "earlier checkpoint, or with fresh states",
            end, setup_->checkpoint_folder);
    add(end);
    settle();
    return is_kept(end) ? "" : fmt::format("the checkpoint for frame {} is not complete", end);
}

std::optional<u64> checkpoint_store::newest(u64 most) {
    if (stages_.empty()) return std::nullopt;
    settle();
    std::optional<u64> best;
    if (first_ <= most && !is_continued_) best = first_;
    const std::vector<u64> whole = run::numbers_with_states(setup_->checkpoint_folder, stages_);
    for (const u64 number : numbers_)
        if (number <= most && std::binary_search(whole.begin(), whole.end(), number))
            best = std::max(best.value_or(0), number);
    return best;
}

void checkpoint_store::remove() {
    if (stages_.empty() || !is_written_within(disk_timeout_ns)) return;
    if (written_.valid()) (void)written_.get();
    run::remove_checkpoints(setup_->checkpoint_folder);
}

}  // namespace carousel::supervisor
