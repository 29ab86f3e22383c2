#include "device/cpu/memfd.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/errors.hpp"
#include "core/log.hpp"
#include "core/resource_limit.hpp"
#include "shm/sealed_memory.hpp"

namespace carousel::device {

memory_handle create_memfd(std::string_view name, u64 bytes) {
    shm::sealed_memory made = shm::make_sealed_memory(name, bytes);
    memory_handle handle;
    handle.kind = memory_kind::memfd;
    handle.bytes = made.bytes;
    handle.fd = made.fd.release();
    return handle;
}

namespace {

[[noreturn]] void refuse_map(u64 bytes, int why) {
    throw shm_error(
        fmt::format("mapping shared memory: mmap of {} bytes failed: {}", bytes, no_memory_text(why)));
}

}  // namespace

memfd_mapping::memfd_mapping(const memory_handle& handle, access wanted, gaps requested) {
    if (handle.kind != memory_kind::memfd || handle.fd < 0 || handle.bytes == 0) {
        throw shm_error(
            fmt::format("mapping shared memory: a {} handle with fd {} and {} bytes is not a memfd",
                        name_of(handle.kind), handle.fd, handle.bytes));
    }
    struct stat about {};
    if (::fstat(handle.fd, &about) != 0) {
        throw shm_error(
            fmt::format("mapping shared memory: fstat of fd {} failed: {}", handle.fd, errno_text(errno)));
    }
    if (static_cast<u64>(about.st_size) < handle.bytes) {
        throw shm_error(
            fmt::format("mapping shared memory: fd {} has {} bytes, expected {}: restart the pipeline",
                        handle.fd, about.st_size, handle.bytes));
    }
    const int seals = ::fcntl(handle.fd, F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
        throw shm_error(
            fmt::format("mapping shared memory: fd {} was refused, because it is not sealed against "
                        "shrinking and another process could truncate it",
                        handle.fd));
    }
    read_only_ = wanted == access::read;
#ifdef CAROUSEL_BUG_INPUTS_WRITABLE
    const int may = PROT_READ | PROT_WRITE;
#else
    const int may = read_only_ ? PROT_READ : PROT_READ | PROT_WRITE;
#endif
    if (handle.pieces != 0 && handle.bytes % (handle.pieces * host_piece_step) != 0)
        throw shm_error(
            fmt::format("mapping shared memory: {} bytes can't be divided into {} pieces of whole pages",
                        handle.bytes, handle.pieces));
    bytes_ = handle.bytes;
    if (handle.pieces != 0) {
        piece_bytes_ = handle.piece_bytes();
        stride_ = piece_bytes_;
    }
    if (handle.pieces != 0 && requested == gaps::yes)
        map_pieces(handle, may);
    else
        map_whole(handle, may);
    ::madvise(host_, reserved_, MADV_HUGEPAGE);  // a hint that works only where shmem_enabled allows it
    // Stages never fork. If a tool in the process forks, the child must not keep the memory.
    ::madvise(host_, reserved_, MADV_DONTFORK);
}

void memfd_mapping::map_whole(const memory_handle& handle, int may) {
    void* at = ::mmap(nullptr, handle.bytes, may, MAP_SHARED, handle.fd, 0);
    if (at == MAP_FAILED) refuse_map(handle.bytes, errno);
    reserved_ = handle.bytes;
    host_ = data_ = static_cast<std::byte*>(at);
}

void memfd_mapping::map_pieces(const memory_handle& handle, int may) {
    stride_ = piece_bytes_ + host_gap_bytes;
    reserved_ = handle.pieces * stride_;
    void* range = ::mmap(nullptr, reserved_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) refuse_map(reserved_, errno);
    host_ = data_ = static_cast<std::byte*>(range);
    for (u32 k = 0; k < handle.pieces; ++k) {
        if (::mmap(host_ + k * stride_, piece_bytes_, may, MAP_SHARED | MAP_FIXED, handle.fd,
                   static_cast<off_t>(k * piece_bytes_)) != MAP_FAILED)
            continue;
        const int why = errno;
        ::munmap(range, reserved_);
        refuse_map(handle.bytes, why);
    }
}

memfd_mapping::~memfd_mapping() {
    if (::munmap(host_, reserved_) != 0)
        log::error("unmapping {} bytes of shared memory failed: {}", bytes_, errno_text(errno));
}

}  // namespace carousel::device
