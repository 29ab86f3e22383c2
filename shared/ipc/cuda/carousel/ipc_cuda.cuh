#pragma once
// The GPU half of <carousel/ipc.hpp>, for .cu files: memory of a space on a GPU, and queues that kernels of
// one process fill and kernels of another one empty. `carousel hold lab --device cuda:0` holds it all.
//
//   auto lab = carousel::ipc::open("lab");
//   carousel::ipc::gpu_space gpu(lab);                     // maps the memory once, for the current GPU
//   auto samples = gpu.queue<sample>("samples", 1 << 16);
//   produce<<<64, 256, 0, stream>>>(samples.device());     // in the kernel: q.try_push(s), q.try_pop(s), ...
//   auto frames = gpu.pool("frames", 256 << 20);
//   auto block = frames.acquire(8 << 20, 50ms);            // data() is a device pointer of this process
//
// Death. As on the CPU: what a process held comes back behind its fence, exactly once. Until then nobody gets
// any of it: an element that a dead process was writing holds up the line for about half a second, for the
// holder starts a program that mends the words on the GPU. Under MPS a fault, or a death in a kernel that
// does not end, ends every client of the MPS server; the space lives, for its holder uses no CUDA. There the
// fence is the end of the process as well: in no measurement has its work written anything behind that.
//
// Words. A queue of a gpu_space is the kernels' alone: the CPU looks at it (state()), and pushes or pops by
// kernels. A pool's words are the CPU's alone: kernels use blocks, and acquire none.
//
// Time. try_... never wait. Those that wait take a time, and never wait longer than longest_kernel_wait_ns:
// in time slices the process that is waited for doesn't run meanwhile, so wait on the host where you can.
//
// Memory order. What a kernel thread has written before push, give or commit is seen by the thread that gets
// the element (release and acquire at the system's scope), on another GPU as well.
//
// Threads. Views are passed by value to kernels of the process that made them; the kernels of a view end
// before the last copy of its gpu_space does. The host's functions may be called by any thread.
//
// Errors as in <carousel/ipc.hpp>, and device_error for what CUDA refuses.

#include <cstddef>
#include <memory>
#include <string>

#include "ipc/carousel/ipc.hpp"
#include "ipc/cuda/gpu_mapping.hpp"
#include "ipc/cuda/queue_view.cuh"
#include "ipc/cuda/work_queue_view.cuh"

namespace carousel::ipc {

/// At some instant, and no snapshot: kernels go on meanwhile.
struct gpu_queue_state {
    u32 waiting = 0;      ///< elements that nobody has taken
    u32 claimed = 0;      ///< that are being written
    u32 taken = 0;        ///< popped or leased, not yet consumed
    u64 lost = 0;         ///< that a process had popped when it died
    u64 tombs = 0;        ///< places that a process had claimed and not filled when it died
    std::string holders;  ///< has claimed and taken ones: "process 12 (3), process 14, which has died"
};

struct gpu_work_state {
    u32 waiting = 0, claimed = 0, dead_letters = 0;
    std::string holders;  ///< has claims
};

/// A primitive in GPU memory, which stays mapped with it.
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
    /// Copies its words to the host and counts; waits for no kernel.
    [[nodiscard]] gpu_queue_state state() const;

protected:
    using gpu_primitive::gpu_primitive;
    [[nodiscard]] queue_parts<u64> parts() const;
};

/// Elements of T from any kernel to any, each thread's in its order. T: trivially copyable, aligned to 8
/// bytes at most, and of one name in all programs.
template <class T>
class gpu_queue : public gpu_queue_base {
public:
    /// For kernels of this process.
    [[nodiscard]] queue_view<T> device() const { return {parts(), epoch()}; }

private:
    friend class gpu_space;
    using gpu_queue_base::gpu_queue_base;
};

/// A work queue in GPU memory, without its type.
class gpu_work_queue_base : public gpu_primitive {
public:
    /// Copies its words to the host and counts; waits for no kernel.
    [[nodiscard]] gpu_work_state state() const;

protected:
    using gpu_primitive::gpu_primitive;
    [[nodiscard]] task_parts<u64> parts() const;
};

