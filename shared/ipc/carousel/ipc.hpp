#pragma once
// Memory pools, semaphores, queues and work queues between processes; these primitives remain usable after
// the death of any process that uses them. `carousel hold NAME` holds a space (a shared-memory segment with
// its primitives); programs open it by name, in any order, and may restart any number of times.
//
//   auto lab = carousel::ipc::open("lab");
//   auto turn = lab.semaphore("turn", 1);
//   auto held = turn.acquire(50ms);                      // given back at the end of its scope
//   auto samples = lab.queue<sample>("samples", 4096);
//   samples.push({1, 2}, 50ms);
//   auto tiles = lab.work_queue<tile>("tiles", 512, 3);  // 3 attempts, then a dead letter
//   auto frames = lab.pool("frames", 64 << 20);
//   auto block = frames.acquire(8 << 20, 50ms);          // pass offset() between processes, not data()
//
// Crashes. Every object that a process held when it died is recovered exactly once. This happens when the
// holder knows that the process has ended (the fence, milliseconds later): permits and blocks are freed,
// leased elements are delivered again, and claimed tasks wait again, with one more attempt counted. Until
// then no other process gets any of these objects. The death of the holder stops no client: open primitives
// keep working, and another `carousel hold NAME` takes over. Until the new holder has taken over, no space or
// primitive can be opened or created, and objects of dead clients are not recovered.
//
// Names. The first request for a name determines the primitive's shape. A request with another shape, or with
// another element type (compared by the type's name without its namespace), is refused with a message.
//
// Time. Every wait has a timeout. acquire(), push(), pop() and similar functions throw timed_out, whose text
// names the processes that were waited for. The try_... functions never wait.
//
// Memory order. Data that a process has written before push, send, submit, commit or release is visible to
// the process that gets the element, block, task or permit (release and acquire, as between threads).
//
// Threads. Every function may be called by any thread; a held_... object must be used by one thread at a
// time. Elements are copied as bytes. A forked child can't use objects that its parent has opened: a call of
// their functions faults, but destroying the child's copies of the objects has no effect.
//
// Errors are carousel::error: config_error for names, shapes and a space without a holder, shm_error for
// memory that can't be obtained. Host memory only.

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include "core/types.hpp"
#include "ipc/handles.hpp"
#include "ipc/type_tag.hpp"

