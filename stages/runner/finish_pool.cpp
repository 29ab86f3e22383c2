#include "stages/runner/finish_pool.hpp"

#include <algorithm>
#include <utility>

#include "core/signal_stack.hpp"

namespace carousel::stages {

finish_pool::finish_pool(unsigned threads, step arrive, step finish)
    : arrive_(std::move(arrive)), finish_(std::move(finish)) {
    try {
        threads_.emplace_back([this] { arrival_loop(); });
        for (unsigned k = 0; k < threads; ++k) threads_.emplace_back([this] { finish_loop(); });
    } catch (...) {  // a thread could not be started: the running threads must end before the error is
                     // reported
        end();
        throw;
    }
}

finish_pool::~finish_pool() { end(); }

void finish_pool::end() noexcept {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
    }
    submitted_changed_.notify_all();
    work_.notify_all();
    for (std::thread& t : threads_) t.join();
}

void finish_pool::submit(frame_in_work& f) {
    {
        const std::lock_guard lock(mutex_);
        f.finished = false;
        submitted_.push_back(&f);
    }
    submitted_changed_.notify_one();
}

void finish_pool::await(frame_in_work& f) {
    held_lock lock(mutex_);
    finished_.wait(lock, [&] { return f.finished; });
}

void finish_pool::arrival_loop() {
    const signal_stack for_overflows;
    held_lock lock(mutex_);
    for (;;) {
        submitted_changed_.wait(lock, [&] { return !submitted_.empty() || ending_; });
        if (submitted_.empty()) return;
        frame_in_work* f = submitted_.front();
        submitted_.pop_front();
        lock.unlock();
        arrive_(*f);
        lock.lock();
        arrived_.push_back(f);
        work_.notify_one();
    }
}

// A thread takes a whole frame rather than a part of a frame, because packing a picture takes less CPU time
// on one thread than on several.
void finish_pool::finish_loop() {
    const signal_stack for_overflows;
    held_lock lock(mutex_);
    for (;;) {
        work_.wait(lock, [&] { return !arrived_.empty() || !open_.empty() || ending_; });
        if (!arrived_.empty()) {
            frame_in_work* f = arrived_.front();
            arrived_.pop_front();
            lock.unlock();
            finish_(*f);
            lock.lock();
            f->finished = true;
            finished_.notify_all();
        } else if (!open_.empty()) {
            take_part(lock, *open_.front());
        } else {
            return;
        }
    }
}

void finish_pool::run_parts(u32 parts, const std::function<void(u32)>& body) {
    if (parts == 0) return;
    loop l{parts, &body};
    held_lock lock(mutex_);
    open_.push_back(&l);
    for (u32 k = 1; k < std::min<u64>(parts, threads_.size()); ++k) work_.notify_one();
    while (l.next < l.count) take_part(lock, l);
    l.over.wait(lock, [&] { return l.done == l.count; });
    if (l.failure) std::rethrow_exception(l.failure);
}

void finish_pool::close(loop& l) { open_.erase(std::find(open_.begin(), open_.end(), &l)); }

void finish_pool::take_part(held_lock& lock, loop& of) {
    const u32 part = of.next++;
    if (of.next == of.count) close(of);
    lock.unlock();
    std::exception_ptr failure;
    try {
        (*of.body)(part);
    } catch (...) {
        failure = std::current_exception();
    }
    lock.lock();
    if (failure && !of.failure) {
        of.failure = failure;
        if (of.next < of.count) {  // the next lines ensure that no thread begins another part
            of.done += of.count - of.next;
            of.next = of.count;
            close(of);
        }
    }
    // Called with the lock held, because the loop is destroyed as soon as its owner gets the lock.
    if (++of.done == of.count) of.over.notify_one();
}

}  // namespace carousel::stages
