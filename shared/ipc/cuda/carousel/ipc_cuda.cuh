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
// Crashes. As on the CPU, objects that a process held are recovered after its fence, exactly once. Until then
// no process gets any of them: an element that a dead process was writing blocks the queue for about half a
// second, in which the holder starts a program that repairs the words on the GPU. Under MPS a fault, or a
// death in a kernel that does not end, ends every client of the MPS server; the space survives, because its
// holder uses no CUDA. In that case, too, the fence is the end of the process: in no measurement did the
// process's work write anything after that end.
//
// Words. A queue of a gpu_space belongs to kernels: the CPU reads its state() and uses kernels to push or
// pop. A pool's words belong to the CPU: kernels use blocks, but don't acquire them.
//
// Time. try_... never wait. Functions that wait take a timeout, limited to longest_kernel_wait_ns: under time
// slicing the awaited process doesn't run meanwhile, so wait on the host where you can.
//
// Memory order. Data that a kernel thread has written before push, submit or commit is visible to the thread
// that gets the element (release and acquire at the system's scope), on another GPU as well.
//
// Threads. Views are passed by value to kernels of the process that created them; the kernels of a view must
// end before the last copy of its gpu_space is destroyed. The host functions may be called by any thread.
//
// Errors as in <carousel/ipc.hpp>, and device_error for CUDA failures.

#include <cstddef>
#include <memory>
#include <string>

#include "ipc/carousel/ipc.hpp"
#include "ipc/cuda/gpu_mapping.hpp"
#include "ipc/cuda/queue_view.cuh"
#include "ipc/cuda/work_queue_view.cuh"

namespace carousel::ipc {

/// The state at some instant, but not a snapshot, because kernels continue meanwhile.
struct gpu_queue_state {
    u32 waiting = 0;      ///< elements not yet taken
    u32 claimed = 0;      ///< being written
    u32 taken = 0;        ///< popped or leased elements that are not yet consumed
    u64 lost = 0;         ///< elements that a process had popped when it died
    u64 tombs = 0;        ///< cells that a process had claimed and not filled when it died
    std::string holders;  ///< owners of claimed and taken elements: "process 12 (3), process 14, which has
                          ///< died"
};

/// The state at some instant, but not a snapshot, because kernels continue meanwhile.
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
    /// Copies the queue's words to the host and counts; waits for no kernel.
    [[nodiscard]] gpu_queue_state state() const;

protected:
    using gpu_primitive::gpu_primitive;
    [[nodiscard]] queue_parts<u64> parts() const;
};

/// Passes elements of T from any kernel to any kernel, in order per thread. T: trivially copyable, aligned to
/// at most 8 bytes, and of the same name in all programs.
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
    /// Copies the queue's words to the host and counts; waits for no kernel.
    [[nodiscard]] gpu_work_state state() const;

protected:
    using gpu_primitive::gpu_primitive;
    [[nodiscard]] task_parts<u64> parts() const;
};

/// Tasks of T for kernels of any process, in no order: each is committed once, or becomes a dead letter after
/// max_attempts attempts. A kernel's other effects happen at least once: write a result to a place that the
/// task determines (for example by a block's offset in the task), and commit afterwards. T: as for gpu_queue.
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

/// Shows kernels after acquire() whether their stream has its permit.
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
    expired,  ///< timed out: the stream has continued without a permit
    closed    ///< the holder released the stream because this process was late, or the permit was dropped
};

/// A permit that a stream has requested. Destroying the object without release() gives the permit back at
/// once, even while kernels that have the permit run. A permit that is not granted yet is given back as soon
/// as it is granted, and granted() is then false for kernels. If the process dies, the permit is given back
/// after the fence.
class stream_permit {
public:
    stream_permit(stream_permit&&) noexcept = default;
    stream_permit& operator=(stream_permit&& other) noexcept;
    ~stream_permit() { drop(); }
    /// The state of the request now, for the host.
    [[nodiscard]] permit_now now() const;
    /// Returns the view for kernels that the stream runs after acquire().
    [[nodiscard]] permit_view device() const;
    /// Gives the permit back, in stream order.
    void release(cudaStream_t stream);

private:
    friend class gpu_semaphore;
    stream_permit(std::shared_ptr<gpu_mapping> on, std::shared_ptr<stream_wait> wait)
        : on_(std::move(on)), wait_(std::move(wait)) {}
    void drop() noexcept;
    std::shared_ptr<gpu_mapping> on_;
    std::shared_ptr<stream_wait> wait_;
};

/// A semaphore of the space for streams, shared with shared_semaphore.
class gpu_semaphore : public gpu_primitive {
public:
    /// The stream waits until it has a permit or `timeout` expires, counted from the time when the stream
    /// reaches this point; the host does not wait. The stream waits at a word that this process and the
    /// holder can write, so no death blocks it. Later kernels check device().granted(). Streams of one
    /// process that wait for the same semaphore occupy consecutive places in its queue of waiters; at most 16
    /// at a time. Throws config_error if the timeout is not above 0 and at most an hour, or if there are too
    /// many concurrent waits.
    [[nodiscard]] stream_permit acquire(cudaStream_t stream, nanoseconds timeout);

private:
    friend class gpu_space;
    using gpu_primitive::gpu_primitive;
};

/// The GPU memory of an open space, in this process. Copies share one mapping; destroying the last copy waits
/// for this process's kernels.
class gpu_space {
public:
    /// Maps the memory for the calling thread's current GPU. Throws config_error if the space has no GPU
    /// memory or it is already mapped; device_error if that GPU can't access it.
    explicit gpu_space(const space& s);

    /// Returns a pool with `bytes` bytes of GPU memory, allocated in units of `unit_bytes` (a multiple of
    /// 4096). The blocks' data() is a device pointer.
    [[nodiscard]] shared_pool pool(const std::string& name, u64 bytes, u64 unit_bytes = 65536);
    /// A queue of `elements` elements of T in GPU memory.
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
    /// Returns the address in this process for an offset from another process (held_block::offset). Throws
    /// config_error if the range is outside the memory.
    [[nodiscard]] std::byte* at(u64 offset, u64 bytes = 1) const;
    /// Returns the offset of a pointer of this process, for other processes. Throws config_error for any
    /// other pointer.
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
