// Pools, blocks and their read-only shares of <carousel/space.h>.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "ipc/c/handles.hpp"

using namespace carousel;
using namespace carousel::ipc;
using namespace carousel::ipc::c;

namespace {

/// Distinguishes spaces in a carousel_share_name.
u32 mark_of(const space_block& s) {
    u32 mark = 2166136261U;
    for (const char c : s.id) mark = (mark ^ static_cast<u8>(c)) * 16777619U;
    return mark;
}

carousel_block_info info_of(const void* data, u64 bytes, u64 offset, const gpu_access* gpu) {
    return {0,
            const_cast<void*>(data),
            bytes,
            offset,
            gpu == nullptr ? CAROUSEL_HOST : CAROUSEL_GPU,
            gpu == nullptr ? -1 : gpu->ordinal()};
}

}  // namespace

carousel_status carousel_pool_open(carousel_space* space, const char* name, uint64_t bytes,
                                   uint64_t unit_bytes, carousel_memory memory, carousel_pool** pool) {
    return call([&] {
        carousel_space& s = valid(space, "carousel_pool_open");
        const char* const named = &required(name, "carousel_pool_open: name");
        carousel_pool*& to = required(pool, "carousel_pool_open: pool");
        if (memory != CAROUSEL_HOST && memory != CAROUSEL_GPU)
            throw failure(CAROUSEL_INVALID_ARGUMENT,
                          "carousel_pool_open: memory has to be CAROUSEL_HOST or CAROUSEL_GPU");
        const u64 whole = round_up_sat(bytes, std::max<u64>(unit_bytes, 1));
        if (memory == CAROUSEL_HOST) {
            to = new carousel_pool(s.to, s.to->place(named, {kind::pool, whole, unit_bytes, 0}), named, {});
            return CAROUSEL_OK;
        }
        const std::lock_guard lock(s.mutex);
        if (!s.gpu)
            throw failure(CAROUSEL_REFUSED,
                          "the GPU memory of this space is not mapped in this process: call "
                          "carousel_space_map_gpu() first");
        const u32 place = s.to->place(named, {kind::gpu_pool, whole, unit_bytes, 0});
        to = new carousel_pool(std::shared_ptr<attachment>(s.gpu, s.to.get()), place, named, s.gpu);
        return CAROUSEL_OK;
    });
}

carousel_status carousel_pool_close(carousel_pool* pool) { return end(pool, "carousel_pool_close"); }

carousel_status carousel_pool_allocate(carousel_pool* pool, uint64_t bytes, int64_t timeout_ns,
                                       carousel_block** block) {
    return call([&] {
        carousel_pool& p = valid(pool, "carousel_pool_allocate");
        carousel_block*& to = required(block, "carousel_pool_allocate: block");
        const auto got = [&](held_block&& b) { to = new carousel_block(p, std::move(b)); };
        const auto once = [&] {
            std::optional<held_block> b = p.is.try_acquire(bytes);
            if (b) got(std::move(*b));
            return b.has_value();
        };
        return attempt(timeout_ns, p.is.name(), once, [&](nanoseconds t) { got(p.is.acquire(bytes, t)); });
    });
}

carousel_status carousel_pool_get_state(carousel_pool* pool, carousel_pool_state* state) {
    return call([&] {
        carousel_pool& p = valid(pool, "carousel_pool_get_state");
        const pool_state s = p.is.state();
        fill(state,
             carousel_pool_state{0, s.bytes, s.free_bytes, s.largest_free_bytes, s.blocks, s.travelling},
             "carousel_pool_get_state: state");
        return CAROUSEL_OK;
    });
}

carousel_status carousel_block_free(carousel_block* block) {
    return call([&] {
        if (block == nullptr) return CAROUSEL_OK;
        carousel_block& b = valid(block, "carousel_block_free");
        if (b.gpu) b.gpu->wait_for_work();  // if this fails, the block must not be reused
        return end(&b, "carousel_block_free");
    });
}

void* carousel_block_data(carousel_block* block) {
    void* data = nullptr;
    (void)call([&] {
        data = valid(block, "carousel_block_data").is.data().data();
        return CAROUSEL_OK;
    });
    return data;
}

