#include "ipc/gpu_mending.hpp"

#include <poll.h>

#include <csignal>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/log.hpp"

namespace carousel::ipc {
namespace {

bool readable(int fd) {
    pollfd p{fd, POLLIN, 0};
    return ::poll(&p, 1, 0) > 0;
}

}  // namespace

gpu_mending::~gpu_mending() {
    if (!mender_) return;
    shm::signal_pidfd(mender_->pidfd.get(), SIGKILL);
    pollfd p{mender_->pidfd.get(), POLLIN, 0};
    (void)::poll(&p, 1, 5000);
    hands_->reap(*mender_);
}

std::vector<const shm::unique_fd*> gpu_mending::fresh() {
    if (!is_fresh_ || !mender_) return {};
    is_fresh_ = false;
    return {&mender_->pidfd, &mender_->socket};
}

void gpu_mending::trouble(const std::string& why) {
    not_before_ns_ = now_ns() + mender_rest_ns;
    if (!told_trouble_)
        log::warning(
            "mending GPU memory behind a death: {}; it is tried again each second, and until then "
            "what the dead had there stays its own",
            why);
    told_trouble_ = true;
}

// A mender of a holder before this one: it may still mend.
bool gpu_mending::ended_before(space_block& s) const {
    const shm::process_id before{static_cast<i32>(load(s.mender)), load(s.mender_start)};
    if (before.pid == 0) return true;
    const shm::unique_fd pidfd(shm::open_pidfd(before));
    if (!pidfd || readable(pidfd.get())) return true;
    shm::signal_pidfd(pidfd.get(), SIGKILL);
    return false;
}

void gpu_mending::start(memory& space, int gpu_fd) {
    space_block& s = space.block();
    if (hands_ == nullptr) return trouble("this holder has no program for it: use `carousel hold`");
    if (!ended_before(s)) return;
    try {
        mender_ = hands_->start_mender();
    } catch (const error& e) {
        return trouble(e.what());
    }
    // Start time first: who reads the pid reads the right one (registry.hpp).
    s.mender_start.store(mender_->process.start_time, std::memory_order_release);
    s.mender.store(static_cast<u64>(mender_->process.pid), std::memory_order_release);
    mend_order o;
    for (const life& l : waiting_) o.epochs.push_back(l.epoch);
    mended_now_ = std::move(waiting_);
    waiting_.clear();
    said_done_ = false, is_fresh_ = true;
    until_ns_ = now_ns() + mender_patience_ns;
    // If it doesn't hear it, it ends, and is started anew.
    (void)shm::send_message(mender_->socket.get(), to_text(o), {space.fd(), gpu_fd});
}

std::vector<u32> gpu_mending::go_on(memory& space, int gpu_fd) {
    std::vector<u32> mended;
    if (mender_) {
        shm::message m;
        const bool ended = readable(mender_->pidfd.get());  // before the look: what it has said is there then
        if (!said_done_ && shm::receive_message(mender_->socket.get(), m) == shm::receive_status::ok &&
            m.text == mended_text) {
            for (const life& l : mended_now_) mended.push_back(l.entry);
            mended_now_.clear();
            said_done_ = true, told_trouble_ = false;
            mender_->socket.reset();  // whose end need wake nobody
        }
        if (!ended) {
            if (now_ns() > until_ns_) shm::signal_pidfd(mender_->pidfd.get(), SIGKILL);
            return mended;
        }
        hands_->reap(*mender_);
        mender_.reset();
        if (!said_done_) trouble("its program (carousel-alloc) ended before it was done");
        waiting_.insert(waiting_.end(), mended_now_.begin(), mended_now_.end());
        mended_now_.clear();
    }
    if (!waiting_.empty() && now_ns() >= not_before_ns_) start(space, gpu_fd);
    return mended;
}

}  // namespace carousel::ipc
