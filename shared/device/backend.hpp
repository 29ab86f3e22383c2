#pragma once
// The device interface: the functions that a backend provides so that stages can pass frames through its
// memory. There are two implementations: cpu/ (sealed memfds, an asynchronous queue with a thread pool) and
// cuda/ (VMM or legacy IPC memory, a stream, IPC events). Code that uses this header is the same for both;
// the conformance suite (tests/device) runs on each. Threading: within one process, any thread may call a
// function, unless the function's comment states otherwise. A context must outlive every object that it has
// created. Crash: objects of this header own only this process's mappings; the memory itself exists as long
// as any process holds its fd, and the supervisor holds it. So a process that dies at any point in this code
// takes nothing from other processes. An event that a dead process had recorded never fires on CUDA;
// therefore processes must not wait for an imported event and may only query it.

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"

namespace carousel::device {

enum class device_kind : u8 { cpu, cuda };

/// A device as the supervisor identifies it to a stage. Ordinals differ between processes
/// (CUDA_VISIBLE_DEVICES); the uuid does not.
struct device_id {
    device_kind kind = device_kind::cpu;
    std::string uuid;  ///< "" for the CPU, else 32 lower-case hex digits
    int ordinal = 0;   ///< for messages only
};

/// How a block of shareable memory is passed between processes.
enum class memory_kind : u8 {
    memfd,  ///< a sealed memfd, which the CPU maps, and which a GPU page-locks and maps (cudaHostRegister)
    vmm,    ///< memory of the GPU `uuid`, from cuMemCreate, passed as a POSIX fd
    ipc,    ///< memory of the GPU `uuid`, passed as a cudaIpcMemHandle_t; its owner must be alive
};
[[nodiscard]] const char* name_of(memory_kind kind) noexcept;

/// A block of shareable memory. Owns nothing: each fd belongs to the process or object that keeps it open.
///
/// A ring may be split into pieces of equal size, one slot per piece. Every process can then map the pieces
/// with a gap after each piece; a gap is a range of addresses at which nothing is mapped. A slot lies at the
/// end of its piece, so the first byte after the slot is in the gap.
struct memory_handle {
    memory_kind kind = memory_kind::memfd;
    u64 bytes = 0;                    ///< allocated size of all pieces (a multiple of the granularity)
    int fd = -1;                      ///< fd of a memfd, or of vmm memory that is not in pieces
    std::array<std::byte, 64> ipc{};  ///< ipc
    std::string uuid;                 ///< for vmm and ipc: the GPU that contains the memory
    u32 pieces = 0;                   ///< 0: one block, with adjacent slots
    std::vector<int> piece_fds;       ///< for vmm memory in pieces: one fd per piece
    [[nodiscard]] u64 piece_bytes() const noexcept { return pieces == 0 ? 0 : bytes / pieces; }
    /// True if the memory has room for `slots` slots of `slot_bytes` bytes each.
    [[nodiscard]] bool holds(u32 slots, u64 slot_bytes) const noexcept {
        if (slots == 0 || slot_bytes == 0) return false;
        return pieces == 0 ? slot_bytes <= bytes / slots : slots <= pieces && slot_bytes <= piece_bytes();
    }
};

/// Alignment, in bytes, of a slot and of the planes in it.
inline constexpr u64 slot_alignment = 256;

/// The status word before each payload in ring memory. The producer writes this word in queue order, and the
/// consumer compares it on the device. The status word detects a torn frame; it is not authoritative. The
/// word has 16 bytes, is 16-byte aligned, and is written by one store.
struct alignas(16) status_word {
    u64 ring_sequence;
    u32 epoch;
    u32 state;
};
static_assert(sizeof(status_word) == 16);
enum class status_state : u32 { never = 0, writing = 0x57524954, ready = 0x52454459 };

/// The kind of access that a mapping of shared memory allows.
enum class access : u8 { read, write };

/// Memory mapped into this process and usable by its device. Unmapped by the destructor.
class mapping {
public:
    virtual ~mapping() = default;
    mapping() = default;
    mapping(const mapping&) = delete;
    mapping& operator=(const mapping&) = delete;
    [[nodiscard]] std::byte* data() const noexcept { return data_; }  ///< pointer for this context's kernels
    [[nodiscard]] std::byte* host_data() const noexcept {
        return host_;
    }  ///< CPU-readable pointer, or null (GPU memory)
    [[nodiscard]] u64 bytes() const noexcept { return bytes_; }
    /// The address of slot k if each slot has slot_bytes bytes. memory_handle::holds() must have returned
    /// true for these slots.
    [[nodiscard]] std::byte* slot(u32 k, u64 slot_bytes) const noexcept {
        return data_ + (stride_ == 0 ? k * slot_bytes : k * stride_ + before_slot(slot_bytes));
    }
    /// Distance between the addresses of two successive slots, in bytes.
    [[nodiscard]] u64 stride(u64 slot_bytes) const noexcept { return stride_ == 0 ? slot_bytes : stride_; }
    /// True if a gap follows each slot: an access to a gap faults this process.
    [[nodiscard]] bool has_gaps() const noexcept { return stride_ > piece_bytes_; }
    /// True if this process faults when its CPU threads or its kernels write to the memory. Some mappings
    /// that were requested for reading are not read-only: see context::map().
    [[nodiscard]] bool read_only() const noexcept { return read_only_; }

protected:
    std::byte* data_ = nullptr;
    std::byte* host_ = nullptr;
    u64 bytes_ = 0;
    u64 stride_ = 0, piece_bytes_ = 0;  ///< distance and size of pieces; both are 0 for one block
    bool read_only_ = false;

private:
    [[nodiscard]] u64 before_slot(u64 slot_bytes) const noexcept {
        return (piece_bytes_ - slot_bytes) / slot_alignment * slot_alignment;
    }
};

class queue;

/// A point in one queue that this process can wait for, and that other processes can query through its
/// handle.
class event {
public:
    using handle = std::array<std::byte, 64>;
    virtual ~event() = default;
    /// Enqueues the event on `on`, after all work that was enqueued on this queue so far. `tag` names the
    /// job; the CPU backend stores it (release) in the shared word.
    virtual void record(queue& on, u64 tag) = 0;
    /// True when all work before the last record() is complete, or if record() was never called. Throws
    /// cuda_error if the device has failed, or error if a CPU task has failed; such a failure is permanent.
    [[nodiscard]] virtual bool done() = 0;
    /// Blocks without spinning until done() is true; throws like done(). Must only be called by the process
    /// that created the event.
    virtual void wait() = 0;
    /// The handle with which another process imports the event (CUDA: cudaIpcEventHandle_t; CPU: unused, all
    /// zero).
    [[nodiscard]] virtual handle export_handle() const = 0;
};

/// An event of another process, which this process may query, but must not wait for.
class imported_event {
public:
    virtual ~imported_event() = default;
    /// True when the event's last record is complete; on the CPU, the record must also have the tag `tag`. On
    /// CUDA an event that is not recorded yet reads as complete, so query the event only after the job word
    /// is SUBMITTED. Any error reads as false.
    [[nodiscard]] virtual bool done(u64 tag) noexcept = 0;
};

namespace cpu {
class pool;
}

/// The comparisons and stores of status words in one queue entry. The comparisons are made first; then one
/// value is stored at several addresses.
struct status_step {
    static constexpr std::size_t most = 4;                ///< stores: one per output
    static constexpr std::size_t most_checks = most + 1;  ///< one per input, and one of the previous state
    struct check {
        const status_word* at = nullptr;
        status_word expected{};
    };
    std::array<check, most_checks> checks{};
    u32 count = 0;        ///< number of checks, at most `most_checks`
    u32* torn = nullptr;  ///< each mismatch adds 1 here; host-visible (allocate_host)
    std::array<status_word*, most> write{};
    u32 writes = 0;       ///< number of stores, at most `most`
    status_word value{};  ///< the value that every store writes

