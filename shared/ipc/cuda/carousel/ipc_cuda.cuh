#pragma once
// The GPU half of <carousel/ipc.hpp>, for .cu files: memory of a space on a GPU, and queues into which
// kernels of one process push and from which kernels of another process pop. `carousel hold lab --device
// cuda:0` holds this memory.
//
//   auto lab = carousel::ipc::open("lab");
//   carousel::ipc::gpu_space gpu(lab);                     // maps the memory once, for the current GPU
//   auto samples = gpu.queue<sample>("samples", 1 << 16);
//   produce<<<64, 256, 0, stream>>>(samples.device());     // in the kernel: q.try_push(s), q.try_pop(s), ...
//   auto frames = gpu.pool("frames", 256 << 20);
//   auto block = frames.acquire(8 << 20, 50ms);            // data() is a device pointer of this process
//
// Crashes. As on the CPU, the objects that a process held are recovered exactly once, after the process's
// fence. Until then no process gets any of these objects. If a process dies while it writes an element, the
// queue is blocked for about half a second: the holder starts a program that repairs the words on the GPU.
// Under MPS, if a process faults, or if it dies while one of its kernels runs endlessly, every client of the
// MPS server is ended; the space survives, because its holder does not use CUDA. In that case, too, the end
// of the process serves as the fence: no measurement has shown that GPU work of a process writes anything
// after the process has ended.
//
// Words. Only kernels change the words of a gpu_space's queue: the CPU can read its state(), but only kernels
// can push and pop. Only the CPU changes the words of a pool: kernels use blocks, but can't acquire them.
//
// Time. The try_... functions never wait. Functions that wait have a timeout, which is limited to
// longest_kernel_wait_ns. If the GPU is time-sliced, the other process doesn't run while a kernel waits for
// it; therefore wait on the host if possible.
//
// Memory order. Data that a kernel thread has written before push, submit or commit is visible to the thread
// that gets the element (release and acquire at system scope), also if that thread runs on another GPU.
//
// Threads. A view is passed by value to kernels of the process that created it; these kernels must end before
// the last copy of the gpu_space is destroyed. The host functions may be called by any thread.
//
// Errors are those of <carousel/ipc.hpp>, and device_error for CUDA failures.

#include <cstddef>
#include <memory>
#include <string>

#include "ipc/carousel/ipc.hpp"
#include "ipc/cuda/gpu_mapping.hpp"
#include "ipc/cuda/queue_view.cuh"
#include "ipc/cuda/work_queue_view.cuh"

