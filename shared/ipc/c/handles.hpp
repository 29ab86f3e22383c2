#pragma once
// The handles of <carousel/space.h>: each wraps the object of the C++ interface, so that steps, messages and
// ownership have one implementation. The classes below make the byte-wise functions of the C++ classes, which
// their templates use, accessible.

#include <mutex>
#include <utility>

#include "ipc/c/call.hpp"
#include "ipc/c/gpu_access.hpp"
#include "ipc/pool.hpp"

namespace carousel::ipc::c {

struct any_queue : queue_base {
    any_queue(std::shared_ptr<attachment> to, u32 place, std::string name)
        : queue_base(std::move(to), place, std::move(name)) {}
    using queue_base::lease_bytes;
    using queue_base::pop_bytes;
    using queue_base::push_bytes;
    using queue_base::try_lease_bytes;
    using queue_base::try_pop_bytes;
    using queue_base::try_push_bytes;
    [[nodiscard]] u32 place() const noexcept { return place_; }
};

struct any_lease : lease_base {
    any_lease(std::shared_ptr<attachment> to, u32 place, u64 ticket)
        : lease_base(std::move(to), place, ticket) {}
};

struct any_work_queue : work_queue_base {
    any_work_queue(std::shared_ptr<attachment> to, u32 place, std::string name)
        : work_queue_base(std::move(to), place, std::move(name)) {}
    using work_queue_base::claim_bytes;
    using work_queue_base::submit_bytes;
    using work_queue_base::take_dead_letter_bytes;
    using work_queue_base::try_claim_bytes;
    using work_queue_base::try_submit_bytes;
    [[nodiscard]] u32 place() const noexcept { return place_; }
};

struct any_task : task_base {
    any_task(std::shared_ptr<attachment> to, u32 place, const u64 (&what)[4])
        : task_base(std::move(to), place, what) {}
};

struct any_semaphore : shared_semaphore {
    any_semaphore(std::shared_ptr<attachment> to, u32 place, std::string name)
        : shared_semaphore(std::move(to), place, std::move(name)) {}
};

struct any_pool : shared_pool {
    any_pool(std::shared_ptr<attachment> to, u32 place, std::string name)
        : shared_pool(std::move(to), place, std::move(name)) {}
    [[nodiscard]] u32 place() const noexcept { return place_; }
};

struct any_block : held_block {
    explicit any_block(held_block&& b) : held_block(std::move(b)) {}
    [[nodiscard]] u32 place() const noexcept { return place_; }
    [[nodiscard]] block units() const noexcept {
        return {static_cast<u32>(what_[0] & 0xFFFFFFFFU), static_cast<u32>(what_[0] >> 32U), what_[1]};
    }
};

struct any_primitive : primitive {
    any_primitive(std::shared_ptr<attachment> to, u32 place, std::string name)
        : primitive(std::move(to), place, std::move(name)) {}
};

/// A queue whose elements begin with three words for the block, then the description.
struct any_block_queue : block_queue_base {
    any_block_queue(const primitive& p, shared_pool pool) : block_queue_base(p, std::move(pool)) {}
    using block_queue_base::receive_bytes;
    using block_queue_base::send_bytes;
    using block_queue_base::try_receive_bytes;
    using block_queue_base::try_send_bytes;
    [[nodiscard]] u32 place() const noexcept { return place_; }
};

}  // namespace carousel::ipc::c

struct carousel_space : carousel::ipc::c::handle {
    static constexpr carousel::u32 kind = 0xCA50'0001;
    explicit carousel_space(std::shared_ptr<carousel::ipc::attachment> space)
        : handle(kind, std::move(space)) {}
    std::mutex mutex;  // guards gpu
    std::shared_ptr<carousel::ipc::gpu_access> gpu;
};

struct carousel_semaphore : carousel::ipc::c::handle {
    static constexpr carousel::u32 kind = 0xCA50'0002;
    carousel_semaphore(std::shared_ptr<carousel::ipc::attachment> space, carousel::u32 place,
                       const char* name)
        : handle(kind, std::move(space)), is(to, place, name) {}
    carousel::ipc::c::any_semaphore is;
};

