#include "ipc/send.hpp"

#include "ipc/step.hpp"

namespace carousel::ipc {

bool try_send(pool& from, const block& k, queue& to, void* element) {
    const block_ref r = from.name(k);
    std::memcpy(element, &r, sizeof r);
#ifdef CAROUSEL_BUG_TRANSFERS_FIRST
    (void)from.transfer(r);  // seeded bug: for a moment no word or cell names the block
#endif
    if (!to.try_push(element)) return false;
    (void)from.transfer(r);  // false: the block has already been received
    return true;
}

std::optional<block> try_receive(queue& from, pool& to, void* element, bool* damaged) {
    if (damaged != nullptr) *damaged = false;
    const std::optional<lease> l = from.try_lease(element);
    if (!l) return std::nullopt;
    block_ref r;
    std::memcpy(&r, element, sizeof r);
#ifdef CAROUSEL_BUG_COMMITS_FIRST
    (void)from.commit(*l);  // seeded bug: for a moment no word or cell names the block
#endif
    const std::optional<block> got = to.take(r);
    if (damaged != nullptr) *damaged = !got;
    (void)from.commit(*l);
    return got;
}

void gather_named(queue_block& b, std::vector<block_ref>& named) {
    for (u32 k = 0; k < b.capacity; ++k) {
        const cell_state s = cell_word::of(load(b.cell()[k])).state;
        if (s != cell_state::ready && s != cell_state::leased) continue;
        // In the meantime a consumer may free the cell, and a producer may write it again. Then the block has
        // a live owner, whatever value is read here, and the CAS of the repair fails.
        block_ref r;
        std::memcpy(&r, b.element(k), sizeof r);
        named.push_back(r);
    }
}

}  // namespace carousel::ipc
