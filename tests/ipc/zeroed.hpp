#pragma once
// Zeroed memory for a primitive, as in a fresh memfd, and words that any client may read.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "core/types.hpp"

namespace carousel::test {

template <class Block>
class zeroed {
public:
    explicit zeroed(u64 bytes)
        : bytes_((bytes + 63) / 64 * 64),
          at_(static_cast<char*>(std::aligned_alloc(64, bytes_)), &std::free) {
        if (at_ == nullptr) throw std::bad_alloc();
        std::memset(at_.get(), 0, bytes_);
    }
    [[nodiscard]] Block& operator*() const { return *reinterpret_cast<Block*>(at_.get()); }
    [[nodiscard]] Block* operator->() const { return reinterpret_cast<Block*>(at_.get()); }

private:
    u64 bytes_;
    std::unique_ptr<char, decltype(&std::free)> at_;
};

}  // namespace carousel::test
