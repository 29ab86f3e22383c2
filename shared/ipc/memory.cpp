#include "ipc/memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/interprocess/mapped_region.hpp>
#include <cerrno>
#include <filesystem>

#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/resource_limit.hpp"
#include "core/secret.hpp"
#include "shm/process_id.hpp"
#include "shm/sealed_memory.hpp"

namespace carousel::ipc {
namespace bi = boost::interprocess;
namespace {

std::string memfd_name(const std::string& id) { return "carousel-space-" + id; }

// The member functions that Boost requires a memory object to have.
struct mappable {
    int fd = -1;
    [[nodiscard]] bi::mapping_handle_t get_mapping_handle() const {
        bi::mapping_handle_t h{};
        h.handle = fd;
        h.is_xsi = false;
        return h;
    }
    [[nodiscard]] bi::mode_t get_mode() const { return bi::read_write; }
};

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
    throw shm_error(fmt::format("attaching to the space \"{}\": {}", name, why));
}

}  // namespace

struct memory::mapping {
    bi::mapped_region region;
};

memory::memory(shm::unique_fd fd, std::unique_ptr<mapping> m)
    : fd_(std::move(fd)),
      mapping_(std::move(m)),
      block_(static_cast<space_block*>(mapping_->region.get_address())) {
    ::madvise(mapping_->region.get_address(), mapping_->region.get_size(), MADV_DONTFORK);
}
memory::memory(memory&&) noexcept = default;
memory& memory::operator=(memory&&) noexcept = default;
memory::~memory() = default;

memory memory::make(const std::string& name, u64 bytes, const gpu_memory& gpu) {
    const std::string id = new_token();
    auto [fd, size] = shm::make_sealed_memory(memfd_name(id), std::max<u64>(bytes, sizeof(space_block)));
    // The pages are reserved now, because if memory ran out later, a client would die of SIGBUS in the middle
    // of a step.
    if (const int failed = reserve_whole(fd.get(), 0, size); failed != 0)
        throw shm_error(fmt::format("creating the memory of \"{}\": reserving {} MiB: {}", name, size >> 20U,
                                    failed == ENOSPC
                                        ? no_memory_text(ENOMEM)
                                        : no_room_text(failed, "use a smaller --size, or free memory")));
    try {
        auto m = std::make_unique<mapping>();
        m->region = bi::mapped_region(mappable{fd.get()}, bi::read_write, 0, size);
        memory made(std::move(fd), std::move(m));
        space_block& s = made.block();
        s.version = space_version, s.uid = ::geteuid(), s.bytes = size;
        s.gpu_bytes = gpu.bytes;
        gpu.uuid.copy(s.gpu_uuid, sizeof s.gpu_uuid - 1);
        id.copy(s.id, sizeof s.id - 1);
        name.copy(s.name, longest_name);
        s.magic.store(space_magic, std::memory_order_release);
        return made;
    } catch (const bi::interprocess_exception& e) {
        throw shm_error(fmt::format("mapping the memory of \"{}\", {} bytes: {}", name, size, e.what()));
    }
}

memory memory::map(shm::unique_fd fd, const std::string& name) {
    struct stat about {};
    if (::fstat(fd.get(), &about) != 0) refuse(name, "fstat of its memory: " + errno_text(errno));
    const int seals = ::fcntl(fd.get(), F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
        refuse(name,
               "its memory was not created by `carousel hold`: it is not sealed, so another process could "
               "truncate it");
    if (static_cast<u64>(about.st_size) < sizeof(space_block))
        refuse(name, fmt::format("its memory has {} bytes, but a space has at least {}: rebuild this "
                                 "program, or hold the space again",
                                 about.st_size, sizeof(space_block)));
    try {
        auto m = std::make_unique<mapping>();
        m->region =
            bi::mapped_region(mappable{fd.get()}, bi::read_write, 0, static_cast<std::size_t>(about.st_size));
        memory made(std::move(fd), std::move(m));
        const space_block& s = made.block();
        if (load(s.magic) != space_magic) refuse(name, "its memory contains no space: hold it again");
        if (s.version != space_version)
            refuse(name,
                   fmt::format(
                       "its layout is version {}, but this program has version {}: rebuild the program, or "
                       "hold the space again",
                       s.version, space_version));
        if (s.uid != ::geteuid())
            refuse(name, fmt::format(
                             "it belongs to user {}, but this process runs as user {}: run as the same user",
                             s.uid, ::geteuid()));
        if (s.bytes != static_cast<u64>(about.st_size))
            refuse(
                name,
                fmt::format(
                    "its header states {} bytes, but its memory has {}: the space is damaged, hold it again",
                    s.bytes, about.st_size));
        return made;
    } catch (const bi::interprocess_exception& e) {
        refuse(name, fmt::format("mapping {} bytes: {}", about.st_size, e.what()));
    }
}

std::vector<i32> processes_with(const std::string& id) {
    std::vector<i32> all;
    std::error_code failed;
    for (const auto& process : std::filesystem::directory_iterator("/proc", failed)) {
        const std::string name = process.path().filename().string();
        if (name.find_first_not_of("0123456789") != std::string::npos) continue;
        if (shm::maps_file(std::stoi(name), memfd_name(id))) all.push_back(std::stoi(name));
    }
    std::sort(all.begin(), all.end());
    return all;
}

u32 mappers_of(const std::string& id) { return static_cast<u32>(processes_with(id).size()); }

}  // namespace carousel::ipc
