#pragma once
// Memory pools, semaphores, queues and work queues between processes that survive the death of any of them.
// `carousel hold NAME` holds a space; programs open it by name, in any order and in any number of lives.
//
//   auto lab = carousel::ipc::open("lab");
//   auto turn = lab.semaphore("turn", 1);
//   auto held = turn.acquire(50ms);                      // given back at the end of its scope
//   auto samples = lab.queue<sample>("samples", 4096);
//   samples.push({1, 2}, 50ms);
//   auto tiles = lab.work_queue<tile>("tiles", 512, 3);  // 3 attempts, then a dead letter
//   auto frames = lab.pool("frames", 64 << 20);
//   auto block = frames.acquire(8 << 20, 50ms);          // offset() travels between processes, data()
//   doesn't
//
// Death. What a process held when it died comes back by rule, exactly once, when the holder knows that it has
// ended (its fence, milliseconds later): permits and blocks are free, leased elements are delivered again,
// claimed tasks wait again with one attempt more. Until then nobody else gets any of it. The holder's own
// death stops nobody: what is open goes on, and `carousel hold NAME` takes over; meanwhile nothing new can be
// opened or made, and what the dead held stays where it is.
//
// Names. The first who asks for a name decides its shape; another shape is refused with a sentence, and
// elements of another type as well (by the name of the type, without its namespace).
//
// Time. Every wait has a bound. acquire(), push(), pop() and their like throw timed_out, whose text names
// whom it waited for. try_... never wait.
//
// Memory order. What one process has written before push, give, submit, commit or release is seen by the one
// that gets the element, block, task or permit: release and acquire, as between threads.
//
// Threads. Every function may be called by any thread; a held_... object by one at a time. Elements are
// copied as bytes. A child that is forked can't use what its parent has opened: a call
// faults, and destroying its copies does nothing.
//
// Errors are carousel::error: config_error for names, shapes and a space that nobody holds, shm_error for
// memory that can't be had. Host memory only.

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

/// Elements of T from any process to any, each producer's (a thread's) in its order. pop() delivers at most
/// once: what a process had popped when it died is counted in lost(). lease() delivers at least once.
template <class T>
class shared_queue : public queue_base {
    static_assert(std::is_trivially_copyable_v<T>, "elements travel between processes as bytes");

public:
    [[nodiscard]] bool try_push(const T& value) { return try_push_bytes(&value); }
    /// In order, as many as there is room for: so many were pushed.
    [[nodiscard]] std::size_t try_push(std::span<const T> values) {
        std::size_t n = 0;
        while (n < values.size() && try_push_bytes(&values[n])) ++n;
        return n;
    }
    void push(const T& value, nanoseconds timeout) { push_bytes(&value, timeout); }
    [[nodiscard]] std::optional<T> try_pop() {
        T value;
        return try_pop_bytes(&value) ? std::optional<T>(value) : std::nullopt;
    }
    /// As many as are there: so many were popped.
    [[nodiscard]] std::size_t try_pop(std::span<T> values) {
        std::size_t n = 0;
        while (n < values.size() && try_pop_bytes(&values[n])) ++n;
        return n;
    }
    [[nodiscard]] T pop(nanoseconds timeout) {
        T value;
        pop_bytes(&value, timeout);
        return value;
    }
    [[nodiscard]] std::optional<held_lease<T>> try_lease() {
        T value;
        const std::optional<u64> ticket = try_lease_bytes(&value);
        if (!ticket) return std::nullopt;
        return held_lease<T>(to_, place_, *ticket, value);
    }
    [[nodiscard]] held_lease<T> lease(nanoseconds timeout) {
        T value;
        const u64 ticket = lease_bytes(&value, timeout);
        return held_lease<T>(to_, place_, ticket, value);
    }

private:
    friend class space;
    using queue_base::queue_base;
};

