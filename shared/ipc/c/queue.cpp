// Queues and queues of blocks of <carousel/space.h>.
#include <vector>

#include "ipc/c/handles.hpp"

using namespace carousel;
using namespace carousel::ipc;
using namespace carousel::ipc::c;

namespace {

carousel_queue_state state_of(const queue_base& q) { return {0, q.size(), q.lost(), q.tombs()}; }

/// A buffer for one element of a queue of blocks: three words for the block, then the description, in whole
/// words, as the struct of the C++ interface.
class element {
public:
    static constexpr u32 block_bytes = sizeof(block_ref);
    [[nodiscard]] static u32 bytes(u32 about) { return block_bytes + (about + 7) / 8 * 8; }
    element(u32 about, const void* from) : words_(bytes(about) / 8), about_(about) {
        if (from != nullptr) std::memcpy(words_.data() + 3, from, about);
    }
    [[nodiscard]] void* data() noexcept { return words_.data(); }
    void copy_to(void* to) const {
        if (about_ > 0) std::memcpy(to, words_.data() + 3, about_);
    }

private:
    std::vector<u64> words_;
    u32 about_;
};

}  // namespace

carousel_status carousel_queue_open(carousel_space* space, const char* name, uint32_t elements,
                                    uint32_t element_bytes, const char* type, carousel_queue** queue) {
    return call([&] {
        carousel_space& s = valid(space, "carousel_queue_open");
        const char* const named = &required(name, "carousel_queue_open: name");
        carousel_queue*& to = required(queue, "carousel_queue_open: queue");
        const u32 place = s.to->place(named, {kind::queue, elements, element_bytes, 0, type_of(type)});
        to = new carousel_queue(s.to, place, named);
        return CAROUSEL_OK;
    });
}

carousel_status carousel_queue_close(carousel_queue* queue) { return end(queue, "carousel_queue_close"); }

carousel_status carousel_queue_push(carousel_queue* queue, const void* element, int64_t timeout_ns) {
    return call([&] {
        carousel_queue& q = valid(queue, "carousel_queue_push");
        require_bytes(element, "carousel_queue_push: element");
        return attempt(
            timeout_ns, q.is.name(), [&] { return q.is.try_push_bytes(element); },
            [&](nanoseconds t) { q.is.push_bytes(element, t); });
    });
}

carousel_status carousel_queue_pop(carousel_queue* queue, void* element, int64_t timeout_ns) {
    return call([&] {
        carousel_queue& q = valid(queue, "carousel_queue_pop");
        require_bytes(element, "carousel_queue_pop: element");
        return attempt(
            timeout_ns, q.is.name(), [&] { return q.is.try_pop_bytes(element); },
            [&](nanoseconds t) { q.is.pop_bytes(element, t); });
    });
}

carousel_status carousel_queue_lease(carousel_queue* queue, void* element, int64_t timeout_ns,
                                     carousel_lease** lease) {
    return call([&] {
        carousel_queue& q = valid(queue, "carousel_queue_lease");
        require_bytes(element, "carousel_queue_lease: element");
        carousel_lease*& to = required(lease, "carousel_queue_lease: lease");
        const auto got = [&](u64 ticket) {
            any_lease l(q.to, q.is.place(), ticket);  // returns the element if there is no memory
            to = new carousel_lease(q.to, std::move(l));
        };
        const auto once = [&] {
            const std::optional<u64> ticket = q.is.try_lease_bytes(element);
            if (ticket) got(*ticket);
            return ticket.has_value();
        };
        return attempt(timeout_ns, q.is.name(), once,
                       [&](nanoseconds t) { got(q.is.lease_bytes(element, t)); });
    });
}

carousel_status carousel_lease_commit(carousel_lease* lease) {
    return call([&] {
        valid(lease, "carousel_lease_commit").is.commit();
        return end(lease, "carousel_lease_commit");
    });
}

