#pragma once
// The shared records of a test's processes, in memory that is not part of the space: a file that all map.
// Counts that any of them may raise, each by one atomic addition, so that no death leaves one half raised.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <string>

#include "core/types.hpp"

namespace carousel::test {

constexpr u32 most_items = 1U << 20U;
/// An element or a task. Each count is incremented before or right after the operation that it names.
struct item_story {
    std::atomic<u8> sent, finishing, finished, dead_letters;
};
struct ledger_block {
    std::atomic<u32> next_item;
    std::atomic<u32> broken;  ///< rules, by processes themselves
    std::atomic<u64> operations;
    std::atomic<u64> inside[8];  ///< a semaphore's critical sections: the epoch that is in there
    char first_broken[200];
    item_story item[most_items];
};

class ledger {
public:
    explicit ledger(const std::string& path) {
        const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0 || ::ftruncate(fd, sizeof(ledger_block)) != 0)
            throw std::runtime_error("no ledger " + path);
        void* at = ::mmap(nullptr, sizeof(ledger_block), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        ::close(fd);
        if (at == MAP_FAILED) throw std::runtime_error("the ledger can't be mapped: " + path);
        block_ = static_cast<ledger_block*>(at);
    }
    ~ledger() { ::munmap(block_, sizeof(ledger_block)); }
    ledger(const ledger&) = delete;
    ledger& operator=(const ledger&) = delete;
    ledger_block* operator->() const { return block_; }
    void find(const std::string& what) const {
        if (block_->broken.fetch_add(1) == 0)
            what.copy(block_->first_broken, sizeof block_->first_broken - 1);
    }

private:
    ledger_block* block_ = nullptr;
};

}  // namespace carousel::test
