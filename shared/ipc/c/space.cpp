// Spaces and semaphores of <carousel/space.h>.
#include <cstddef>

#include "core/clock.hpp"
#include "ipc/c/handles.hpp"

using namespace carousel;
using namespace carousel::ipc;
using namespace carousel::ipc::c;

carousel_status carousel_space_open(const char* name, const carousel_space_options* options,
                                    carousel_space** space) {
    return call([&] {
        const char* const named = &required(name, "carousel_space_open: name");
        carousel_space*& to = required(space, "carousel_space_open: space");
        i64 wait_ns = 5 * static_cast<i64>(ns_per_s);
        if (options != nullptr) {
            // the size of the first version, which programs compiled with it pass also to later libraries
            constexpr std::size_t first = offsetof(carousel_space_options, wait_ns) + sizeof(i64);
            if (options->size < first)
                throw failure(CAROUSEL_INVALID_ARGUMENT,
                              "carousel_space_open: options->size has to be sizeof(carousel_space_options)");
            wait_ns = timeout_of(options->wait_ns).count();
        }
        to = new carousel_space(
            std::make_shared<attachment>(named, static_cast<f64>(wait_ns) / static_cast<f64>(ns_per_s)));
        return CAROUSEL_OK;
    });
}

carousel_status carousel_space_close(carousel_space* space) { return end(space, "carousel_space_close"); }

carousel_status carousel_space_get_info(carousel_space* space, carousel_space_info* info) {
    return call([&] {
        carousel_space& s = valid(space, "carousel_space_get_info");
        const std::lock_guard lock(s.mutex);
        carousel_space_info i{};
        i.bytes = s.to->block().bytes, i.gpu_bytes = s.to->block().gpu_bytes;
        i.epoch = s.to->epoch(), i.is_held = s.to->held() ? 1 : 0;
        i.gpu_ordinal = s.gpu ? s.gpu->ordinal() : -1;
        fill(info, i, "carousel_space_get_info: info");
        return CAROUSEL_OK;
    });
}

carousel_status carousel_space_find(carousel_space* space, const char* name, carousel_shape* shape) {
    return call([&] {
        carousel_space& s = valid(space, "carousel_space_find");
        const char* const named = &required(name, "carousel_space_find: name");
        space_block& b = s.to->block();
        const u32 place = find_place(b, named);
        if (place == no_place)
            throw failure(CAROUSEL_NOT_HELD, "the space \"" + std::string(b.name) + "\" has no \"" + named +
                                                 "\": create it with its shape");
        const ipc::shape is = b.place[place].shaped();
        carousel_shape out{};
        out.count = is.count, out.each = is.each, out.kind = CAROUSEL_OTHER;
        if (is.what == ipc::kind::semaphore) out.kind = CAROUSEL_SEMAPHORE;
        if (is.what == ipc::kind::work_queue)
            out.kind = CAROUSEL_WORK_QUEUE, out.max_attempts = static_cast<u32>(is.more);
        if (is_pool(is.what)) out.kind = CAROUSEL_POOL;
        if (is.what == ipc::kind::gpu_pool) out.memory = CAROUSEL_GPU;
        if (is.what == ipc::kind::queue) out.kind = is.more == 0 ? CAROUSEL_QUEUE : CAROUSEL_BLOCK_QUEUE;
        if (out.kind == CAROUSEL_BLOCK_QUEUE) {
            out.each -= sizeof(block_ref);
            std::string(b.place[is.more - 1].name).copy(out.pool, sizeof out.pool - 1);
        }
        fill(shape, out, "carousel_space_find: shape");
        return CAROUSEL_OK;
    });
}

carousel_status carousel_space_map_gpu(carousel_space* space, int32_t ordinal) {
    return call([&] {
        carousel_space& s = valid(space, "carousel_space_map_gpu");
        if (ordinal < 0)
            throw failure(CAROUSEL_INVALID_ARGUMENT,
                          "carousel_space_map_gpu: GPU " + std::to_string(ordinal) + " does not exist");
        const std::lock_guard lock(s.mutex);
        if (s.to->block().gpu_bytes == 0)  // checked first, so that no context is created in vain
            throw failure(CAROUSEL_REFUSED,
                          std::string("the space \"") + s.to->block().name +
                              "\" has no GPU memory: hold it with GPU memory (carousel hold " +
                              s.to->block().name + " --device cuda:0)");
        if (!s.gpu) {
            s.gpu = map_gpu(s.to, ordinal);
        } else if (s.gpu->ordinal() != ordinal) {
            throw failure(CAROUSEL_REFUSED, "the GPU memory of this space is mapped for GPU " +
                                                std::to_string(s.gpu->ordinal()) +
                                                " already: open the space again for another GPU");
        }
        return CAROUSEL_OK;
    });
}

// ---- semaphore

carousel_status carousel_semaphore_open(carousel_space* space, const char* name, uint32_t permits,
                                        carousel_semaphore** semaphore) {
    return call([&] {
        carousel_space& s = valid(space, "carousel_semaphore_open");
        const char* const named = &required(name, "carousel_semaphore_open: name");
        carousel_semaphore*& to = required(semaphore, "carousel_semaphore_open: semaphore");
        const u32 place = s.to->place(named, {kind::semaphore, permits, 0, 0});
        to = new carousel_semaphore(s.to, place, named);
        return CAROUSEL_OK;
    });
}

carousel_status carousel_semaphore_close(carousel_semaphore* semaphore) {
    return end(semaphore, "carousel_semaphore_close");
}

carousel_status carousel_semaphore_acquire(carousel_semaphore* semaphore, int64_t timeout_ns,
                                           carousel_permit** permit) {
    return call([&] {
        carousel_semaphore& s = valid(semaphore, "carousel_semaphore_acquire");
        carousel_permit*& to = required(permit, "carousel_semaphore_acquire: permit");
        const auto got = [&](held_permit&& p) { to = new carousel_permit(s.to, std::move(p)); };
        const auto once = [&] {
            std::optional<held_permit> p = s.is.try_acquire();
            if (p) got(std::move(*p));
            return p.has_value();
        };
        return attempt(timeout_ns, s.is.name(), once, [&](nanoseconds t) { got(s.is.acquire(t)); });
    });
}

carousel_status carousel_semaphore_get_state(carousel_semaphore* semaphore, carousel_semaphore_state* state) {
    return call([&] {
        carousel_semaphore& s = valid(semaphore, "carousel_semaphore_get_state");
        fill(state, carousel_semaphore_state{0, s.is.free(), s.is.waiting()},
             "carousel_semaphore_get_state: state");
        return CAROUSEL_OK;
    });
}

carousel_status carousel_permit_release(carousel_permit* permit) {
    return end(permit, "carousel_permit_release");
}
