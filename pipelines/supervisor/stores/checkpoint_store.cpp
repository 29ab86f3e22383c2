#include "supervisor/stores/checkpoint_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <map>
#include <system_error>
#include <thread>
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
constexpr u64 disk_patience_ns = ns_per_ms;  // a disk that is not busy lists a folder in less
// A killed supervisor loses its locks one after the other, and a process that it has just forked holds copies
// of them until it has started its program.
constexpr u64 dead_owner_timeout_ns = ns_per_s;
constexpr u64 dead_writers_timeout_ns = 2 * ns_per_s;  // contexts on a GPU take most of a second

u64 time_left(u64 until_ns) {
    const u64 now = now_ns();
    return until_ns - std::min(now, until_ns);
}

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
    // The stages of a run that was just killed may not have ended yet.
    for (const u64 until = now_ns() + dead_writers_timeout_ns; run::has_writers(folder_.get());
         ::usleep(10'000))
        if (now_ns() >= until)
            throw config_error(fmt::format(
                "stages of another run, whose supervisor has ended, write their checkpoints to {}: "
                "wait until they have ended, or set checkpoint_to",
                folder));
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

// A sender keeps its frames until a checkpoint has them. If files of states that the rings have kept were
// removed, no stage would write them again: the ring has a later state.
void checkpoint_store::begin_again(u64 first, const std::vector<u64>& done_below) {
    if (stages_.empty()) return;
    const std::string& folder = setup_->checkpoint_folder;
    settle(now_ns() + disk_timeout_ns);
    block_first_ = first;
    list_is_due_ |= std::erase_if(numbers_, [&](u64 number) { return number > first; }) > 0;
    std::map<std::string, u64> kept_up_to;
    for (std::size_t k = 0; k < std::min(done_below.size(), setup_->stages.size()); ++k)
        kept_up_to[setup_->stages[k].spec.name] = done_below[k];
    const auto stays = [numbers = numbers_, kept_up_to](u64 number, const std::string& stage) {
        const auto kept = kept_up_to.find(stage);
        return std::find(numbers.begin(), numbers.end(), number) != numbers.end() ||
               (kept != kept_up_to.end() && number <= kept->second);
    };
    const auto task = [folder, numbers = numbers_, list_is_due = list_is_due_, stays] {
        // tick() writes the shorter list again, and syncs it. If there is no space even for this one, no list
        // remains until then.
        int failed = 0;
        if (list_is_due && (numbers.empty() || run::write_checkpoints(folder, numbers, {}, false) != 0))
            failed = run::remove_list(folder);
        if (failed == 0) failed = run::remove_states(folder, stays);
        return disk_result{false, {}, failed};
    };
    const int failed = do_on_disk(task).failed;
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
        // On a full disk begin_again() leaves no list. The states that it leaves for the block's first frame
        // are those from which the run continues, and no stage writes them again.
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

// The files of a number that is not in the new list are not used from here on.
void checkpoint_store::write_list(std::vector<u64> numbers) {
    const auto is_in = [](const std::vector<u64>& list, u64 number) {
        return std::find(list.begin(), list.end(), number) != list.end();
    };
    std::erase_if(numbers_, [&](u64 number) { return !is_in(numbers, number); });
    begin_on_disk([folder = setup_->checkpoint_folder, list = std::move(numbers), is_in] {
        const int failed = run::write_checkpoints(folder, list);
        // A file that can't be removed now is removed with the next checkpoint.
        if (failed == 0)
            (void)run::remove_states(folder, [&](u64 number, const std::string&) {
                return number > list.back() || is_in(list, number);
            });
        return disk_result{true, list, failed};
    });
}

// The thread has copies of all that it needs, and is detached: the supervisor can end although the disk
// hangs.
void checkpoint_store::begin_on_disk(std::function<disk_result()> task) {
    try {
        std::packaged_task<disk_result()> work(std::move(task));
        std::future<disk_result> result = work.get_future();
        std::thread(std::move(work)).detach();
        on_disk_ = std::move(result);
    } catch (const std::system_error& e) {
        throw output_error(fmt::format("no thread can be started for the checkpoints in {}: {}",
                                       setup_->checkpoint_folder, e.what()));
    }
    busy_since_ns_ = now_ns();
}

checkpoint_store::~checkpoint_store() { (void)is_done_within(disk_timeout_ns); }

bool checkpoint_store::is_done_within(u64 ns) const {
    return !on_disk_.valid() || on_disk_.wait_for(std::chrono::nanoseconds(ns)) == std::future_status::ready;
}

std::string checkpoint_store::late_text() const {
    return fmt::format("the disk with the checkpoints in {} has not replied for {} s",
                       setup_->checkpoint_folder, disk_timeout_ns / ns_per_s);
}

/// Waits until `until_ns` for the task that has been begun, and takes its list. States that it has found are
/// found again.
void checkpoint_store::settle(u64 until_ns) {
    if (!is_done_within(time_left(until_ns))) throw output_error(late_text());
    if (!on_disk_.valid()) return;
    if (const disk_result r = on_disk_.get(); r.is_list) (void)take_list(r);
}

/// Throws output_error if the disk takes too long, with the task before. Then this task continues, and no
/// other one begins before its end.
checkpoint_store::disk_result checkpoint_store::do_on_disk(std::function<disk_result()> task) {
    const u64 until_ns = now_ns() + disk_timeout_ns;
    settle(until_ns);
    begin_on_disk(std::move(task));
    if (!is_done_within(time_left(until_ns))) throw output_error(late_text());
    return on_disk_.get();
}

std::function<checkpoint_store::disk_result()> checkpoint_store::search() const {
    return [folder = setup_->checkpoint_folder, stages = stages_] {
        return disk_result{false, run::numbers_with_states(folder, stages), 0};
    };
}

std::string checkpoint_store::take_list(const disk_result& r) {
    if (r.failed != 0)
        return note_failure(fmt::format("the checkpoint for frame {} can't be completed in {}: {}",
                                        r.numbers.back(), setup_->checkpoint_folder, errno_text(r.failed)));
    failed_ = list_is_due_ = false;
    numbers_ = r.numbers;
    return "";
}

std::string checkpoint_store::note_failure(const std::string& what) {
    return std::exchange(failed_, true) ? "" : what + "; retrying";
}

std::string checkpoint_store::tick(u64 now, const std::function<u64()>& delivered_below) {
    if (stages_.empty()) return "";
    try {
        if (!on_disk_.valid()) {
            if (now < next_ns_) return "";
            next_ns_ = is_awaited_ ? now : now + poll_interval_ns;
            begin_on_disk(search());
        }
        return take_result(now_ns(), delivered_below);
    } catch (const std::exception& e) {  // e.g. no descriptor or no thread is left
        return note_failure(fmt::format("checkpoints can't be completed: {}", e.what()));
    }
}

/// Takes what the thread has done; if that has led to another task, the next call does the same for it.
std::string checkpoint_store::take_result(u64 now, const std::function<u64()>& delivered_below) {
    if (!is_done_within(now < busy_since_ns_ + disk_patience_ns ? disk_patience_ns : 0)) {
        if (now < busy_since_ns_ + disk_timeout_ns) return "";
        return note_failure(late_text());
    }
    disk_result r = on_disk_.get();
    if (r.is_list) return take_list(r);
    complete(std::move(r.numbers), delivered_below);
    return "";
}

void checkpoint_store::complete(std::vector<u64> found, const std::function<u64()>& delivered_below) {
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
}

void checkpoint_store::add(u64 number) {
    std::vector<u64> next = numbers_;
    next.push_back(number);
    if (next.size() > most_kept) next.erase(next.begin());
    write_list(std::move(next));
}

// A run that is stopped before its first frame has no state to write. If it is rebuilt at its end, its states
// are those that the rebuild has kept. Checks single files, because it is called while stages may have to
// be replaced.
bool checkpoint_store::lacks_states(u64 end) const {
    return end > first_ && !is_kept(end) &&
           std::any_of(stages_.begin(), stages_.end(),
                       [&](const std::string& stage) { return lacks_state(stage, end); });
}

bool checkpoint_store::lacks_state(const std::string& stage, u64 end) const {
    std::error_code ignored;
    return end > first_ && std::find(stages_.begin(), stages_.end(), stage) != stages_.end() &&
           !std::filesystem::exists(run::state_path(setup_->checkpoint_folder, stage, end), ignored);
}

std::string checkpoint_store::complete_last(u64 end) {
    if (stages_.empty() || end <= first_) return "";
    settle(now_ns() + disk_timeout_ns);
    if (is_kept(end)) return "";
    if (lacks_states(end))
        return fmt::format(
            "the states before frame {}, at which the run has ended, are not all in {}: it continues at an "
            "earlier checkpoint, or with fresh states",
            end, setup_->checkpoint_folder);
    add(end);
    settle(now_ns() + disk_timeout_ns);
    return is_kept(end) ? "" : fmt::format("the checkpoint for frame {} is not complete", end);
}

std::optional<u64> checkpoint_store::newest(u64 most) {
    if (stages_.empty()) return std::nullopt;
    const std::vector<u64> whole = do_on_disk(search()).numbers;
    std::optional<u64> best;
    if (first_ <= most && !is_continued_) best = first_;
    for (const u64 number : numbers_)
        if (number <= most && std::binary_search(whole.begin(), whole.end(), number))
            best = std::max(best.value_or(0), number);
    return best;
}

void checkpoint_store::remove() {
    if (stages_.empty() || !is_done_within(disk_timeout_ns)) return;
    if (on_disk_.valid()) (void)on_disk_.get();
    run::remove_checkpoints(setup_->checkpoint_folder);
}

}  // namespace carousel::supervisor
