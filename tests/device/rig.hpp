#pragma once
// The functions that the conformance suite needs in addition to a backend's interface: work that blocks a
// queue until it is released, and memory that another process can map. The backend is chosen at compile time,
// so each has an executable (and a ctest label) of its own.

#include <memory>
#include <string>
#include <vector>

#include "device/backend.hpp"
#include "tests/support/skip.hpp"

namespace carousel::test {

#if defined(CAROUSEL_TEST_ON_CUDA)
inline constexpr bool on_cuda = true;
#else
inline constexpr bool on_cuda = false;
#endif

/// Why the backend can't be tested here ("" when it can). With CAROUSEL_REQUIRE_GPU set, nothing is an
/// excuse.
[[nodiscard]] const std::string& why_skip();

/// The backend under test: the CPU with 3 threads, or the first GPU.
[[nodiscard]] std::unique_ptr<device::context> open_backend();

/// Keeps a queue busy until it is opened (20 s at most, so that a failed test ends).
class gate {
public:
    explicit gate(device::context& on);
    ~gate();
    gate(const gate&) = delete;
    gate& operator=(const gate&) = delete;
    void block(device::queue& q);  ///< enqueues work that ends when the gate is opened
    void open();

private:
    struct state;
    std::shared_ptr<state> state_;
};

/// Enqueues diary[++diary[0]] = value; `diary` is zeroed memory of allocate_host.
void append(device::queue& q, u32* diary, u32 value);

/// Memory that other processes can map, as the supervisor would hold it: a memfd, or VMM memory of the first
/// GPU.
class shareable {
public:
    /// `pieces`: in so many, 0: one block.
    explicit shareable(u64 bytes, u32 pieces = 0);
    ~shareable();
    shareable(const shareable&) = delete;
    shareable& operator=(const shareable&) = delete;
    [[nodiscard]] const device::memory_handle& handle() const noexcept { return handle_; }
    [[nodiscard]] std::vector<int> fds() const;

private:
    device::memory_handle handle_;
};

/// Copies `bytes` from memory of the backend to the host, behind everything in the queue.
[[nodiscard]] std::vector<u8> read_back(device::context& on, device::queue& q, const std::byte* from,
                                        u64 bytes);

}  // namespace carousel::test

/// First line of every test case here.
#define CAROUSEL_NEEDS_BACKEND() \
    if (!::carousel::test::why_skip().empty()) CAROUSEL_SKIP(::carousel::test::why_skip().c_str())
