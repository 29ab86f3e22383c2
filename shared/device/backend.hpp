#pragma once
// What a device must offer so that stages can pass frames through memory on it. Two implementations: cpu/
// (sealed memfds, an asynchronous queue with a thread pool) and cuda/ (VMM or legacy IPC memory, a stream,
// IPC events). Everything above this header is the same on both; the conformance suite (tests/device) runs on
// each.
//
// Who may call: one process, any thread, unless a function says otherwise. A context must outlive all that it
// made. Crash: objects of this header own only this process's mappings; memory itself lives as long as
// somebody holds its fd (the supervisor does), so a process that dies anywhere in here takes nothing from the
// others. An event that a dead process had recorded never fires on CUDA: nothing may wait for an imported
// event, it may only be queried.

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

/// A device as the supervisor names it to a stage. Ordinals differ between processes (CUDA_VISIBLE_DEVICES);
/// the uuid doesn't.
struct device_id {
    device_kind kind = device_kind::cpu;
    std::string uuid;  ///< "" for the CPU, else 32 lower-case hex digits
    int ordinal = 0;   ///< for messages only
};

/// How a block of shareable memory travels between processes.
enum class memory_kind : u8 {
    memfd,  ///< sealed memfd; the CPU maps it, a GPU page-locks and maps it (cudaHostRegister)
    vmm,    ///< cuMemCreate + POSIX fd, on the GPU `uuid`
    ipc,    ///< cudaIpcMemHandle_t of a living owner, on the GPU `uuid`
};
[[nodiscard]] const char* name_of(memory_kind kind) noexcept;

/// A block of shareable memory. Owns nothing: the fds belong to whoever holds them.
///
/// A ring may be cut in pieces of one size, a slot in each, so that every process can map them with addresses
/// behind each that nothing is mapped at: the gap. A slot lies at its piece's end, so that the first byte
/// behind it is the gap's.
struct memory_handle {
    memory_kind kind = memory_kind::memfd;
    u64 bytes = 0;                    ///< size as allocated (a multiple of the granularity), of all pieces
    int fd = -1;                      ///< memfd, vmm that is not in pieces
    std::array<std::byte, 64> ipc{};  ///< ipc
    std::string uuid;                 ///< vmm, ipc: the GPU that holds the memory
    u32 pieces = 0;                   ///< 0: one block, in which slots lie side by side
    std::vector<int> piece_fds;       ///< vmm in pieces: of each its own
    [[nodiscard]] u64 piece_bytes() const noexcept { return pieces == 0 ? 0 : bytes / pieces; }
    /// Do so many slots of that size lie in it?
    [[nodiscard]] bool holds(u32 slots, u64 slot_bytes) const noexcept {
        if (slots == 0 || slot_bytes == 0) return false;
        return pieces == 0 ? slot_bytes <= bytes / slots : slots <= pieces && slot_bytes <= piece_bytes();
    }
};

/// Where a slot begins, and its planes in it, is a multiple of this.
inline constexpr u64 slot_alignment = 256;

/// The status word in front of each payload, in ring memory: written in queue order by the producer, compared
/// on the device by the consumer. It detects a torn frame, it decides nothing. 16 bytes, 16-byte aligned, one
/// store.
struct alignas(16) status_word {
    u64 ring_sequence;
    u32 epoch;
    u32 state;
};
static_assert(sizeof(status_word) == 16);
enum class status_state : u32 { never = 0, writing = 0x57524954, ready = 0x52454459 };

/// What a process may do to shared memory that it maps.
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
    /// The slots of a ring, of slot_bytes each; what memory_handle::holds() has agreed to.
    [[nodiscard]] std::byte* slot(u32 k, u64 slot_bytes) const noexcept {
        return data_ + (stride_ == 0 ? k * slot_bytes : k * stride_ + before_slot(slot_bytes));
    }
    /// From one slot to the next one, in addresses.
    [[nodiscard]] u64 stride(u64 slot_bytes) const noexcept { return stride_ == 0 ? slot_bytes : stride_; }
    /// What lies behind a slot is a gap: to touch it is a fault of this process.
    [[nodiscard]] bool has_gaps() const noexcept { return stride_ > piece_bytes_; }
    /// A write to it, by this process's CPU threads or its kernels, is a fault of this process. Not every
    /// mapping that was asked for reading can be: see context::map().
    [[nodiscard]] bool read_only() const noexcept { return read_only_; }

protected:
    std::byte* data_ = nullptr;
    std::byte* host_ = nullptr;
    u64 bytes_ = 0;
    u64 stride_ = 0, piece_bytes_ = 0;  ///< of pieces, in addresses and as mapped; 0: it is one block
    bool read_only_ = false;

private:
    [[nodiscard]] u64 before_slot(u64 slot_bytes) const noexcept {
        return (piece_bytes_ - slot_bytes) / slot_alignment * slot_alignment;
    }
};

class queue;

/// A point in one queue that this process can wait for, and that other processes can query by its handle.
class event {
public:
    using handle = std::array<std::byte, 64>;
    virtual ~event() = default;
    /// Records behind all work of `on` so far. `tag` names the job; the CPU backend stores it (release) in
    /// the shared word.
    virtual void record(queue& on, u64 tag) = 0;
    /// True when the last record's work is done, or nothing was recorded. Throws cuda_error (device), error
    /// (CPU task), for good.
    [[nodiscard]] virtual bool done() = 0;
    /// Blocks without spinning until done(), and throws as it does. Only for own events.
    virtual void wait() = 0;
    /// What another process needs to import it (CUDA: cudaIpcEventHandle_t; CPU: unused, all zero).
    [[nodiscard]] virtual handle export_handle() const = 0;
};

