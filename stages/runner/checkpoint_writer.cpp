#include "stages/runner/checkpoint_writer.hpp"

#include <fmt/format.h>

#include "core/errors.hpp"
#include "core/log.hpp"
#include "run/checkpoint.hpp"

namespace carousel::stages {

checkpoint_writer::checkpoint_writer(runtime& r)
    : runtime_(&r), queue_(r.context().make_queue()), bytes_(r.state_bytes()), layout_(r.state_layout()) {
    copy_ = r.context().allocate_host(bytes_);
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
    if ((j.ring_sequence + 1) % runtime_->attached().checkpoint_every != 0) return;
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

void checkpoint_writer::committed(const ring::job& j) {
    if (!copied_) return;
    {
        const std::lock_guard lock(mutex_);
        due_ = j.ring_sequence + 1;
    }
    changed_.notify_all();
}

void checkpoint_writer::write_loop() {
    std::unique_lock lock(mutex_);
    u64 failures = 0;
    for (;;) {
        changed_.wait(lock, [&] { return due_ != 0 || ending_; });
        if (due_ == 0) return;
        const u64 frame = due_;
        lock.unlock();
        const attachment& a = runtime_->attached();
        const int failed =
            run::write_state(a.checkpoint_folder, {a.stage, frame, layout_}, {copy_->host_data(), bytes_});
        if (failed != 0 && failures++ == 0)
            log::warning(
                "the checkpoint for frame {} can't be written to {}: {}; further failures are not "
                "logged",
                frame, a.checkpoint_folder, errno_text(failed));
        lock.lock();
        due_ = 0;
    }
}

}  // namespace carousel::stages
