#include "ipc/gpu_repair.hpp"

#include <csignal>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/log.hpp"
#include "ipc/step.hpp"

// Each macro CAROUSEL_BUG_... omits one rule, so that control tests can run with a seeded bug.

namespace carousel::ipc {
namespace {

bool readable(int fd) { return events_of(fd, POLLIN) != 0; }

}  // namespace

gpu_repair::~gpu_repair() {
    if (!repairer_) return;
    shm::signal_pidfd(repairer_->pidfd.get(), SIGKILL);
    (void)events_of(repairer_->pidfd.get(), POLLIN, now_ns() + 5 * ns_per_s);
    helper_->reap(*repairer_);
}

std::vector<const shm::unique_fd*> gpu_repair::fresh() {
    if (!is_fresh_ || !repairer_) return {};
    is_fresh_ = false;
    return {&repairer_->pidfd, &repairer_->socket};
}

void gpu_repair::report_failure(const std::string& why) {
    not_before_ns_ = clock_ns() + repairer_retry_ns;
    if (!failure_reported_)
        log::warning(
            "repairing GPU memory after a death: {}; retrying every second; until it succeeds, the dead "
            "client's GPU memory stays in use",
            why);
    failure_reported_ = true;
}

// Returns true if no repair process of a previous holder is running. If one is running, sends it SIGKILL and
// returns false.
bool gpu_repair::ended_before(space_block& s) const {
    const shm::process_id before{static_cast<i32>(load(s.repairer)), load(s.repairer_start)};
    if (before.pid == 0) return true;
    const shm::unique_fd pidfd(shm::open_pidfd(before));
    if (!pidfd || readable(pidfd.get())) return true;
#ifndef CAROUSEL_BUG_KEEPS_OTHER_REPAIRER
    shm::signal_pidfd(pidfd.get(), SIGKILL);
#endif
    return false;
}

void gpu_repair::start(memory& space, int gpu_fd) {
    space_block& s = space.block();
    if (helper_ == nullptr) return report_failure("this holder has no repair program: use `carousel hold`");
#if !defined(CAROUSEL_BUG_IGNORES_OTHER_REPAIRER) && !defined(CAROUSEL_BUG_STARTS_CONCURRENTLY)
    if (!ended_before(s)) return;
#endif
    try {
        repairer_ = helper_->start_repairer();
    } catch (const error& e) {
        return report_failure(e.what());
    }
    at(step::repairer_started);
    const shm::process_id it = repairer_->process;
    repair_order o;
    for (const incarnation& l : waiting_) o.epochs.push_back(l.epoch);
    in_repair_ = std::move(waiting_);
    waiting_.clear();
    done_reported_ = false, is_fresh_ = true;
    until_ns_ = clock_ns() + repairer_timeout_ns;
#ifdef CAROUSEL_BUG_NOTIFIES_FIRST
    (void)shm::send_message(repairer_->socket.get(), to_text(o), {space.fd(), gpu_fd});
    at(step::repairer_notified);
#endif
    // The start time is stored first, so that a process that reads the pid and then the start time gets
    // matching values (registry.hpp).
    s.repairer_start.store(it.start_time, std::memory_order_release);
    s.repairer.store(static_cast<u64>(it.pid), std::memory_order_release);
    at(step::repairer_named);
#ifndef CAROUSEL_BUG_NOTIFIES_FIRST
    // If the process does not receive this message, it exits and is started again.
    (void)shm::send_message(repairer_->socket.get(), to_text(o), {space.fd(), gpu_fd});
    at(step::repairer_notified);
#endif
}

std::vector<u32> gpu_repair::advance(memory& space, int gpu_fd) {
    std::vector<u32> repaired;
    if (repairer_) {
        shm::message m;
        // This is checked before the receive: a process that has exited has already sent its reply, so the
        // receive gets that reply.
        const bool ended = readable(repairer_->pidfd.get());
        if (!done_reported_ && shm::receive_message(repairer_->socket.get(), m) == shm::receive_status::ok &&
            m.text == repaired_text) {
            for (const incarnation& l : in_repair_) repaired.push_back(l.entry);
            in_repair_.clear();
            done_reported_ = true, failure_reported_ = false;
            repairer_->socket.reset();  // so that the end of the connection does not wake the holder
            at(step::repairer_replied);
        }
#ifdef CAROUSEL_BUG_STARTS_CONCURRENTLY
        if (!ended && !waiting_.empty()) start(space, gpu_fd);
#endif
        if (!ended) {
#ifndef CAROUSEL_BUG_WAITS_FOR_STOPPED_REPAIRER
            if (clock_ns() > until_ns_) shm::signal_pidfd(repairer_->pidfd.get(), SIGKILL);
#endif
            return repaired;
        }
#ifdef CAROUSEL_BUG_TREATS_EXIT_AS_DONE
        for (const incarnation& l : in_repair_) repaired.push_back(l.entry);
        in_repair_.clear();
#endif
        helper_->reap(*repairer_);
        repairer_.reset();
        if (!done_reported_) report_failure("its program (carousel-alloc) ended before it finished");
#ifndef CAROUSEL_BUG_DROPS_REPAIRS_IN_PROGRESS
        waiting_.insert(waiting_.end(), in_repair_.begin(), in_repair_.end());
#endif
        in_repair_.clear();
    }
    if (!waiting_.empty() && clock_ns() >= not_before_ns_) start(space, gpu_fd);
    return repaired;
}

}  // namespace carousel::ipc
