#pragma once
// The states that a model checker has visited: packed bytes by number, and the number of a packed state.
// Nearly all of a search's time is spent looking up states that were visited before, somewhere in gigabytes:
// so a look-up can be prefetched, its words are in huge pages if the kernel provides them, and a state is
// compared only if its hash may be the same.

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "core/types.hpp"

namespace carousel::test {

class state_set {
public:
    /// `bytes`: size of one state.
    explicit state_set(std::size_t bytes) : bytes_(bytes), table_(made_table(mask_)) {}

    /// Valid for the lifetime of the set.
    [[nodiscard]] const u8* at(u32 k) const {
        return chunks_[k / chunk].get() + std::size_t{k % chunk} * bytes_;
    }
    [[nodiscard]] u32 size() const { return size_; }
    [[nodiscard]] u64 memory() const {
        return u64{chunks_.size()} * chunk * bytes_ + (u64{mask_} + 1) * sizeof(slot);
    }

    [[nodiscard]] u32 hash(const u8* p) const {
        u64 h = 0x243F6A8885A308D3ULL, v = 0;
        std::size_t k = 0;
        for (; k + 8 <= bytes_; k += 8) {
            std::memcpy(&v, p + k, 8);
            h = mixed(h, v);
        }
        v = 0;
        std::memcpy(&v, p + k, bytes_ - k);
        h = mixed(h, v);
        return static_cast<u32>(h ^ (h >> 32U));
    }
    /// A look-up of `hash` follows: prefetches its slot in the table.
    void expect(u32 hash) const { __builtin_prefetch(&slots()[hash & mask_]); }
    /// The table's slot is cached: prefetches the state that it refers to, if it may be the one.
    void expect_state(u32 hash) const {
        const slot s = slots()[hash & mask_];
        if (s.number == empty || s.hash != hash) return;
        const u8* const p = at(s.number);
        __builtin_prefetch(p);
        __builtin_prefetch(p + bytes_ - 1);
    }

    /// Returns the state's number; `fresh` is set to whether it is new.
    u32 insert(const u8* packed, u32 hash, bool& fresh) {
        std::size_t place = hash & mask_;
        for (; slots()[place].number != empty; place = (place + 1) & mask_) {
            const slot s = slots()[place];
            if (s.hash != hash || std::memcmp(at(s.number), packed, bytes_) != 0) continue;
            fresh = false;
            return s.number;
        }
        fresh = true;
        if (size_ % chunk == 0) chunks_.push_back(pages(chunk * bytes_));
        std::memcpy(chunks_.back().get() + std::size_t{size_ % chunk} * bytes_, packed, bytes_);
        slots()[place] = {size_, hash};
        ++size_;
        if (u64{size_} * 8 > (u64{mask_} + 1) * 5) grow();
        return size_ - 1;
    }

private:
    struct slot {
        u32 number, hash;
    };
    struct freed {
        void operator()(u8* p) const { std::free(p); }
    };
    using memory_of = std::unique_ptr<u8[], freed>;
    static constexpr u32 empty = ~0U;
    static constexpr std::size_t chunk = std::size_t{1} << 16U, huge_page = std::size_t{1} << 21U;

    static u64 mixed(u64 h, u64 v) {
        h ^= v;
        h *= 0x9E3779B97F4A7C15ULL;
        return h ^ (h >> 29U);
    }
    static memory_of pages(std::size_t bytes) {
        const std::size_t whole = (bytes + huge_page - 1) / huge_page * huge_page;
        auto* const p = static_cast<u8*>(std::aligned_alloc(huge_page, whole));
        if (p == nullptr) throw std::bad_alloc();
        ::madvise(p, whole, MADV_HUGEPAGE);  // refused: only slower
        return memory_of(p);
    }
    static memory_of made_table(u32 mask) {
        const std::size_t bytes = (std::size_t{mask} + 1) * sizeof(slot);
        memory_of m = pages(bytes);
        std::memset(m.get(), 0xFF, bytes);
        return m;
    }
    [[nodiscard]] slot* slots() const { return reinterpret_cast<slot*>(table_.get()); }

    void grow() {
        const u32 mask = mask_ * 2 + 1;
        memory_of bigger = made_table(mask);
        auto* const to = reinterpret_cast<slot*>(bigger.get());
        for (std::size_t k = 0; k <= mask_; ++k) {
            const slot s = slots()[k];
            if (s.number == empty) continue;
            std::size_t place = s.hash & mask;
            while (to[place].number != empty) place = (place + 1) & mask;
            to[place] = s;
        }
        table_ = std::move(bigger);
        mask_ = mask;
    }

    std::size_t bytes_;
    std::vector<memory_of> chunks_;
    u32 mask_ = (1U << 14U) - 1, size_ = 0;
    memory_of table_;
};

}  // namespace carousel::test