carousel_status carousel_block_get_info(carousel_block* block, carousel_block_info* info) {
    return call([&] {
        carousel_block& b = valid(block, "carousel_block_get_info");
        const std::span<std::byte> data = b.is.data();
        fill(info, info_of(data.data(), data.size(), b.is.offset(), b.gpu.get()),
             "carousel_block_get_info: info");
        return CAROUSEL_OK;
    });
}

// ---- shares

carousel_status carousel_block_share(carousel_block* block, carousel_share_name* name) {
    return call([&] {
        carousel_block& b = valid(block, "carousel_block_share");
        const ipc::block units = b.is.units();
        required(name, "carousel_block_share: name") = {{u64{mark_of(b.to->block())} << 32U | b.is.place(),
                                                         u64{units.units} << 32U | units.unit, units.serial,
                                                         b.to->epoch()}};
        return CAROUSEL_OK;
    });
}

carousel_share::~carousel_share() {
    if (mapped != nullptr) ::munmap(mapped, bytes);
}

carousel_status carousel_share_open(carousel_pool* pool, const carousel_share_name* name,
                                    carousel_share** share) {
    return call([&] {
        carousel_pool& p = valid(pool, "carousel_share_open");
        const carousel_share_name& n = required(name, "carousel_share_open: name");
        carousel_share*& to = required(share, "carousel_share_open: share");
        space_block& s = p.to->block();
        auto made = std::make_unique<carousel_share>(p);
        made->place = static_cast<u32>(n.word[0]), made->owner = static_cast<u32>(n.word[3]);
        made->units = {static_cast<u32>(n.word[1]), static_cast<u32>(n.word[1] >> 32U), n.word[2]};
        if (n.word[0] >> 32U != mark_of(s) || made->place != p.is.place())
            throw failure(CAROUSEL_INVALID_ARGUMENT,
                          "carousel_share_open: the name does not belong to a "
                          "block of \"" +
                              p.is.name() + "\"");
        pool_block& b = s.block_of<pool_block>(made->place);
        if (!is_within(made->units.unit, made->units.units, b.units) || made->units.units == 0 ||
            !is_owned(b, made->units, made->owner))
            throw failure(CAROUSEL_NOT_HELD, "\"" + p.is.name() +
                                                 "\": the shared block no longer belongs to the process that "
                                                 "shared it: it was freed, sent, or recovered after a death");
        made->bytes = made->units.units * b.unit_bytes;
        made->offset = b.offset + made->units.unit * b.unit_bytes;
        if (p.gpu) {
            made->data = p.gpu->read_only() + made->offset;
        } else {
            void* const at = ::mmap(nullptr, made->bytes, PROT_READ, MAP_SHARED, p.to->memory_fd(),
                                    static_cast<off_t>(made->offset));
            if (at == MAP_FAILED)
                throw shm_error("mapping a share of \"" + p.is.name() + "\" read-only: " + errno_text(errno));
            ::madvise(at, made->bytes, MADV_DONTFORK);
            made->mapped = at, made->data = static_cast<const std::byte*>(at);
        }
        to = made.release();
        return CAROUSEL_OK;
    });
}

carousel_status carousel_share_get_info(carousel_share* share, carousel_block_info* info) {
    return call([&] {
        carousel_share& s = valid(share, "carousel_share_get_info");
        fill(info, info_of(s.data, s.bytes, s.offset, s.gpu.get()), "carousel_share_get_info: info");
        return CAROUSEL_OK;
    });
}

carousel_status carousel_share_check(carousel_share* share) {
    return call([&] {
        carousel_share& s = valid(share, "carousel_share_check");
        if (!is_owned(s.to->block().block_of<pool_block>(s.place), s.units, s.owner))
            throw failure(CAROUSEL_NOT_HELD,
                          "the shared block no longer belongs to the process that shared "
                          "it: it was freed, sent, or recovered after a death");
        return CAROUSEL_OK;
    });
}

carousel_status carousel_share_close(carousel_share* share) { return end(share, "carousel_share_close"); }