struct carousel_permit : carousel::ipc::c::handle {
    static constexpr carousel::u32 kind = 0xCA50'0003;
    carousel_permit(std::shared_ptr<carousel::ipc::attachment> space, carousel::ipc::held_permit&& p)
        : handle(kind, std::move(space)), is(std::move(p)) {}
    carousel::ipc::held_permit is;
};

/// `to` keeps the GPU memory of a GPU pool mapped, too.
struct carousel_pool : carousel::ipc::c::handle {
    static constexpr carousel::u32 kind = 0xCA50'0004;
    carousel_pool(std::shared_ptr<carousel::ipc::attachment> space, carousel::u32 place, const char* name,
                  std::shared_ptr<carousel::ipc::gpu_access> on)
        : handle(kind, std::move(space)), gpu(std::move(on)), is(to, place, name) {}
    std::shared_ptr<carousel::ipc::gpu_access> gpu;  // null: host memory
    carousel::ipc::c::any_pool is;
};

struct carousel_block : carousel::ipc::c::handle {
    static constexpr carousel::u32 kind = 0xCA50'0005;
    carousel_block(const carousel_pool& pool, carousel::ipc::held_block&& b)
        : handle(kind, pool.to), gpu(pool.gpu), is(std::move(b)) {}
    carousel_block(std::shared_ptr<carousel::ipc::attachment> space,
                   std::shared_ptr<carousel::ipc::gpu_access> on, carousel::ipc::held_block&& b)
        : handle(kind, std::move(space)), gpu(std::move(on)), is(std::move(b)) {}
    std::shared_ptr<carousel::ipc::gpu_access> gpu;
    carousel::ipc::c::any_block is;
};

struct carousel_share : carousel::ipc::c::handle {
    static constexpr carousel::u32 kind = 0xCA50'0006;
    explicit carousel_share(const carousel_pool& pool) : handle(kind, pool.to), gpu(pool.gpu) {}
    ~carousel_share();
    carousel_share(const carousel_share&) = delete;
    carousel_share& operator=(const carousel_share&) = delete;
    std::shared_ptr<carousel::ipc::gpu_access> gpu;
    carousel::u32 place = 0, owner = 0;
    carousel::ipc::block units;
    void* mapped = nullptr;  // host memory: the mapping, which the destructor removes
    const std::byte* data = nullptr;
    carousel::u64 bytes = 0, offset = 0;
};

struct carousel_queue : carousel::ipc::c::handle {
    static constexpr carousel::u32 kind = 0xCA50'0007;
    carousel_queue(std::shared_ptr<carousel::ipc::attachment> space, carousel::u32 place, const char* name)
        : handle(kind, std::move(space)), is(to, place, name) {}
    carousel::ipc::c::any_queue is;
};

struct carousel_lease : carousel::ipc::c::handle {
    static constexpr carousel::u32 kind = 0xCA50'0008;
    carousel_lease(std::shared_ptr<carousel::ipc::attachment> space, carousel::ipc::c::any_lease&& l)
        : handle(kind, std::move(space)), is(std::move(l)) {}
    carousel::ipc::c::any_lease is;
};

struct carousel_block_queue : carousel::ipc::c::handle {
    static constexpr carousel::u32 kind = 0xCA50'0009;
    carousel_block_queue(const carousel_pool& pool, carousel::u32 place, const char* name,
                         carousel::u32 about)
        : handle(kind, pool.to),
          gpu(pool.gpu),
          about_bytes(about),
          is(carousel::ipc::c::any_primitive(to, place, name), pool.is) {}
    std::shared_ptr<carousel::ipc::gpu_access> gpu;
    carousel::u32 about_bytes;
    carousel::ipc::c::any_block_queue is;
};

struct carousel_work_queue : carousel::ipc::c::handle {
    static constexpr carousel::u32 kind = 0xCA50'000A;
    carousel_work_queue(std::shared_ptr<carousel::ipc::attachment> space, carousel::u32 place,
                        const char* name)
        : handle(kind, std::move(space)), is(to, place, name) {}
    carousel::ipc::c::any_work_queue is;
};

struct carousel_task : carousel::ipc::c::handle {
    static constexpr carousel::u32 kind = 0xCA50'000B;
    carousel_task(std::shared_ptr<carousel::ipc::attachment> space, carousel::ipc::c::any_task&& t)
        : handle(kind, std::move(space)), is(std::move(t)) {}
    carousel::ipc::c::any_task is;
};
