#include "stages/runner/checkpoint_writer.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/log.hpp"
#include "run/checkpoint.hpp"

namespace carousel::stages {

checkpoint_writer::checkpoint_writer(runtime& r)
    : runtime_(&r), queue_(r.context().make_queue()), bytes_(r.state_bytes()), layout_(r.state_layout()) {
    copy_ = r.context().allocate_host(bytes_);
    folder_ =
        shm::unique_fd(::open(r.attached().checkpoint_folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder_) run::mark_writer(folder_.get());
    thread_ = std::thread([this] { write_loop(); });
}

checkpoint_writer::~checkpoint_writer() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void checkpoint_writer::before_commit(const ring::job& j) {
    copied_ = false;
    if (is_awaited() || !is_due(j.ring_sequence + 1)) return;
    {
        const std::lock_guard lock(mutex_);
        if (due_ != 0) {
            if (left_out_++ == 0)
                log::warning(
                    "the checkpoint for frame {} is left out, because the file of the one before is "
                    "still being written: use a larger checkpoint_every or a faster disk; further "
                    "ones are not logged",
                    j.ring_sequence + 1);
            return;
        }
    }
    queue_->copy(copy_->data(), runtime_->state_of(j), bytes_);
    queue_->drain();
    copied_ = true;
}

bool checkpoint_writer::is_due(u64 frame) const { return frame % runtime_->attached().checkpoint_every == 0; }

bool checkpoint_writer::is_awaited() const {
    return runtime_->attached().checkpoint_every <= run::most_every_of_link;
}

// The slot belongs to the job until S6.
void checkpoint_writer::write_awaited(const ring::job& j) {
    if (!is_awaited() || !is_due(j.ring_sequence + 1)) return;
    queue_->copy(copy_->data(), runtime_->state_of(j), bytes_);
    queue_->drain();
    require_written(j.ring_sequence + 1);
}

// A process may die between S5 and the end of the file. Then its state is the newest in the ring until its
// successor begins the next frame. The successor cannot see that state before R2, which makes it READY, so
// one check when it starts is not enough. A frame is found only when the state before it is READY; so a check
// after the search has seen every state that the frame continues from. If no further frame arrives because
// the sender waits for this checkpoint, the check is repeated with each search.
void checkpoint_writer::write_missing(ring::link_ref& states) {
    if (!is_awaited()) return;
    u64 frame = 0;
    for (u32 k = 0; k < states.slots(); ++k)
        if (const ring::slot_ref s = states.ready_slot(k); s && s.ring_sequence != shm::no_number)
            frame = std::max(frame, s.ring_sequence + 1);
    if (frame <= complete_ || !is_due(frame)) return;
    if (copy_of(states, frame)) require_written(frame);
    complete_ = frame;
}

void checkpoint_writer::require_written(u64 frame) {
    const std::string path =
        run::state_path(runtime_->attached().checkpoint_folder, runtime_->attached().stage, frame);
    if (const int failed = write(frame); failed != 0)
        throw_output_error(path, failed, fmt::format("writing the state {}: {}", path, errno_text(failed)));
}

void checkpoint_writer::committed(const ring::job& j) {
    if (!copied_) return;
    {
        const std::lock_guard lock(mutex_);
        due_ = j.ring_sequence + 1;
    }
    changed_.notify_all();
}

// The state may have been made by a process that has died since. Its slot stays READY, because no later state
// follows it (link_ref::free_below).
void checkpoint_writer::write_last(ring::link_ref& states, u64 end) {
    {
        std::unique_lock lock(mutex_);
        if (!changed_.wait_for(lock, std::chrono::nanoseconds(full_disk_patience_ns),
                               [&] { return due_ == 0; })) {
            log::warning(
                "the state before frame {}, at which the run ends, is not written: the file of the one "
                "before is still being written to {}",
                end, runtime_->attached().checkpoint_folder);
            return;
        }
    }
    if (!copy_of(states, end)) return;
    int failed = write(end);
    for (const u64 until = now_ns() + full_disk_patience_ns; failed != 0 && now_ns() < until;) {
        std::this_thread::sleep_for(std::chrono::milliseconds(250));
        failed = write(end);
    }
    if (failed != 0)
        log::warning("the state before frame {}, at which the run ends, can't be written to {}: {}", end,
                     runtime_->attached().checkpoint_folder, errno_text(failed));
}

/// Copies the state before `frame`. Returns false if its file exists, or if the ring does not have it.
bool checkpoint_writer::copy_of(ring::link_ref& states, u64 frame) {
    const attachment& a = runtime_->attached();
    std::error_code ignored;
    if (std::filesystem::exists(run::state_path(a.checkpoint_folder, a.stage, frame), ignored)) return false;
    for (u32 k = 0; k < states.slots(); ++k) {
        const ring::slot_ref s = states.ready_slot(k);
        if (!s || s.ring_sequence + 1 != frame) continue;
        queue_->copy(copy_->data(), runtime_->states()->slot(k) + before_payload, bytes_);
        queue_->drain();
        return true;
    }
    return false;
}

/// Writes the copied state as that before `frame`. Returns 0 or the error number.
int checkpoint_writer::write(u64 frame) {
    const attachment& a = runtime_->attached();
    return run::write_state(a.checkpoint_folder, {a.stage, frame, layout_}, {copy_->host_data(), bytes_});
}

void checkpoint_writer::write_loop() {
    std::unique_lock lock(mutex_);
    u64 failures = 0;
    for (;;) {
        changed_.wait(lock, [&] { return due_ != 0 || ending_; });  // for a thread of this process
        if (due_ == 0) return;
        const u64 frame = due_;
        lock.unlock();
        const int failed = write(frame);
        if (failed != 0 && failures++ == 0)
            log::warning(
                "the checkpoint for frame {} can't be written to {}: {}; further failures are not "
                "logged",
                frame, runtime_->attached().checkpoint_folder, errno_text(failed));
        lock.lock();
        due_ = 0;
        changed_.notify_all();
    }
}

}  // namespace carousel::stages
