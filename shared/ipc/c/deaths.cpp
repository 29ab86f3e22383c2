// Reports of deaths of <carousel/space.h>.
#include "ipc/c/handles.hpp"
#include "ipc/death_log.hpp"

using namespace carousel;
using namespace carousel::ipc;
using namespace carousel::ipc::c;

struct carousel_death_watch : handle {
    static constexpr u32 kind = 0xCA50'000C;
    explicit carousel_death_watch(const std::shared_ptr<attachment>& space)
        : handle(kind, space), is(space->block().name) {}
    death_watch is;
    client_death last;
};

carousel_status carousel_space_watch_deaths(carousel_space* space, carousel_death_watch** watch) {
    return call([&] {
        carousel_space& s = valid(space, "carousel_space_watch_deaths");
        carousel_death_watch*& to = required(watch, "carousel_space_watch_deaths: watch");
        to = new carousel_death_watch(s.to);
        return CAROUSEL_OK;
    });
}

carousel_status carousel_death_watch_next(carousel_death_watch* watch, int64_t timeout_ns,
                                          carousel_death* death) {
    return call([&] {
        carousel_death_watch& w = valid(watch, "carousel_death_watch_next");
        // checked first: a death that can't be stored must not be taken
        require_size(required(death, "carousel_death_watch_next: death").size,
                     "carousel_death_watch_next: death");
        std::optional<client_death> d = w.is.next(static_cast<u64>(timeout_of(timeout_ns).count()));
        if (!d) throw timed_out("no client of the space has died");
        w.last = std::move(*d);
        carousel_death out{};
        out.pid = w.last.pid, out.epoch = w.last.epoch;
        out.blocks = w.last.count("blocks"), out.block_bytes = w.last.block_bytes();
        out.permits = w.last.count("permits"), out.leases = w.last.count("cells leased");
        out.tasks = w.last.count("tasks"), out.listed = static_cast<u32>(w.last.blocks.size());
        fill(death, out, "carousel_death_watch_next: death");
        return CAROUSEL_OK;
    });
}

carousel_status carousel_death_watch_get_block(carousel_death_watch* watch, uint32_t index,
                                               carousel_owned_block* block) {
    return call([&] {
        carousel_death_watch& w = valid(watch, "carousel_death_watch_get_block");
        if (index >= w.last.blocks.size())
            throw failure(CAROUSEL_INVALID_ARGUMENT, "carousel_death_watch_get_block: the last death has " +
                                                         std::to_string(w.last.blocks.size()) + " blocks");
        const owned_block& b = w.last.blocks[index];
        carousel_owned_block out{0, b.offset, b.bytes, {}};
        b.pool.copy(out.pool, sizeof out.pool - 1);
        fill(block, out, "carousel_death_watch_get_block: block");
        return CAROUSEL_OK;
    });
}

carousel_status carousel_death_watch_close(carousel_death_watch* watch) {
    return end(watch, "carousel_death_watch_close");
}
