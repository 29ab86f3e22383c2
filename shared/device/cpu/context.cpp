#include "device/cpu/context.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/errors.hpp"
#include "core/log.hpp"
#include "core/resource_limit.hpp"
#include "core/signal_stack.hpp"
#include "device/cpu/memfd.hpp"
#include "device/cpu/pool.hpp"
#include "device/cpu/status.hpp"
#include "device/device_failure.hpp"
#include "shm/block_guard.hpp"

namespace carousel::device::cpu {
namespace {

/// Zero-filled, page-aligned memory private to this process.
class private_memory final : public mapping {
public:
    explicit private_memory(u64 bytes) {
        bytes_ = bytes == 0 ? 1 : bytes;
        void* at = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) {
            // errno is saved now, because available_host_bytes() reads files and changes it
            const int why = errno;
            throw device_error(fmt::format(
                "CPU backend: allocating {} bytes of memory: {}; {:.1f} MiB are free; use a smaller size",
                bytes_, no_memory_text(why), static_cast<double>(available_host_bytes()) / 1048576.0));
        }
        ::madvise(at, bytes_, MADV_HUGEPAGE);
        data_ = static_cast<std::byte*>(at);
        host_ = data_;
    }
    ~private_memory() override {
        if (::munmap(host_, bytes_) != 0)
            log::error("unmapping {} bytes failed: {}", bytes_, errno_text(errno));
    }
};

// size in bytes; a copy of fewer bytes is not faster if a second core takes part
constexpr u64 copy_grain = 512 * 1024;

std::shared_ptr<const failure> current_failure() {
    auto why = std::make_shared<failure>();
    try {
        throw;
    } catch (const error& e) {
        *why = {e.code(), e.what()};
    } catch (const std::exception& e) {
        *why = {exit_code::stage_exception, fmt::format("a task on the CPU queue threw: {}", e.what())};
    } catch (...) {
        *why = {exit_code::stage_exception,
                "a task on the CPU queue threw an object that is not a std::exception"};
    }
    return why;
}

}  // namespace

context::context(unsigned threads, bool simulates_gpu)
    : pool_(std::make_shared<pool>(threads)), simulates_gpu_(simulates_gpu) {
    if (simulates_gpu_ && injected_failure() != 0) throw_injected_failure("cuInit", true);
}

std::string context::description() const {
    return fmt::format("CPU, {} thread{}", pool_->size(), pool_->size() == 1 ? "" : "s");
}

std::unique_ptr<device::queue> context::make_queue() {
    return std::make_unique<queue>(pool_, simulates_gpu_);
}

std::unique_ptr<device::event> context::make_event(std::atomic<u64>* shared) {
    return std::make_unique<event>(shared);
}

std::unique_ptr<device::imported_event> context::import_event(device_kind from, const device::event::handle&,
                                                              const std::atomic<u64>* shared) {
    if (from != device_kind::cpu || shared == nullptr) return nullptr;  // only CUDA can query a CUDA event
    return std::make_unique<imported_event>(shared);
}

std::unique_ptr<mapping> context::map(const memory_handle& handle, access wanted) {
    if (handle.kind != memory_kind::memfd) {
        throw device_error(fmt::format(
            "a stage on the CPU can't map {} memory of GPU {}; a link with a CPU stage at an end needs "
            "memfd memory",
            name_of(handle.kind), handle.uuid));
    }
    try {
        return std::make_unique<memfd_mapping>(handle, wanted);
    } catch (const shm_error& e) {
        throw device_error(fmt::format("CPU backend: {}", e.what()));
    }
}

std::unique_ptr<mapping> context::allocate(u64 bytes) { return std::make_unique<private_memory>(bytes); }

queue::queue(std::shared_ptr<pool> threads, bool simulates_gpu)
    : pool_(std::move(threads)), simulates_gpu_(simulates_gpu) {
    const signals_blocked quiet;
    try {
        worker_ = std::thread([this] { work_loop(); });
    } catch (const std::system_error& e) {
        throw out_of_resources(fmt::format("CPU backend: the queue's thread could not be started: {}",
                                           no_thread_text(e.code().value())));
    }
}

queue::~queue() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    work_.notify_one();
    worker_.join();
}

void queue::push(entry&& e) {
    bool wake = false;
    {
        const std::lock_guard lock(mutex_);
        if (failure_) throw error(failure_->code, failure_->message);
        if (e.on) e.number = e.on->begin();
        waiting_.push_back(std::move(e));
        wake = sleeping_;
    }
    if (wake) work_.notify_one();
}

