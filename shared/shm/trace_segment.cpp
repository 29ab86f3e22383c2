#include "shm/trace_segment.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/interprocess/mapped_region.hpp>
#include <boost/interprocess/shared_memory_object.hpp>

#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/resource_limit.hpp"
#include "shm/file_lock.hpp"
#include "shm/segment.hpp"

namespace carousel::shm {
namespace bi = boost::interprocess;

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

// While the run restarts there is no control block, whose lock otherwise covers the trace. If the object has
// been removed meanwhile, other processes cannot find it, but it still records the traces of this
// supervisor's run.
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
        } catch (const shm_error&) {  // there is none, or a dead supervisor has left an incomplete one
            bi::shared_memory_object::remove(name.c_str());
        }
        bi::permissions mode;
        mode.set_permissions(0600);
        auto m = std::make_unique<mapping>();
        m->object = bi::shared_memory_object(bi::create_only, name.c_str(), bi::read_write, mode);
        // Reserved now, so that a full /dev/shm is an error here and not a SIGBUS in a stage.
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
            refuse(fmt::format("they belong to user {}, this process runs as {}", info.st_uid, getuid()));
        const u64 bytes = info.st_size > 0 ? static_cast<u64>(info.st_size) : 0;
        if (bytes < sizeof(trace_block) || bytes > trace_block::bytes_for(max_seats))
            refuse("their size does not match any version of Carousel");
        m->region = bi::mapped_region(m->object, mode, 0, bytes);
        trace_segment made(std::move(m));
        const trace_block& b = made.block();
        if (b.magic.load(std::memory_order_acquire) != trace_magic) refuse("nothing in them (yet)");
        if (b.version != trace_version || b.bytes != bytes || b.seats == 0 || b.seats > max_seats ||
            trace_block::bytes_for(b.seats) != bytes)
            refuse("another layout: the run and this program have different versions of Carousel");
        made.seats_ = b.seats;
        return made;
    } catch (const bi::interprocess_exception& e) {
        throw shm_error(fmt::format("attaching to the trace's rings /dev/shm/{}: {}", name, e.what()));
    }
}

}  // namespace carousel::shm
