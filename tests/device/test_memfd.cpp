#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/errors.hpp"
#include "device/cpu/memfd.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using device::create_memfd;
using device::memfd_mapping;
using device::memory_handle;

TEST_CASE("shared host memory comes in whole pages, zeroed, and closes on exec") {
    const memory_handle handle = create_memfd("pages", 5000);
    REQUIRE(handle.kind == device::memory_kind::memfd);
    REQUIRE(handle.bytes == 8192);
    REQUIRE((::fcntl(handle.fd, F_GETFD) & FD_CLOEXEC) != 0);
    const memfd_mapping mapping(handle);
    REQUIRE(mapping.bytes() == 8192);
    REQUIRE(reinterpret_cast<std::uintptr_t>(mapping.data()) % 4096 == 0);
    u64 not_zero = 0;
    for (u64 i = 0; i < mapping.bytes(); ++i) not_zero += mapping.data()[i] != std::byte{0} ? 1 : 0;
    REQUIRE(not_zero == 0);
    ::close(handle.fd);
    mapping.data()[8191] = std::byte{1};  // only the mapping keeps the memory
}

TEST_CASE("no process can shrink, grow or unseal shared host memory") {
    const memory_handle handle = create_memfd("sealed", 1 << 20);
    REQUIRE(::ftruncate(handle.fd, 0) == -1);
    REQUIRE(errno == EPERM);
    REQUIRE(::ftruncate(handle.fd, 2 << 20) == -1);
    REQUIRE(errno == EPERM);
    REQUIRE(::fcntl(handle.fd, F_ADD_SEALS, F_SEAL_WRITE) == -1);
    struct stat about {};
    REQUIRE(::fstat(handle.fd, &about) == 0);
    REQUIRE(about.st_size == 1 << 20);
    ::close(handle.fd);
}

TEST_CASE("host memory that can be truncated is refused") {
    memory_handle handle;
    handle.bytes = 4096;
    handle.fd = ::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    REQUIRE(::ftruncate(handle.fd, 4096) == 0);
    REQUIRE_THROWS_WITH(memfd_mapping(handle), test::contains("not sealed"));
    REQUIRE(::fcntl(handle.fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
    REQUIRE_NOTHROW(memfd_mapping(handle));
    handle.bytes = 8192;
    REQUIRE_THROWS_WITH(memfd_mapping(handle), test::contains("4096 bytes, expected 8192"));
    ::close(handle.fd);
}

TEST_CASE("a request for too much host memory is refused with the requested and the free size") {
    REQUIRE_THROWS_WITH(create_memfd("ring geometry", u64{1} << 45),
                        test::contains("ring geometry") && test::contains("free"));
    REQUIRE_THROWS_AS(create_memfd("nothing", 0), shm_error);
    REQUIRE_THROWS_AS(create_memfd("absurd", ~u64{0}), shm_error);
    REQUIRE(device::available_host_bytes() > 0);
}

TEST_CASE("a slot of memory in pieces ends where its gap begins, and lies where it does without gaps") {
    memory_handle handle = create_memfd("pieces", u64{3} * 8192);
    handle.pieces = 3;
    constexpr u64 bytes = 5120;
    REQUIRE(handle.holds(3, bytes));
    CHECK_FALSE(handle.holds(4, bytes));
    CHECK_FALSE(handle.holds(3, 8193));
    const memfd_mapping gapped(handle);
    const memfd_mapping whole(handle, device::access::write, device::gaps::no);
    CHECK(gapped.has_gaps());
    CHECK_FALSE(whole.has_gaps());
    CHECK(gapped.stride(bytes) == 8192 + device::host_gap_bytes);
    for (u32 k = 0; k < 3; ++k) {
        CHECK(reinterpret_cast<std::uintptr_t>(gapped.slot(k, bytes)) % device::slot_alignment == 0);
        CHECK((reinterpret_cast<std::uintptr_t>(gapped.slot(k, bytes)) + bytes) % 4096 == 0);
        gapped.slot(k, bytes)[bytes - 1] = static_cast<std::byte>(k + 1);
        CHECK(whole.slot(k, bytes)[bytes - 1] == static_cast<std::byte>(k + 1));
    }
    ::close(handle.fd);
}

TEST_CASE("pieces that are no whole pages are refused") {
    memory_handle handle = create_memfd("odd", 8192);
    handle.pieces = 3;
    REQUIRE_THROWS_AS(memfd_mapping(handle), shm_error);
    ::close(handle.fd);
}
