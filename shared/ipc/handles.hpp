#pragma once
// The parts of <carousel/ipc.hpp> that do not depend on a user's type: the primitives, and the objects of a
// primitive that a process can hold. <carousel/ipc.hpp> describes crashes, time, threads and memory order.

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "core/errors.hpp"
#include "core/types.hpp"

namespace carousel::ipc {

class attachment;
using nanoseconds = std::chrono::nanoseconds;

/// A timeout expired. The text names the object that was waited for, and the processes that hold it.
class timed_out : public error {
public:
    explicit timed_out(const std::string& message) : error(exit_code::stage_failed, message) {}
};

/// A primitive of an open space; this object keeps the space open.
class primitive {
public:
    [[nodiscard]] const std::string& name() const noexcept { return name_; }

protected:
    friend class space;
    friend class gpu_space;
    primitive(std::shared_ptr<attachment> to, u32 place, std::string name)
        : to_(std::move(to)), place_(place), name_(std::move(name)) {}
    std::shared_ptr<attachment> to_;
    u32 place_;
    std::string name_;
};

/// An object that this process holds; the destructor gives it back.
class held {
public:
    held(held&& other) noexcept;
    held& operator=(held&& other) noexcept;
    held(const held&) = delete;
    held& operator=(const held&) = delete;

protected:
    held(std::shared_ptr<attachment> to, u32 place) : to_(std::move(to)), place_(place) {}
    ~held() = default;
    /// Marks the object as no longer held and returns its attachment. Returns null if the object was not
    /// held. Also returns null in a forked child, because the parent holds the object.
    [[nodiscard]] std::shared_ptr<attachment> detach() noexcept;
    std::shared_ptr<attachment> to_;  ///< null: no longer held
    u32 place_;
    u64 what_[4] = {};
};

/// A permit. If the permit's process dies, the permit is given back after the fence.
class held_permit : public held {
public:
    held_permit(held_permit&&) noexcept = default;
    held_permit& operator=(held_permit&& other) noexcept;
    ~held_permit() { release(); }
    /// Gives the permit back early; a second call does nothing.
    void release() noexcept;

private:
    friend class shared_semaphore;
    using held::held;
};

/// Permits, granted in the order of the requests. A waiter that dies is removed from the line. If the waiter
/// at the head of the line is stopped while a permit is free, this waiter is passed over after half a second;
/// when the waiter resumes, it enters the line again.
class shared_semaphore : public primitive {
public:
    /// Throws timed_out, which names the processes that hold the permits.
    [[nodiscard]] held_permit acquire(nanoseconds timeout);
    /// Returns nothing if no permit is free, or if other clients wait for one.
    [[nodiscard]] std::optional<held_permit> try_acquire();
    [[nodiscard]] u32 free() const;     ///< permits, at some instant
    [[nodiscard]] u32 waiting() const;  ///< number of processes and threads that are in the line

private:
    friend class space;
    using primitive::primitive;
};

/// A block of a pool, owned by this process alone. If the process dies, the block is freed after the fence.
class held_block : public held {
public:
    held_block(held_block&&) noexcept = default;
    held_block& operator=(held_block&& other) noexcept;
    ~held_block() { release(); }
    void release() noexcept;
    /// Offset in bytes from the start of the space, or, for a GPU pool, from the start of the space's GPU
    /// memory. The offset is the same in every process.
    [[nodiscard]] u64 offset() const noexcept { return what_[2]; }
    /// The block's memory: it consists of whole units, has at least the requested size, and contains the
    /// bytes that the previous owner left. For a GPU pool it is a device pointer of this process; without a
    /// gpu_space (<carousel/ipc_cuda.cuh>) it is empty.
    [[nodiscard]] std::span<std::byte> data() const noexcept;

private:
    friend class shared_pool;
    friend class block_queue_base;
    using held::held;
};

/// How much of a pool is in use; not a snapshot, because other processes change the pool while it is read.
struct pool_state {
    u64 bytes = 0, free_bytes = 0;
    u64 largest_free_bytes = 0;  ///< longest free run, which is the most that one acquire() can get
    u32 blocks = 0;      ///< blocks owned by processes, including dead processes that are not fenced yet
    u32 travelling = 0;  ///< blocks that queues carry
};

/// Memory that is allocated in blocks, first fit. A block consists of units of a fixed size.
class shared_pool : public primitive {
public:
    /// Throws timed_out, whose text contains the free bytes, the longest free run and the owners of the other
    /// blocks. Throws config_error if `bytes` exceeds the size of the pool. Requests are not served in order:
    /// a large block may wait longer than a small one.
    [[nodiscard]] held_block acquire(u64 bytes, nanoseconds timeout);
    /// Returns nothing if no free run is long enough.
    [[nodiscard]] std::optional<held_block> try_acquire(u64 bytes);
    [[nodiscard]] pool_state state() const;

private:
    friend class space;
    friend class gpu_space;
    friend class block_queue_base;
    using primitive::primitive;
};

/// The queue without its type; see shared_queue.
class queue_base : public primitive {
public:
    [[nodiscard]] u32 size() const;   ///< number of elements not yet taken, at some instant
    [[nodiscard]] u64 lost() const;   ///< elements that a process had popped when it died
    [[nodiscard]] u64 tombs() const;  ///< cells that a process had claimed and not filled when it died

protected:
    using primitive::primitive;
    [[nodiscard]] bool try_push_bytes(const void* element);
    void push_bytes(const void* element, nanoseconds timeout);
    [[nodiscard]] bool try_pop_bytes(void* element);
    void pop_bytes(void* element, nanoseconds timeout);
    [[nodiscard]] std::optional<u64> try_lease_bytes(void* element);
    [[nodiscard]] u64 lease_bytes(void* element, nanoseconds timeout);
};

/// A leased element: call commit() after processing it. If the object is destroyed without commit(), or if
/// the process dies, the element returns to the queue.
class lease_base : public held {
public:
    lease_base(lease_base&&) noexcept = default;
    lease_base& operator=(lease_base&& other) noexcept;
    ~lease_base() { requeue(); }
    void commit() noexcept;
    /// Returns the element to the queue.
    void requeue() noexcept;

protected:
    lease_base(std::shared_ptr<attachment> to, u32 place, u64 ticket) : held(std::move(to), place) {
        what_[0] = ticket;
    }
};
/// See block_queue.
class block_queue_base : public primitive {
protected:
    block_queue_base(const primitive& p, shared_pool pool) : primitive(p), pool_(std::move(pool)) {}
    [[nodiscard]] bool try_send_bytes(held_block& block, void* element);
    void send_bytes(held_block& block, void* element, nanoseconds timeout);
    [[nodiscard]] std::optional<held_block> try_receive_bytes(void* element);
    [[nodiscard]] held_block receive_bytes(void* element, nanoseconds timeout);
    shared_pool pool_;
};
/// Identifies a task; ids are never reused.
struct task_id {
    u32 place = 0, generation = 0;
};
enum class task_state_now : u8 { waiting, claimed, dead_letter, over };

/// The work queue without its type; see shared_work_queue.
class work_queue_base : public primitive {
public:
    /// The task's state now. `over`: the task was committed, or removed as a dead letter.
    [[nodiscard]] task_state_now state_of(const task_id& t) const;
    [[nodiscard]] u32 waiting() const;       ///< tasks, at some instant
    [[nodiscard]] u32 dead_letters() const;  ///< at some instant

protected:
    using primitive::primitive;
    [[nodiscard]] std::optional<task_id> try_submit_bytes(const void* task);
    [[nodiscard]] task_id submit_bytes(const void* task, nanoseconds timeout);
    [[nodiscard]] bool try_claim_bytes(void* task, u64 (&what)[4]);
    void claim_bytes(void* task, u64 (&what)[4], nanoseconds timeout);
    [[nodiscard]] bool take_dead_letter_bytes(void* task);
};

/// A claimed task: call commit() when the task is done. If the object is destroyed without commit(), or if
/// the process dies, a failed attempt is counted.
class task_base : public held {
public:
    task_base(task_base&&) noexcept = default;
    task_base& operator=(task_base&& other) noexcept;
    ~task_base() { fail(); }
    void commit() noexcept;
    /// Counts a failed attempt: the task waits again, or becomes a dead letter.
    void fail() noexcept;
    [[nodiscard]] task_id id() const noexcept {
        return {static_cast<u32>(what_[0]), static_cast<u32>(what_[1])};
    }
    [[nodiscard]] u32 failed_attempts() const noexcept { return static_cast<u32>(what_[2]); }

protected:
    task_base(std::shared_ptr<attachment> to, u32 place, const u64 (&what)[4]);
};
}  // namespace carousel::ipc
