#pragma once
// Makes, attaches to and removes the control block: a Boost.Interprocess shared_memory_object and a
// mapped_region over it, mode 0600. Attaching refuses a wrong magic, version, size or user, each with what
// was found.
//
// The frame segments are part of the same object, so whoever finds a run finds them: observers, the next
// supervisor, `carousel clean`. Their pages have rights of their own in each process: who attaches can read
// them all and writes to none until it opens the one of its own output ring.
//
// Who maps a block and takes part in its run, the supervisor and the stages, holds a shared lock on it
// (shm/file_lock.hpp) as long as the segment, or a child that was forked meanwhile, lives. Observers hold
// none. A block without a lock is dead; only its remover takes the exclusive lock, for the time of the
// removal.

#include <memory>
#include <string>

#include "shm/control_block.hpp"

namespace carousel::shm {

class segment {
public:
    /// Makes a zeroed block named carousel-RUN_ID, all of it writable until guard_frames(). Throws shm_error:
    /// exists, no /dev/shm, no space (memory is reserved here and in publish(), so that a full /dev/shm is a
    /// sentence now and not a SIGBUS later). Holds the shared lock.
    [[nodiscard]] static segment create(const std::string& run_id);
    /// Maps an existing block for reading and writing, its frame segments for reading. Throws shm_error.
    [[nodiscard]] static segment attach(const std::string& run_id);
    /// The same, and holds the shared lock. Throws shm_error also if the block has been removed meanwhile.
    [[nodiscard]] static segment join(const std::string& run_id);
    /// As attach(), read-only: an observer can't disturb a run.
    [[nodiscard]] static segment observe(const std::string& run_id);
    /// A block whose descriptor came over a socket: for processes that don't see its name. The descriptor
    /// stays the caller's. Throws shm_error.
    [[nodiscard]] static segment attach_by(int descriptor);
    [[nodiscard]] static bool exists(const std::string& run_id) noexcept;
    /// True if a process holds the shared lock on the block of that name, in whatever namespace it is, or if
    /// that can't be determined. False also if there is no such block.
    [[nodiscard]] static bool is_held(const std::string& run_id) noexcept;
    static bool remove(const std::string& run_id) noexcept;
    [[nodiscard]] static std::string object_name(const std::string& run_id) { return "carousel-" + run_id; }

    /// Reserves the frame segments of the rings that the block names, then stores magic (release): openers
    /// may come in. Called once, when all static parts are written and no header is. Throws shm_error.
    void publish();

    segment(segment&&) noexcept;
    segment& operator=(segment&&) noexcept;
    ~segment();
    [[nodiscard]] control_block& block() const noexcept { return *block_; }
    /// To be handed on; it stays this object's.
    [[nodiscard]] int descriptor() const noexcept;
    /// Releases the shared lock before the mapping ends: this process takes part in the run no longer.
    void release() const noexcept;

private:
    struct mapping;
    explicit segment(std::unique_ptr<mapping> m);
    [[nodiscard]] static segment open(const std::string& run_id, bool writable);
    std::unique_ptr<mapping> mapping_;
    control_block* block_ = nullptr;
};

/// This process writes no header: all frame segments of a mapped block are for reading. Throws shm_error.
void guard_frames(control_block& c);
/// This process, a producer of that ring, writes its headers. Throws shm_error.
void open_frames(control_block& c, u32 link);

struct block_unmapper {
    void operator()(control_block* c) const noexcept;
};
/// A zeroed block that nobody else sees, whose pages come when they are touched: a copy of the words needs no
/// memory for headers.
using private_block = std::unique_ptr<control_block, block_unmapper>;
[[nodiscard]] private_block make_private_block();  ///< throws std::bad_alloc

}  // namespace carousel::shm