void queue::submit(std::function<void(pool&)> task) {
    CAROUSEL_ASSERT(task);
    push({.task = std::move(task), .on = nullptr});
}

void queue::record(const std::shared_ptr<fence>& on, std::atomic<u64>* word, u64 tag) {
    push({.task = {}, .on = on, .word = word, .tag = tag});
}

void queue::run(entry& e) {
    if (simulates_gpu_ && !failure_ && injected_failure() != 0) {
        // from now on nothing of this queue completes
        try {
            throw_injected_failure("a kernel", false);
        } catch (...) {
            auto why = current_failure();
            const std::lock_guard lock(mutex_);
            failure_ = std::move(why);
        }
    }
    if (e.on) {
        if (failure_) {
            e.on->fail(e.number, failure_);
            return;
        }
        if (e.word != nullptr) {
            const shm::block_open open;
            e.word->store(e.tag, std::memory_order_release);
        }
        e.on->complete(e.number);
        return;
    }
    if (failure_) return;
    try {
        e.task(*pool_);
    } catch (...) {
        auto why = current_failure();
        // Only this thread writes failure_, so this thread may read failure_ without the mutex; enqueuing
        // threads read it under the mutex.
        const std::lock_guard lock(mutex_);
        failure_ = std::move(why);
    }
}

void queue::work_loop() {
    name_this_thread("cpu queue");
    const signal_stack for_overflows;
    std::vector<entry> mine;
    for (;;) {
        {
            std::unique_lock lock(mutex_);
            sleeping_ = true;
            work_.wait(lock, [&] { return stop_ || !waiting_.empty(); });
            sleeping_ = false;
            if (waiting_.empty()) return;  // the queue is stopped, and every entry has run
            mine.swap(waiting_);
        }
        for (entry& e : mine) {
            run(e);
            e = {};  // destroys a task's captures as soon as the task is done
        }
        mine.clear();
    }
}

void queue::drain() {
    const auto here = std::make_shared<fence>();
    record(here, nullptr, 0);
    here->wait();
}

void queue::fault() {
    if (simulates_gpu_) return fail_from_now_on(error_illegal_address);
    throw error(exit_code::stage_exception,
                "a GPU fault was requested on a CPU queue, but only a GPU can have such a fault");
}

void queue::copy(void* to, const void* from, u64 bytes) {
    if (bytes == 0) return;
    submit([to, from, bytes](pool& threads) {
        threads.parallel_for(bytes, copy_grain, [&](u64 begin, u64 end, unsigned) {
            std::memcpy(static_cast<std::byte*>(to) + begin, static_cast<const std::byte*>(from) + begin,
                        end - begin);
        });
    });
}

void queue::fill(void* to, u8 value, u64 bytes) {
    if (bytes == 0) return;
    submit([to, value, bytes](pool& threads) {
        threads.parallel_for(bytes, copy_grain, [&](u64 begin, u64 end, unsigned) {
            std::memset(static_cast<std::byte*>(to) + begin, value, end - begin);
        });
    });
}

void queue::status(const status_step& step) {
    submit([step](pool&) {
        for (u32 k = 0; k < step.count; ++k)
            if (!status_equals(step.checks[k].at, step.checks[k].expected))
                std::atomic_ref<u32>(*step.torn).fetch_add(1, std::memory_order_relaxed);
        for (u32 k = 0; k < step.writes; ++k)
            if (step.write[k] != nullptr) store_status(step.write[k], step.value);
    });
}

u64 fence::begin() noexcept {
    const std::lock_guard lock(mutex_);
    return ++begun_;
}

void fence::complete(u64 number) noexcept {
    {
        const std::lock_guard lock(mutex_);
        completed_ = number;
    }
    changed_.notify_all();
}

void fence::fail(u64 number, std::shared_ptr<const failure> why) noexcept {
    {
        const std::lock_guard lock(mutex_);
        completed_ = number;
        failure_ = std::move(why);
    }
    changed_.notify_all();
}

void fence::throw_if_failed() const {
    if (failure_) throw error(failure_->code, failure_->message);
}

bool fence::done() {
    const std::lock_guard lock(mutex_);
    throw_if_failed();
    return completed_ == begun_;
}

void fence::wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return completed_ == begun_ || failure_; });
    throw_if_failed();
}

void event::record(device::queue& on, u64 tag) {
    CAROUSEL_ASSERT(on.kind() == device_kind::cpu);
    static_cast<queue&>(on).record(fence_, shared_, tag);
}

}  // namespace carousel::device::cpu
