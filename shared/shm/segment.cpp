#include "shm/segment.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <boost/interprocess/mapped_region.hpp>
#include <boost/interprocess/shared_memory_object.hpp>

#include <algorithm>
#include <cerrno>
#include <new>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/resource_limit.hpp"
#include "shm/process_fd.hpp"

namespace carousel::shm {
namespace bi = boost::interprocess;

struct segment::mapping {
    bi::shared_memory_object object;
    bi::mapped_region region;
};

namespace {

/// Boost can map any object that has these two functions.
struct mapped_descriptor {
    int fd;
    [[nodiscard]] bi::mapping_handle_t get_mapping_handle() const noexcept {
        bi::mapping_handle_t h{};
        h.handle = fd;
        h.is_xsi = false;
        return h;
    }
    [[nodiscard]] static bi::mode_t get_mode() noexcept { return bi::read_write; }
};

void check_object(int fd, const std::string& what) {
    struct stat info {};
    if (fstat(fd, &info) != 0)
        throw shm_error(fmt::format("attaching to {}: fstat: {}", what, errno_text(errno)));
    if (info.st_uid != getuid())
        throw shm_error(fmt::format(
            "attaching to {}: it belongs to user {}, but this process runs as {}; run as the same user", what,
            info.st_uid, getuid()));
    if (info.st_size != static_cast<off_t>(sizeof(control_block)))
        throw shm_error(
            fmt::format("attaching to {}: it has {} bytes, but this build expects {}: the run and this "
                        "program have different versions of Carousel; rebuild, or restart the run",
                        what, info.st_size, sizeof(control_block)));
}

void check_block(const control_block& c, const std::string& what) {
    if (c.magic.load(std::memory_order_acquire) != control_magic)
        throw shm_error(fmt::format(
            "attaching to {}: it contains no control block: the run's supervisor is still starting, or died "
            "before it had created the block (in that case `carousel clean` removes the file)",
            what));
    if (c.version != control_version || c.bytes != sizeof(control_block))
        throw shm_error(fmt::format(
            "attaching to {}: it has layout version {}, but this build has {}; rebuild, or restart the run",
            what, c.version, control_version));
    if (c.stages > max_stages || c.seats > max_seats || c.links > max_links || c.sources > max_sources ||
        c.jobs > max_jobs || c.assets > max_assets)
        throw shm_error(fmt::format(
            "attaching to {}: its counts are out of range: the block is damaged, restart the run", what));
}

}  // namespace

segment::segment(std::unique_ptr<mapping> m)
    : mapping_(std::move(m)), block_(static_cast<control_block*>(mapping_->region.get_address())) {}
segment::segment(segment&&) noexcept = default;
segment& segment::operator=(segment&&) noexcept = default;
segment::~segment() = default;

namespace {

constexpr u64 removal_patience_ns = ns_per_s;

void reserve(int fd, u64 from, u64 bytes) {
    if (bytes == 0) return;
    const int failed = reserve_whole(fd, from, bytes);
    if (failed == 0) return;
    throw shm_error(fmt::format("creating the control block: reserving {} KiB of /dev/shm: {}", bytes / 1024,
                                no_shared_room_text(failed)));
}

void set_rights(frame_segment* first, u32 links, int rights) {
    if (::mprotect(first, links * sizeof(frame_segment), rights) == 0) return;
    throw shm_error(fmt::format("setting the permissions of {} KiB of frame headers (mprotect): {}",
                                links * sizeof(frame_segment) / 1024, errno_text(errno)));
}

bool is_linked(int fd) {
    struct stat info {};
    return ::fstat(fd, &info) == 0 && info.st_nlink > 0;
}

// Takes the shared lock. Returns false if the object has been removed, or is being removed by the process
// that holds the exclusive lock. While the lock is held, only this run removes the object.
bool lock_object(int fd, const std::string& name) {
    const int failed = lock_shared(fd);
    if (failed != 0 && failed != EAGAIN)
        throw shm_error(fmt::format(
            "locking /dev/shm/{}: {}; use Linux 3.15 or newer and a /dev/shm that supports fcntl locks", name,
            errno_text(failed)));
    return failed == 0 && is_linked(fd);
}

// A new object has no lock yet. If this process is stopped here, `carousel clean` may treat the object as
// that of a dead run and remove it; the object is then created again.
bi::shared_memory_object make_locked_object(const std::string& name) {
    bi::permissions mode;
    mode.set_permissions(0600);
    for (;;) {
        bi::shared_memory_object made(bi::create_only, name.c_str(), bi::read_write, mode);
        const int fd = made.get_mapping_handle().handle;
        if (lock_object(fd, name)) return made;
        for (const u64 until = now_ns() + removal_patience_ns; is_linked(fd); ::usleep(1000))
            if (now_ns() >= until)
                throw shm_error(fmt::format(
                    "creating the control block /dev/shm/{}: another process has locked it for removal, but "
                    "has not removed it within a second: check whether a `carousel clean` is stopped",
                    name));
    }
}

}  // namespace

segment segment::create(const std::string& run_id) {
    const std::string name = object_name(run_id);
    try {
        auto m = std::make_unique<mapping>();
        m->object = make_locked_object(name);
        const int fd = m->object.get_mapping_handle().handle;
        try {
            if (::ftruncate(fd, sizeof(control_block)) != 0)
                throw shm_error(fmt::format("creating the control block /dev/shm/{}: ftruncate: {}", name,
                                            no_shared_room_text(errno)));
            reserve(fd, 0, word_bytes);
        } catch (...) {
            bi::shared_memory_object::remove(name.c_str());
            throw;
        }
        m->region = bi::mapped_region(m->object, bi::read_write, 0, sizeof(control_block));
        segment made(std::move(m));
        control_block& c = made.block();  // a new object is zero-filled, so every word starts as 0
        c.version = control_version;
        c.uid = getuid();
        c.bytes = sizeof(control_block);
        c.created_ns = now_ns();
        run_id.copy(c.run_id, sizeof c.run_id - 1);
        return made;
    } catch (const bi::interprocess_exception& e) {
        throw shm_error(
            fmt::format("creating the control block /dev/shm/{}: {}: check that /dev/shm is mounted and "
                        "writable (`carousel doctor`)",
                        name, e.what()));
    }
}

segment segment::attach(const std::string& run_id) { return open(run_id, true); }
segment segment::observe(const std::string& run_id) { return open(run_id, false); }

segment segment::join(const std::string& run_id) {
    segment joined = attach(run_id);
    if (lock_object(joined.descriptor(), object_name(run_id))) return joined;
    throw shm_error(
        fmt::format("attaching to the control block /dev/shm/{}: it was removed as a leftover, because no "
                    "process of its run held its lock: start the pipeline again (`carousel run FILE`)",
                    object_name(run_id)));
}

segment segment::open(const std::string& run_id, bool writable) {
    const std::string name = object_name(run_id);
    try {
        auto m = std::make_unique<mapping>();
        const auto mode = writable ? bi::read_write : bi::read_only;
        m->object = bi::shared_memory_object(bi::open_only, name.c_str(), mode);
        check_object(m->object.get_mapping_handle().handle, "/dev/shm/" + name);
        m->region = bi::mapped_region(m->object, mode, 0, sizeof(control_block));
        segment made(std::move(m));
        check_block(made.block(), "/dev/shm/" + name);
        if (writable) shm::guard_frames(made.block());
        return made;
    } catch (const bi::interprocess_exception& e) {
        throw shm_error(
            fmt::format("attaching to the control block /dev/shm/{}: {}: check whether the run exists "
                        "(`carousel ps`); for a "
                        "run in another container run this command there, or share /dev/shm with it",
                        name, e.what()));
    }
}

// Headers of slots that the run does not have are never accessed, so they need no memory.
void segment::publish() {
    const int fd = mapping_->object.get_mapping_handle().handle;
    for (u32 k = 0; k < std::min(block_->links, max_links); ++k)
        reserve(fd, word_bytes + k * sizeof(frame_segment), frame_bytes(block_->link[k].slots));
    block_->magic.store(control_magic, std::memory_order_release);
}

void block_unmapper::operator()(control_block* c) const noexcept { ::munmap(c, sizeof *c); }

private_block make_private_block() {
    void* const at = ::mmap(nullptr, sizeof(control_block), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    return private_block(static_cast<control_block*>(at));
}

void guard_frames(control_block& c) { set_rights(c.frames, max_links, PROT_READ); }

void open_frames(control_block& c, u32 link) {
    CAROUSEL_ASSERT(link < max_links);
    set_rights(&c.frames[link], 1, PROT_READ | PROT_WRITE);
}

segment segment::attach_by(int descriptor) {
    const std::string what = "the control block received over the socket";
    try {
        check_object(descriptor, what);
        auto m = std::make_unique<mapping>();
        m->region =
            bi::mapped_region(mapped_descriptor{descriptor}, bi::read_write, 0, sizeof(control_block));
        segment made(std::move(m));
        check_block(made.block(), what);
        shm::guard_frames(made.block());
        return made;
    } catch (const bi::interprocess_exception& e) {
        throw shm_error(fmt::format("mapping {}: {}", what, e.what()));
    }
}

int segment::descriptor() const noexcept { return mapping_->object.get_mapping_handle().handle; }

void segment::release() const noexcept { unlock(descriptor()); }

bool segment::exists(const std::string& run_id) noexcept {
    try {
        const bi::shared_memory_object object(bi::open_only, object_name(run_id).c_str(), bi::read_only);
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

bool segment::is_held(const std::string& run_id) noexcept {
    try {
        const bi::shared_memory_object object(bi::open_only, object_name(run_id).c_str(), bi::read_only);
        return is_locked_elsewhere(object.get_mapping_handle().handle);
    } catch (const bi::interprocess_exception& e) {
        return e.get_error_code() != bi::not_found_error;
    } catch (const std::exception&) {
        return true;
    }
}

bool segment::remove(const std::string& run_id) noexcept {
    return bi::shared_memory_object::remove(object_name(run_id).c_str());
}

struct trace_segment::mapping {
    bi::shared_memory_object object;
    bi::mapped_region region;
};

trace_segment::trace_segment(std::unique_ptr<mapping> m)
    : mapping_(std::move(m)), block_(static_cast<trace_block*>(mapping_->region.get_address())) {}
trace_segment::trace_segment(trace_segment&&) noexcept = default;
trace_segment& trace_segment::operator=(trace_segment&&) noexcept = default;
trace_segment::~trace_segment() = default;

std::string trace_segment::object_name(const std::string& run_id) {
    return segment::object_name(run_id) + trace_suffix;
}

bool trace_segment::remove(const std::string& run_id) noexcept {
    return bi::shared_memory_object::remove(object_name(run_id).c_str());
}

// The trace block has a lock of its own, because the control block, whose lock also protects the trace block,
// does not exist while the run restarts. If the object has been removed meanwhile, other processes cannot
// find it, but the object still records the traces of this supervisor's run.
void trace_segment::lock() const noexcept { (void)lock_shared(mapping_->object.get_mapping_handle().handle); }

trace_ring* trace_segment::ring(u32 seat) const noexcept {
    return seat < seats_ ? block_->ring + seat : nullptr;
}

trace_segment trace_segment::create(const std::string& run_id, u32 seats) {
    const std::string name = object_name(run_id);
    const u64 bytes = trace_block::bytes_for(std::clamp(seats, 1U, max_seats));
    try {
        try {
            trace_segment found = attach(run_id, true);
            found.lock();
            return found;
        } catch (const shm_error&) {  // no trace block exists, or a dead supervisor has left an incomplete
                                      // trace block
            bi::shared_memory_object::remove(name.c_str());
        }
        bi::permissions mode;
        mode.set_permissions(0600);
        auto m = std::make_unique<mapping>();
        m->object = bi::shared_memory_object(bi::create_only, name.c_str(), bi::read_write, mode);
        // The memory is reserved now, so that a full /dev/shm is an error here and not a SIGBUS in a stage.
        const int failed = reserve_whole(m->object.get_mapping_handle().handle, 0, bytes);
        if (failed != 0) {
            bi::shared_memory_object::remove(name.c_str());
            throw shm_error(fmt::format("creating the trace's rings: reserving {} KiB of /dev/shm: {}",
                                        bytes / 1024, no_shared_room_text(failed)));
        }
        m->region = bi::mapped_region(m->object, bi::read_write, 0, bytes);
        trace_segment made(std::move(m));
        made.lock();
        made.seats_ = std::clamp(seats, 1U, max_seats);
        made.block_->version = trace_version;
        made.block_->uid = getuid();
        made.block_->bytes = bytes;
        made.block_->seats = made.seats_;
        made.block_->magic.store(trace_magic, std::memory_order_release);
        return made;
    } catch (const bi::interprocess_exception& e) {
        throw shm_error(fmt::format("creating the trace's rings /dev/shm/{}: {}", name, e.what()));
    }
}

trace_segment trace_segment::attach(const std::string& run_id, bool writable) {
    const std::string name = object_name(run_id);
    const auto refuse = [&](const std::string& why) {
        throw shm_error(fmt::format("attaching to the trace's rings /dev/shm/{}: {}", name, why));
    };
    try {
        auto m = std::make_unique<mapping>();
        const auto mode = writable ? bi::read_write : bi::read_only;
        m->object = bi::shared_memory_object(bi::open_only, name.c_str(), mode);
        struct stat info {};
        if (fstat(m->object.get_mapping_handle().handle, &info) != 0) refuse(errno_text(errno));
        if (info.st_uid != getuid())
            refuse(fmt::format("they belong to user {}, but this process runs as {}", info.st_uid, getuid()));
        const u64 bytes = info.st_size > 0 ? static_cast<u64>(info.st_size) : 0;
        if (bytes < sizeof(trace_block) || bytes > trace_block::bytes_for(max_seats))
            refuse("their size does not match any version of Carousel");
        m->region = bi::mapped_region(m->object, mode, 0, bytes);
        trace_segment made(std::move(m));
        const trace_block& b = made.block();
        if (b.magic.load(std::memory_order_acquire) != trace_magic) refuse("nothing in them (yet)");
        if (b.version != trace_version || b.bytes != bytes || b.seats == 0 || b.seats > max_seats ||
            trace_block::bytes_for(b.seats) != bytes)
            refuse(
                "they have another layout, because the run and this program have different versions of "
                "Carousel");
        made.seats_ = b.seats;
        return made;
    } catch (const bi::interprocess_exception& e) {
        throw shm_error(fmt::format("attaching to the trace's rings /dev/shm/{}: {}", name, e.what()));
    }
}

}  // namespace carousel::shm