carousel_status carousel_lease_return(carousel_lease* lease) { return end(lease, "carousel_lease_return"); }

carousel_status carousel_queue_get_state(carousel_queue* queue, carousel_queue_state* state) {
    return call([&] {
        fill(state, state_of(valid(queue, "carousel_queue_get_state").is), "carousel_queue_get_state: state");
        return CAROUSEL_OK;
    });
}

// ---- queue of blocks

carousel_status carousel_block_queue_open(carousel_space* space, const char* name, carousel_pool* pool,
                                          uint32_t blocks, uint32_t about_bytes, const char* type,
                                          carousel_block_queue** queue) {
    return call([&] {
        carousel_space& s = valid(space, "carousel_block_queue_open");
        carousel_pool& p = valid(pool, "carousel_block_queue_open: pool");
        const char* const named = &required(name, "carousel_block_queue_open: name");
        carousel_block_queue*& to = required(queue, "carousel_block_queue_open: queue");
        if (p.to.get() != s.to.get())
            throw failure(CAROUSEL_INVALID_ARGUMENT,
                          "carousel_block_queue_open: the pool was opened with another handle of a space");
        if (about_bytes > (u32{1} << 20U))
            throw failure(
                CAROUSEL_INVALID_ARGUMENT,
                "carousel_block_queue_open: about_bytes exceeds 1 MiB: put the data into the block");
        const u32 place = s.to->place(
            named, {kind::queue, blocks, element::bytes(about_bytes), u64{p.is.place()} + 1, type_of(type)});
        to = new carousel_block_queue(p, place, named, about_bytes);
        return CAROUSEL_OK;
    });
}

carousel_status carousel_block_queue_close(carousel_block_queue* queue) {
    return end(queue, "carousel_block_queue_close");
}

carousel_status carousel_block_queue_send(carousel_block_queue* queue, carousel_block* block,
                                          const void* about, int64_t timeout_ns) {
    return call([&] {
        carousel_block_queue& q = valid(queue, "carousel_block_queue_send");
        carousel_block& b = valid(block, "carousel_block_queue_send: block");
        if (q.about_bytes > 0) require_bytes(about, "carousel_block_queue_send: about");
        if (b.gpu) b.gpu->wait_for_work();
        element e(q.about_bytes, about);
        const carousel_status status = attempt(
            timeout_ns, q.is.name(), [&] { return q.is.try_send_bytes(b.is, e.data()); },
            [&](nanoseconds t) { q.is.send_bytes(b.is, e.data(), t); });
        return status == CAROUSEL_OK ? end(&b, "carousel_block_queue_send") : status;
    });
}

carousel_status carousel_block_queue_receive(carousel_block_queue* queue, void* about, int64_t timeout_ns,
                                             carousel_block** block) {
    return call([&] {
        carousel_block_queue& q = valid(queue, "carousel_block_queue_receive");
        if (q.about_bytes > 0) require_bytes(about, "carousel_block_queue_receive: about");
        carousel_block*& to = required(block, "carousel_block_queue_receive: block");
        element e(q.about_bytes, nullptr);
        const auto got = [&](held_block&& b) {
            to = new carousel_block(q.to, q.gpu, std::move(b));
            e.copy_to(about);
        };
        const auto once = [&] {
            std::optional<held_block> b = q.is.try_receive_bytes(e.data());
            if (b) got(std::move(*b));
            return b.has_value();
        };
        return attempt(timeout_ns, q.is.name(), once,
                       [&](nanoseconds t) { got(q.is.receive_bytes(e.data(), t)); });
    });
}

carousel_status carousel_block_queue_get_state(carousel_block_queue* queue, carousel_queue_state* state) {
    return call([&] {
        carousel_block_queue& q = valid(queue, "carousel_block_queue_get_state");
        fill(state, state_of(any_queue(q.to, q.is.place(), q.is.name())),
             "carousel_block_queue_get_state: state");
        return CAROUSEL_OK;
    });
}