    void expect(const status_word* at, status_word expected) noexcept {
        if (count < most_checks) checks[count++] = {at, expected};
    }
    void store_at(status_word* at) noexcept {
        if (writes < most) write[writes++] = at;
    }
};

/// An in-order asynchronous queue (a CUDA stream, or a worker thread with a pool). Each call enqueues its
/// work and returns. One thread at a time may enqueue. Failures are sticky. The destructor of a CPU queue
/// runs the pending entries; the destructor of a CUDA queue returns at once.
class queue {
public:
    virtual ~queue() = default;
    [[nodiscard]] virtual device_kind kind() const noexcept = 0;
    /// Copies `bytes` bytes. Both pointers may point to any memory that this context can access (device,
    /// pinned host, mapped).
    virtual void copy(void* to, const void* from, u64 bytes) = 0;
    virtual void fill(void* to, u8 value, u64 bytes) = 0;
    /// Enqueues a step. The step's stores become visible system-wide after all work that was enqueued before
    /// the step, and before all work that is enqueued after the step. A GPU executes the step in one launch.
    virtual void status(const status_step& step) = 0;
    /// Stores a status word.
    void write_status(status_word* at, status_word value) {
        status({.write = {at}, .writes = 1, .value = value});
    }
    /// Enqueues a comparison of *at with `expected`; a mismatch adds 1 to *torn.
    void check_status(const status_word* at, status_word expected, u32* torn) {
        status({.checks = {{{at, expected}}}, .count = 1, .torn = torn});
    }
    /// Blocks until everything enqueued so far is complete. For set-up and tests only.
    virtual void drain() = 0;
    /// CUDA queues only, for crash tests: enqueues a kernel that writes to an illegal address. All later work
    /// of this process fails.
    virtual void fault() = 0;
    /// CPU queues only: the queue's worker runs `task`, in the order of the queue; the task can use the pool
    /// for parallel loops.
    virtual void submit(std::function<void(cpu::pool&)> task) = 0;
    /// CUDA queues only: returns the cudaStream_t.
    [[nodiscard]] virtual void* native_stream() const noexcept = 0;
};

/// One process's use of one device. Created once at set-up (a CUDA context costs about 200 ms and 530 MB).
class context {
public:
    virtual ~context() = default;
    [[nodiscard]] virtual device_kind kind() const noexcept = 0;
    [[nodiscard]] virtual std::string description() const = 0;  ///< e.g. "NVIDIA H200 (cuda:0)", "CPU, 2
                                                                ///< threads"
    [[nodiscard]] virtual std::unique_ptr<queue> make_queue() = 0;
    /// An event that other processes can import. On the CPU, `shared` is the word in shared memory that
    /// contains the event's tag; on CUDA, `shared` is unused.
    [[nodiscard]] virtual std::unique_ptr<event> make_event(std::atomic<u64>* shared) = 0;
    /// Returns null if the event cannot be imported, because a CPU stage cannot query a GPU event, or because
    /// the process that created the event has died; then only the event's owner can commit its frames. A CUDA
    /// context can also import events of CPU queues, which are words in shared memory.
    [[nodiscard]] virtual std::unique_ptr<imported_event> import_event(device_kind from,
                                                                       const event::handle& handle,
                                                                       const std::atomic<u64>* shared) = 0;
    /// Maps shared memory. If the memory is mapped for reading, a write to it faults the writing process and
    /// no other process. Such a mapping is not available for `ipc` memory, and for host memory on a GPU
    /// without cudaHostRegisterReadOnly; then the memory is mapped for writing, and read_only() is false.
    /// Memory in pieces is mapped with gaps, except host memory on a GPU whose addresses of this memory
    /// differ from those of the CPU; in this case has_gaps() is false. Throws device_error with the reason
    /// (for example, if the GPUs have no peer access, if the device is wrong, or if the owner has died).
    [[nodiscard]] virtual std::unique_ptr<mapping> map(const memory_handle& handle, access wanted) = 0;
    /// Allocates zeroed memory on the device, which is private to this process. For set-up only, because an
    /// allocation may synchronise the device.
    [[nodiscard]] virtual std::unique_ptr<mapping> allocate(u64 bytes) = 0;
    /// Allocates zeroed memory, private to this process, that both the CPU and the device can read and write
    /// (data() == host_data()).
    [[nodiscard]] virtual std::unique_ptr<mapping> allocate_host(u64 bytes) = 0;
};

/// Opens a device. For a CPU, `cpu_threads` is the number of threads of its pool (0: one per core). Throws
/// device_error, with a remedy, if the backend is not built in, or if there is no driver or no such GPU.
[[nodiscard]] std::unique_ptr<context> open(const device_id& id, unsigned cpu_threads = 0);

/// True if the CUDA backend was compiled in.
[[nodiscard]] bool built_with_cuda() noexcept;

// Sets the calling thread's current GPU, for code that shares the thread with other users of CUDA.

/// Makes the context's GPU the calling thread's current GPU. No effect on the CPU. Throws cuda_error.
void bind_thread(const context& to);

/// Saves the calling thread's current CUDA context, and makes it current again in the destructor. This is
/// needed because calls made while this object exists may make another context current, although the program
/// that owns the thread works on another GPU. If the thread had no context, the context that the calls have
/// made current stays current, because without a context the program's next launch in this thread would go to
/// GPU 0. No effect if the driver is not loaded in this process.
class kept_thread {
public:
    /// If `wanted` is false, the object has no effect; this is for calls that do not use a GPU.
    explicit kept_thread(bool wanted = true) noexcept;
    ~kept_thread();
    kept_thread(const kept_thread&) = delete;
    kept_thread& operator=(const kept_thread&) = delete;

private:
    [[maybe_unused]] void* before_ = nullptr;  ///< null: nothing to restore
};

}  // namespace carousel::device