/// Another process's event: may be queried, never waited for.
class imported_event {
public:
    virtual ~imported_event() = default;
    /// True when the event's last record is complete and, on the CPU, bears `tag`. "Not recorded yet" reads
    /// as complete on CUDA: only ask after the job word has said SUBMITTED. Any error reads as false.
    [[nodiscard]] virtual bool done(u64 tag) noexcept = 0;
};

namespace cpu {
class pool;
}

/// What is done to status words in one piece of work: checks, then stores of one value.
struct status_step {
    static constexpr std::size_t most = 4;
    struct check {
        const status_word* at = nullptr;
        status_word expected{};
    };
    std::array<check, most> checks{};
    u32 count = 0;        ///< of checks, at most `most`
    u32* torn = nullptr;  ///< host-visible memory (allocate_host): each mismatch adds 1
    std::array<status_word*, most> write{};
    u32 writes = 0;       ///< of stores, at most `most`
    status_word value{};  ///< what is stored at each

    void expect(const status_word* at, status_word expected) noexcept {
        if (count < most) checks[count++] = {at, expected};
    }
    void store_at(status_word* at) noexcept {
        if (writes < most) write[writes++] = at;
    }
};

/// An in-order asynchronous queue (a CUDA stream, or a worker thread with a pool). Calls enqueue and return.
/// One thread at a time may enqueue. Failures are sticky. Destruction: the CPU's runs what it has, CUDA's
/// returns at once.
class queue {
public:
    virtual ~queue() = default;
    [[nodiscard]] virtual device_kind kind() const noexcept = 0;
    /// Copies between any two pointers this context can reach (device, pinned host, mapped).
    virtual void copy(void* to, const void* from, u64 bytes) = 0;
    virtual void fill(void* to, u8 value, u64 bytes) = 0;
    /// One step in queue order: what it stores is visible system-wide before anything enqueued later, and
    /// behind everything enqueued before. A GPU does it in one launch.
    virtual void status(const status_step& step) = 0;
    /// Stores a status word.
    void write_status(status_word* at, status_word value) {
        status({.write = {at}, .writes = 1, .value = value});
    }
    /// Compares *at with `expected`; a mismatch adds 1 to *torn.
    void check_status(const status_word* at, status_word expected, u32* torn) {
        status({.checks = {{{at, expected}}}, .count = 1, .torn = torn});
    }
    /// Blocks until everything enqueued so far is complete. Set-up and tests only.
    virtual void drain() = 0;
    /// CUDA queues only, for tests of crashes: enqueues a kernel that writes to an illegal address. All later
    /// work of this process fails.
    virtual void fault() = 0;
    /// CPU queues only: runs `task` in order on the queue's worker, with the pool for parallel loops.
    virtual void submit(std::function<void(cpu::pool&)> task) = 0;
    /// CUDA queues only: the cudaStream_t.
    [[nodiscard]] virtual void* native_stream() const noexcept = 0;
};

/// One process's use of one device. Made once at set-up (a CUDA context costs about 200 ms and 530 MB).
class context {
public:
    virtual ~context() = default;
    [[nodiscard]] virtual device_kind kind() const noexcept = 0;
    [[nodiscard]] virtual std::string description() const = 0;  ///< "NVIDIA H200 (cuda:0)", "CPU, 2 threads"
    [[nodiscard]] virtual std::unique_ptr<queue> make_queue() = 0;
    /// An event that others can import. On the CPU `shared` is the word of shared memory that carries its
    /// tag; unused on CUDA.
    [[nodiscard]] virtual std::unique_ptr<event> make_event(std::atomic<u64>* shared) = 0;
    /// Null when it can't be (a CPU asks no GPU event; its maker died): then nobody helps. CUDA imports the
    /// CPU's words too.
    [[nodiscard]] virtual std::unique_ptr<imported_event> import_event(device_kind from,
                                                                       const event::handle& handle,
                                                                       const std::atomic<u64>* shared) = 0;
    /// Maps shared memory. For reading: so that a write to it faults its writer, and nobody else; where that
    /// can't be had (`ipc` memory; host memory on a GPU without cudaHostRegisterReadOnly) it is mapped for
    /// writing and says so by read_only(). Pieces get their gaps, except host memory on a GPU that has other
    /// addresses for it than the CPU (has_gaps()). Throws device_error with the reason (no peer access, wrong
    /// device, owner gone).
    [[nodiscard]] virtual std::unique_ptr<mapping> map(const memory_handle& handle, access wanted) = 0;
    /// Zeroed memory of this process alone, on the device. Set-up only: an allocation may synchronise the
    /// device.
    [[nodiscard]] virtual std::unique_ptr<mapping> allocate(u64 bytes) = 0;
    /// Zeroed memory of this process alone that both the CPU and the device can read and write (data() ==
    /// host_data()).
    [[nodiscard]] virtual std::unique_ptr<mapping> allocate_host(u64 bytes) = 0;
};

/// Opens a device. `cpu_threads` is the pool's size on the CPU (0: all cores). Throws device_error: not built
/// in, no driver, no such GPU, each with what to do.
[[nodiscard]] std::unique_ptr<context> open(const device_id& id, unsigned cpu_threads = 0);

/// Was the CUDA backend compiled in?
[[nodiscard]] bool built_with_cuda() noexcept;

}  // namespace carousel::device