namespace carousel::ipc {

/// An approximate state: it is not a snapshot, because kernels change the words while they are read.
struct gpu_queue_state {
    u32 waiting = 0;      ///< elements not yet taken
    u32 claimed = 0;      ///< elements that are being written
    u32 taken = 0;        ///< popped or leased elements that are not yet consumed
    u64 lost = 0;         ///< elements that a process had popped when it died
    u64 tombs = 0;        ///< cells that a process had claimed and not filled when it died
    std::string holders;  ///< owners of claimed and taken elements: "process 12 (3), process 14, which has
                          ///< died"
};

/// An approximate state: it is not a snapshot, because kernels change the words while they are read.
struct gpu_work_state {
    u32 waiting = 0, claimed = 0, dead_letters = 0;
    std::string holders;  ///< owners of claims
};

/// A primitive in GPU memory; this object keeps the memory mapped.
class gpu_primitive {
public:
    [[nodiscard]] const std::string& name() const noexcept { return name_; }

protected:
    gpu_primitive(std::shared_ptr<gpu_mapping> on, u32 place, std::string name)
        : on_(std::move(on)), place_(place), name_(std::move(name)) {}
    [[nodiscard]] u32 epoch() const;
    std::shared_ptr<gpu_mapping> on_;
    u32 place_;
    std::string name_;
};

/// A queue in GPU memory, without its type.
class gpu_queue_base : public gpu_primitive {
public:
    /// Copies the queue's words to the host and counts them on the host; does not wait for any kernel.
    [[nodiscard]] gpu_queue_state state() const;

protected:
    using gpu_primitive::gpu_primitive;
    [[nodiscard]] queue_parts<u64> parts() const;
};

/// Passes elements of T from any kernel to any kernel. The elements of one thread stay in order. T must be
/// trivially copyable, be aligned to at most 8 bytes, and have the same name in all programs.
template <class T>
class gpu_queue : public gpu_queue_base {
public:
    /// Returns the view for kernels of this process.
    [[nodiscard]] queue_view<T> device() const { return {parts(), epoch()}; }

private:
    friend class gpu_space;
    using gpu_queue_base::gpu_queue_base;
};

/// A work queue in GPU memory, without its type.
class gpu_work_queue_base : public gpu_primitive {
public:
    /// Copies the queue's words to the host and counts them on the host; does not wait for any kernel.
    [[nodiscard]] gpu_work_state state() const;

protected:
    using gpu_primitive::gpu_primitive;
    [[nodiscard]] task_parts<u64> parts() const;
};

/// Distributes tasks of T to kernels of any processes, in no particular order. Each task is committed once,
/// or becomes a dead letter after max_attempts attempts. All other effects of a kernel happen at least once,
/// so write a result to a place that the task determines (for example, the task contains a block's offset),
/// and commit afterwards. T must meet the conditions of gpu_queue.
template <class T>
class gpu_work_queue : public gpu_work_queue_base {
public:
    /// Returns the view for kernels of this process.
    [[nodiscard]] work_queue_view<T> device() const { return {parts(), epoch()}; }

private:
    friend class gpu_space;
    using gpu_work_queue_base::gpu_work_queue_base;
};

struct stream_wait;

/// With this view, kernels that run after acquire() check whether their stream has its permit.
class permit_view {
public:
    permit_view(const u32* at, u32 granted) : at_(at), granted_(granted) {}
    /// True if the stream got the permit in time.
    [[nodiscard]] __device__ bool granted() const {
        return at_ != nullptr && *static_cast<const volatile u32*>(at_) == granted_;
    }

private:
    const u32* at_;
    u32 granted_;
};

enum class permit_now : u8 {
    pending,
    granted,
    expired,  ///< the wait timed out: the stream has continued without a permit
    closed  ///< either the holder has released the stream because this process was late, or this process has
            ///< dropped the permit
};

/// A permit that a stream has requested. If the object is destroyed without release(), the permit is given
/// back at once, even while kernels that use the permit run. If the object is destroyed before the permit is
/// granted, the permit is given back as soon as it is granted, and kernels read granted() as false. If the
/// process dies, the permit is given back after the fence.
class stream_permit {
public:
    stream_permit(stream_permit&&) noexcept = default;
    stream_permit& operator=(stream_permit&& other) noexcept;
    ~stream_permit() { drop(); }
    /// Returns the present state of the request; called on the host.
    [[nodiscard]] permit_now now() const;
    /// Returns the view for kernels that the stream runs after acquire().
    [[nodiscard]] permit_view device() const;
    /// Enqueues, on the stream, an operation that gives the permit back.
    void release(cudaStream_t stream);

private:
    friend class gpu_semaphore;
    stream_permit(std::shared_ptr<gpu_mapping> on, std::shared_ptr<stream_wait> wait)
        : on_(std::move(on)), wait_(std::move(wait)) {}
    void drop() noexcept;
    std::shared_ptr<gpu_mapping> on_;
    std::shared_ptr<stream_wait> wait_;
};

/// A semaphore of the space for which streams can wait. On the CPU, the class shared_semaphore
/// accesses the same semaphore.
class gpu_semaphore : public gpu_primitive {
public:
    /// Makes the stream wait until it has a permit or `timeout` expires; the timeout begins when the stream
    /// reaches this point. The host does not wait. The stream waits at a word that this process and the
    /// holder can write, so the death of another process can't block it. Later kernels check
    /// device().granted(). Streams of one process that wait for the same semaphore enter the semaphore's line
    /// one after another; at most 16 waits are possible at a time. Throws config_error if the timeout is not
    /// above 0 or exceeds an hour, or if there are too many concurrent waits.
    [[nodiscard]] stream_permit acquire(cudaStream_t stream, nanoseconds timeout);

private:
    friend class gpu_space;
    using gpu_primitive::gpu_primitive;
};

/// The GPU memory of an open space, in this process. Copies share one mapping. The destructor of the last
/// copy waits for this process's kernels.
class gpu_space {
public:
    /// Maps the memory for the calling thread's current GPU. Throws config_error if the space has no GPU
    /// memory, or if this process has already mapped it. Throws device_error if that GPU can't access the
    /// memory.
    explicit gpu_space(const space& s);

    /// Returns a pool with `bytes` bytes of GPU memory, allocated in units of `unit_bytes` (a multiple of
    /// 4096). The blocks' data() is a device pointer.
    [[nodiscard]] shared_pool pool(const std::string& name, u64 bytes, u64 unit_bytes = 65536);
    /// Returns a queue of `elements` elements of T in GPU memory.
    template <class T>
    [[nodiscard]] gpu_queue<T> queue(const std::string& name, u32 elements) {
        return gpu_queue<T>(on_, queue_place(name, elements, sizeof(T), type_tag<T>()), name);
    }
    /// `max_attempts`: 1 to 15.
    template <class T>
    [[nodiscard]] gpu_work_queue<T> work_queue(const std::string& name, u32 tasks, u32 max_attempts = 3) {
        return gpu_work_queue<T>(on_, work_queue_place(name, tasks, sizeof(T), max_attempts, type_tag<T>()),
                                 name);
    }
    /// `permits`: 1 to 4096.
    [[nodiscard]] gpu_semaphore semaphore(const std::string& name, u32 permits);
    /// Converts an offset that another process has sent (held_block::offset) to an address in this process.
    /// Throws config_error if the range is outside the memory.
    [[nodiscard]] std::byte* at(u64 offset, u64 bytes = 1) const;
    /// Converts a pointer that points into this process's mapping to an offset, which can be sent to other
    /// processes. Throws config_error if the pointer is outside the mapping.
    [[nodiscard]] u64 offset_of(const void* pointer) const;
    [[nodiscard]] u64 bytes() const noexcept { return on_->bytes(); }
    [[nodiscard]] int ordinal() const noexcept { return on_->ordinal(); }

private:
    [[nodiscard]] u32 queue_place(const std::string& name, u32 elements, u64 bytes_each, u64 type) const;
    [[nodiscard]] u32 work_queue_place(const std::string& name, u32 tasks, u64 bytes_each, u32 attempts,
                                       u64 type) const;
    std::shared_ptr<gpu_mapping> on_;
};

}  // namespace carousel::ipc