/// Tasks of T for kernels of any process, in no order: each is committed once, or is a dead letter after as
/// many attempts as the queue has. What a kernel does besides happens at least once: write a result to a
/// place that follows from the task (a block's offset in it), and commit behind it. T: as for gpu_queue.
template <class T>
class gpu_work_queue : public gpu_work_queue_base {
public:
    /// For kernels of this process.
    [[nodiscard]] work_queue_view<T> device() const { return {parts(), epoch()}; }

private:
    friend class gpu_space;
    using gpu_work_queue_base::gpu_work_queue_base;
};

struct stream_wait;

/// Whether a stream has its permit, as kernels behind acquire() see it.
class permit_view {
public:
    permit_view(const u32* at, u32 granted) : at_(at), granted_(granted) {}
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
    expired,  ///< its time was over: the stream has gone on without a permit
    closed    ///< the holder has sent the stream on, for this process didn't in time; or nobody wanted it any
              ///< more
};

/// A permit that a stream has asked for. Its end without release() gives it back: at once, whatever kernels
/// that have it do then; or, where it hasn't come yet, as soon as it comes, and kernels that ask are told
/// that they have none. A death gives it back behind the fence.
class stream_permit {
public:
    stream_permit(stream_permit&&) noexcept = default;
    stream_permit& operator=(stream_permit&& other) noexcept;
    ~stream_permit() { drop(); }
    [[nodiscard]] permit_now now() const;
    [[nodiscard]] permit_view device() const;
    /// Given back when the stream is there.
    void release(cudaStream_t stream);

private:
    friend class gpu_semaphore;
    stream_permit(std::shared_ptr<gpu_mapping> on, std::shared_ptr<stream_wait> wait)
        : on_(std::move(on)), wait_(std::move(wait)) {}
    void drop() noexcept;
    std::shared_ptr<gpu_mapping> on_;
    std::shared_ptr<stream_wait> wait_;
};

/// A semaphore of the space, the same one that shared_semaphore is, for streams.
class gpu_semaphore : public gpu_primitive {
public:
    /// The stream goes no further until it has a permit, or `timeout` is over, counted from when it is there;
    /// the host waits for nothing. The stream waits at a word that this process and the holder can write, so
    /// no death keeps it. Kernels behind it ask device().granted(). Streams of one process that wait for the
    /// same semaphore stand in its line one behind the other; 16 at a time. Throws config_error: no timeout
    /// (more than 0, at most an hour), or too many at a time.
    [[nodiscard]] stream_permit acquire(cudaStream_t stream, nanoseconds timeout);

private:
    friend class gpu_space;
    using gpu_primitive::gpu_primitive;
};

/// The GPU memory of an open space, in this process. Copies are the same one. The last copy's end waits for
/// this process's kernels.
class gpu_space {
public:
    /// Maps it for the calling thread's current GPU. Throws config_error: the space has none, or it is mapped
    /// already; device_error: that GPU doesn't reach it.
    explicit gpu_space(const space& s);

    /// Whole units (a multiple of 4096 bytes) of GPU memory. The blocks' data() is a device pointer.
    [[nodiscard]] shared_pool pool(const std::string& name, u64 bytes, u64 unit_bytes = 65536);
    template <class T>
    [[nodiscard]] gpu_queue<T> queue(const std::string& name, u32 elements) {
        return gpu_queue<T>(on_, queue_place(name, elements, sizeof(T), type_tag<T>()), name);
    }
    /// 1 to 15 attempts.
    template <class T>
    [[nodiscard]] gpu_work_queue<T> work_queue(const std::string& name, u32 tasks, u32 max_attempts = 3) {
        return gpu_work_queue<T>(on_, work_queue_place(name, tasks, sizeof(T), max_attempts, type_tag<T>()),
                                 name);
    }
    /// 1 to 4096 permits.
    [[nodiscard]] gpu_semaphore semaphore(const std::string& name, u32 permits);
    /// What an offset that came from another process (held_block::offset) is here. Throws config_error:
    /// outside.
    [[nodiscard]] std::byte* at(u64 offset, u64 bytes = 1) const;
    /// What a pointer of this process is for others. Throws config_error for any other pointer.
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