namespace carousel::ipc {

/// A leased element of a shared_queue, with its value.
template <class T>
class held_lease : public lease_base {
public:
    [[nodiscard]] const T& value() const noexcept { return value_; }

private:
    template <class>
    friend class shared_queue;
    held_lease(std::shared_ptr<attachment> to, u32 place, u64 ticket, const T& value)
        : lease_base(std::move(to), place, ticket), value_(value) {}
    T value_;
};

/// Passes elements of T from any process to any process. The elements of one producer (one thread) stay in
/// order. pop() delivers at most once: elements that a process had popped when it died are counted in lost().
/// lease() delivers at least once.
template <class T>
class shared_queue : public queue_base {
    static_assert(std::is_trivially_copyable_v<T>,
                  "use a trivially copyable type: elements are copied between processes as bytes");

public:
    /// Appends a copy of `value` to the queue. Returns false if the queue is full.
    [[nodiscard]] bool try_push(const T& value) { return try_push_bytes(&value); }
    /// Pushes elements in order until the queue is full; returns their number.
    [[nodiscard]] std::size_t try_push(std::span<const T> values) {
        std::size_t n = 0;
        while (n < values.size() && try_push_bytes(&values[n])) ++n;
        return n;
    }
    /// Waits for room. Throws timed_out.
    void push(const T& value, nanoseconds timeout) { push_bytes(&value, timeout); }
    /// Removes the first element. Returns nothing if the queue is empty, or if its first element is not
    /// published yet.
    [[nodiscard]] std::optional<T> try_pop() {
        T value;
        return try_pop_bytes(&value) ? std::optional<T>(value) : std::nullopt;
    }
    /// Pops elements until the queue is empty or `values` is full; returns their number.
    [[nodiscard]] std::size_t try_pop(std::span<T> values) {
        std::size_t n = 0;
        while (n < values.size() && try_pop_bytes(&values[n])) ++n;
        return n;
    }
    /// Waits for an element and removes it. Throws timed_out.
    [[nodiscard]] T pop(nanoseconds timeout) {
        T value;
        pop_bytes(&value, timeout);
        return value;
    }
    /// Leases the first element. commit() removes the element; without commit() it becomes available again.
    /// Returns nothing in the same cases as try_pop().
    [[nodiscard]] std::optional<held_lease<T>> try_lease() {
        T value;
        const std::optional<u64> ticket = try_lease_bytes(&value);
        if (!ticket) return std::nullopt;
        return held_lease<T>(to_, place_, *ticket, value);
    }
    /// Waits for an element and leases it. Throws timed_out.
    [[nodiscard]] held_lease<T> lease(nanoseconds timeout) {
        T value;
        const u64 ticket = lease_bytes(&value, timeout);
        return held_lease<T>(to_, place_, ticket, value);
    }

private:
    friend class space;
    using queue_base::queue_base;
};

/// A block and the value sent with it.
template <class T>
struct received_block {
    held_block block;
    T about;
};
/// Passes blocks of a pool from one process to another; each block is sent with a T that describes its
/// content. At every instant a block has one owner: the sender, the queue, or the receiver. If a sender or
/// receiver dies during the transfer, the block either stays in the queue or is freed, but never both.
template <class T>
class block_queue : public block_queue_base {
    static_assert(std::is_trivially_copyable_v<T>,
                  "use a trivially copyable type: the description of a block is copied as bytes");

public:
    /// Returns false if the queue is full; the caller then still holds the block.
    [[nodiscard]] bool try_send(held_block& block, const T& about) {
        element e{{}, about};
        return try_send_bytes(block, &e);
    }
    /// Waits for room. Throws timed_out if the queue stays full, and frees the block in this case. Throws
    /// config_error if the block does not belong to this queue's pool.
    void send(held_block block, const T& about, nanoseconds timeout) {
        element e{{}, about};
        send_bytes(block, &e, timeout);
    }
    /// Takes the first block, which this process then owns. Returns nothing if there is none. Throws
    /// shm_error if the element does not name a block, which means that the space is damaged.
    [[nodiscard]] std::optional<received_block<T>> try_receive() {
        element e;
        std::optional<held_block> got = try_receive_bytes(&e);
        if (!got) return std::nullopt;
        return received_block<T>{std::move(*got), e.about};
    }
    /// Waits for a block. Throws timed_out if no block arrives in time, and shm_error in the same case as
    /// try_receive().
    [[nodiscard]] received_block<T> receive(nanoseconds timeout) {
        element e;
        held_block got = receive_bytes(&e, timeout);
        return {std::move(got), e.about};
    }

private:
    friend class space;
    struct element {
        u64 block[3] = {};
        T about{};
    };
    using block_queue_base::block_queue_base;
};

/// A claimed task of a shared_work_queue, with its value.
template <class T>
class held_task : public task_base {
public:
    [[nodiscard]] const T& value() const noexcept { return value_; }

private:
    template <class>
    friend class shared_work_queue;
    held_task(std::shared_ptr<attachment> to, u32 place, const u64 (&what)[4], const T& value)
        : task_base(std::move(to), place, what), value_(value) {}
    T value_;
};

/// Distributes tasks of T to any processes, in approximate order. Each task is committed once, or becomes a
/// dead letter after max_attempts attempts. A worker's side effects outside the queue happen at least once,
/// so make them idempotent per id().
template <class T>
class shared_work_queue : public work_queue_base {
    static_assert(std::is_trivially_copyable_v<T>,
                  "use a trivially copyable type: tasks are copied between processes as bytes");

public:
    /// Adds a task. Returns nothing if the queue has no free place.
    [[nodiscard]] std::optional<task_id> try_submit(const T& task) { return try_submit_bytes(&task); }
    /// Waits for a free place. Throws timed_out.
    task_id submit(const T& task, nanoseconds timeout) { return submit_bytes(&task, timeout); }
    /// Claims a waiting task. Returns nothing if no task is waiting.
    [[nodiscard]] std::optional<held_task<T>> try_claim() {
        T task;
        u64 what[4] = {};
        if (!try_claim_bytes(&task, what)) return std::nullopt;
        return held_task<T>(to_, place_, what, task);
    }
    /// Waits for a task and claims it. Throws timed_out.
    [[nodiscard]] held_task<T> claim(nanoseconds timeout) {
        T task;
        u64 what[4] = {};
        claim_bytes(&task, what, timeout);
        return held_task<T>(to_, place_, what, task);
    }
    /// Removes a dead letter and returns it. If the process dies during the read, the dead letter remains.
    [[nodiscard]] std::optional<T> take_dead_letter() {
        T task;
        return take_dead_letter_bytes(&task) ? std::optional<T>(task) : std::nullopt;
    }

private:
    friend class space;
    using work_queue_base::work_queue_base;
};

/// Options of open().
struct open_options {
    /// time in seconds for which open() waits for a holder, and for which a request for a new primitive waits
    /// until the holder has created it
    f64 wait_s = 5;
};

/// An open space. Copies share one connection, which is closed when the last copy and the last object
/// obtained from the space are destroyed.
class space {
public:
    /// `permits`: 1 to 4096.
    [[nodiscard]] shared_semaphore semaphore(const std::string& name, u32 permits);
    /// Returns a pool with `bytes` bytes of memory, allocated in units of `unit_bytes` (a multiple of 4096).
    [[nodiscard]] shared_pool pool(const std::string& name, u64 bytes, u64 unit_bytes = 65536);
    /// Returns a queue of `elements` elements of T, which must be trivially copyable.
    template <class T>
    [[nodiscard]] shared_queue<T> queue(const std::string& name, u32 elements) {
        const primitive p = queue_of(name, elements, sizeof(T), nullptr, type_tag<T>());
        return shared_queue<T>(to_, place_of(p), name);
    }
    /// Returns a queue of up to `blocks` blocks of `pool`, which must belong to the same space.
    template <class T>
    [[nodiscard]] ipc::block_queue<T> block_queue(const std::string& name, u32 blocks, shared_pool pool) {
        const primitive p =
            queue_of(name, blocks, sizeof(typename ipc::block_queue<T>::element), &pool, type_tag<T>());
        return ipc::block_queue<T>(p, std::move(pool));
    }
    /// `max_attempts`: 1 to 15.
    template <class T>
    [[nodiscard]] shared_work_queue<T> work_queue(const std::string& name, u32 tasks, u32 max_attempts = 3) {
        const primitive p = work_queue_of(name, tasks, sizeof(T), max_attempts, type_tag<T>());
        return shared_work_queue<T>(to_, place_of(p), name);
    }
    /// False if the space has no holder; open primitives keep working.
    [[nodiscard]] bool is_held() const noexcept;

private:
    friend class gpu_space;
    friend space open(const std::string& name, const open_options& options);
    explicit space(std::shared_ptr<attachment> to) : to_(std::move(to)) {}
    [[nodiscard]] static u32 place_of(const primitive& p) { return p.place_; }
    [[nodiscard]] primitive queue_of(const std::string& name, u32 cells, u64 bytes, const shared_pool* pool,
                                     u64 type);
    [[nodiscard]] primitive work_queue_of(const std::string& name, u32 tasks, u64 bytes, u32 attempts,
                                          u64 type);
    std::shared_ptr<attachment> to_;
};

/// Attaches this process. Throws config_error if the space has no holder within wait_s (the text names the
/// command that starts one). Throws shm_error if the space belongs to another user or has the layout of
/// another version.
[[nodiscard]] space open(const std::string& name, const open_options& options = {});

}  // namespace carousel::ipc
