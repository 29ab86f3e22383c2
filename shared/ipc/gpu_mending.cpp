#include "ipc/gpu_mending.hpp"

#include <csignal>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/log.hpp"
#include "core/poll_until.hpp"
#include "ipc/step.hpp"

// CAROUSEL_BUG_...: a rule left out, for the tests' controls.

namespace carousel::ipc {
namespace {

bool readable(int fd) { return events_of(fd, POLLIN) != 0; }

}  // namespace

gpu_mending::~gpu_mending() {
    if (!mender_) return;
    shm::signal_pidfd(mender_->pidfd.get(), SIGKILL);
    (void)events_of(mender_->pidfd.get(), POLLIN, now_ns() + 5 * ns_per_s);
    hands_->reap(*mender_);
}

std::vector<const shm::unique_fd*> gpu_mending::fresh() {
    if (!is_fresh_ || !mender_) return {};
    is_fresh_ = false;
    return {&mender_->pidfd, &mender_->socket};
}

void gpu_mending::trouble(const std::string& why) {
    not_before_ns_ = clock_ns() + mender_rest_ns;
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
#ifndef CAROUSEL_BUG_LEAVES_THE_OTHER_MENDER
    shm::signal_pidfd(pidfd.get(), SIGKILL);
#endif
    return false;
}

void gpu_mending::start(memory& space, int gpu_fd) {
    space_block& s = space.block();
    if (hands_ == nullptr) return trouble("this holder has no program for it: use `carousel hold`");
#if !defined(CAROUSEL_BUG_LOOKS_FOR_NO_MENDER) && !defined(CAROUSEL_BUG_STARTS_BESIDE)
    if (!ended_before(s)) return;
#endif
    try {
        mender_ = hands_->start_mender();
    } catch (const error& e) {
        return trouble(e.what());
    }
    at(step::mender_started);
    const shm::process_id it = mender_->process;
    mend_order o;
    for (const life& l : waiting_) o.epochs.push_back(l.epoch);
    mended_now_ = std::move(waiting_);
    waiting_.clear();
    said_done_ = false, is_fresh_ = true;
    until_ns_ = clock_ns() + mender_patience_ns;
#ifdef CAROUSEL_BUG_TELLS_FIRST
    (void)shm::send_message(mender_->socket.get(), to_text(o), {space.fd(), gpu_fd});
    at(step::mender_told);
#endif
    // Start time first: who reads the pid reads the right one (registry.hpp).
    s.mender_start.store(it.start_time, std::memory_order_release);
    s.mender.store(static_cast<u64>(it.pid), std::memory_order_release);
    at(step::mender_named);
#ifndef CAROUSEL_BUG_TELLS_FIRST
    // If it doesn't hear it, it ends, and is started anew.
    (void)shm::send_message(mender_->socket.get(), to_text(o), {space.fd(), gpu_fd});
    at(step::mender_told);
#endif
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
            at(step::mender_heard);
        }
#ifdef CAROUSEL_BUG_STARTS_BESIDE
        if (!ended && !waiting_.empty()) start(space, gpu_fd);
#endif
        if (!ended) {
#ifndef CAROUSEL_BUG_WAITS_FOR_A_STOPPED_MENDER
            if (clock_ns() > until_ns_) shm::signal_pidfd(mender_->pidfd.get(), SIGKILL);
#endif
            return mended;
        }
#ifdef CAROUSEL_BUG_TAKES_THE_END_FOR_DONE
        for (const life& l : mended_now_) mended.push_back(l.entry);
        mended_now_.clear();
#endif
        hands_->reap(*mender_);
        mender_.reset();
        if (!said_done_) trouble("its program (carousel-alloc) ended before it was done");
#ifndef CAROUSEL_BUG_FORGETS_THE_TOLD
        waiting_.insert(waiting_.end(), mended_now_.begin(), mended_now_.end());
#endif
        mended_now_.clear();
    }
    if (!waiting_.empty() && clock_ns() >= not_before_ns_) start(space, gpu_fd);
    return mended;
}

}  // namespace carousel::ipc