/// A block and what is said of it.
template <class T>
struct received_block {
    held_block block;
    T about;
};
/// Blocks of a pool on their way from one process to another, each with a T that says what is in it. At every
/// instant a block has one owner: the giver, the queue, or the receiver. A giver or receiver that dies in the
/// middle leaves it to the queue, or its death frees it: never both, never neither.
template <class T>
class block_queue : public block_queue_base {
    static_assert(std::is_trivially_copyable_v<T>, "what is said of a block travels as bytes");

public:
    /// False: full, and the block is still held.
    [[nodiscard]] bool try_send(held_block& block, const T& about) {
        element e{{}, about};
        return try_send_bytes(block, &e);
    }
    void send(held_block block, const T& about, nanoseconds timeout) {
        element e{{}, about};
        send_bytes(block, &e, timeout);
    }
    [[nodiscard]] std::optional<received_block<T>> try_receive() {
        element e;
        std::optional<held_block> got = try_receive_bytes(&e);
        if (!got) return std::nullopt;
        return received_block<T>{std::move(*got), e.about};
    }
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

/// Tasks of T for any process, in rough order: each is committed once, or is a dead letter after as many
/// attempts as the queue has. What a worker does outside happens at least once: make it idempotent on id().
template <class T>
class shared_work_queue : public work_queue_base {
    static_assert(std::is_trivially_copyable_v<T>, "tasks travel between processes as bytes");

public:
    [[nodiscard]] std::optional<task_id> try_submit(const T& task) { return try_submit_bytes(&task); }
    task_id submit(const T& task, nanoseconds timeout) { return submit_bytes(&task, timeout); }
    [[nodiscard]] std::optional<held_task<T>> try_claim() {
        T task;
        u64 what[4] = {};
        if (!try_claim_bytes(&task, what)) return std::nullopt;
        return held_task<T>(to_, place_, what, task);
    }
    [[nodiscard]] held_task<T> claim(nanoseconds timeout) {
        T task;
        u64 what[4] = {};
        claim_bytes(&task, what, timeout);
        return held_task<T>(to_, place_, what, task);
    }
    /// Takes a dead letter out. A death while it is read leaves it there.
    [[nodiscard]] std::optional<T> take_dead_letter() {
        T task;
        return take_dead_letter_bytes(&task) ? std::optional<T>(task) : std::nullopt;
    }

private:
    friend class space;
    using work_queue_base::work_queue_base;
};

struct open_options {
    f64 wait_s = 5;  ///< for a holder: at opening, and when a name is asked for that is not there yet
};

/// An open space. Copies are the same one; it is closed when the last of them is gone, and all that it gave.
class space {
public:
    /// 1 to 4096 permits.
    [[nodiscard]] shared_semaphore semaphore(const std::string& name, u32 permits);
    /// Whole units (a multiple of 4096 bytes) of memory.
    [[nodiscard]] shared_pool pool(const std::string& name, u64 bytes, u64 unit_bytes = 65536);
    template <class T>
    [[nodiscard]] shared_queue<T> queue(const std::string& name, u32 elements) {
        const primitive p = queue_of(name, elements, sizeof(T), nullptr, type_tag<T>());
        return shared_queue<T>(to_, place_of(p), name);
    }
    template <class T>
    [[nodiscard]] ipc::block_queue<T> block_queue(const std::string& name, u32 blocks, shared_pool pool) {
        const primitive p =
            queue_of(name, blocks, sizeof(typename ipc::block_queue<T>::element), &pool, type_tag<T>());
        return ipc::block_queue<T>(p, std::move(pool));
    }
    /// 1 to 15 attempts.
    template <class T>
    [[nodiscard]] shared_work_queue<T> work_queue(const std::string& name, u32 tasks, u32 max_attempts = 3) {
        const primitive p = work_queue_of(name, tasks, sizeof(T), max_attempts, type_tag<T>());
        return shared_work_queue<T>(to_, place_of(p), name);
    }
    /// False: its holder is gone; what is open goes on.
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

/// Attaches this process. Throws config_error: nobody holds it within wait_s (the text says what to start);
/// shm_error: another user's, or of another version.
[[nodiscard]] space open(const std::string& name, const open_options& options = {});

}  // namespace carousel::ipc
