#pragma once
// Creates, attaches to and removes the control block: a Boost.Interprocess shared_memory_object and a
// mapped_region over it, mode 0600. Attaching refuses a wrong magic, version, size or user; the error
// contains the value that was found.
// The frame segments are part of the same object, so observers, the next supervisor and `carousel clean` find
// them with the run. The pages of the segments have separate access rights in each process: a process that
// attaches can read all segments and write to none until it opens the segment of its own output ring. A
// process that maps a block and takes part in its run (the supervisor, a stage) holds a shared lock on the
// block (shm/process_fd.hpp). The lock lasts as long as the segment object exists, or a child that was forked
// while the object existed. Observers hold none. A block without a lock is dead; only the process that
// removes it takes the exclusive lock, for the duration of the removal.

#include <memory>
#include <string>

#include "shm/control_block.hpp"
#include "shm/trace_block.hpp"

namespace carousel::shm {

class segment {
public:
    /// Creates a zeroed block named carousel-RUN_ID, entirely writable until guard_frames(). Holds the shared
    /// lock. Throws shm_error if the block exists, or if there is no /dev/shm or no space. Memory is reserved
    /// here and in publish(), so that a full /dev/shm is reported now instead of raising SIGBUS later.
    [[nodiscard]] static segment create(const std::string& run_id);
    /// Maps an existing block for reading and writing, its frame segments read-only. Throws shm_error.
    [[nodiscard]] static segment attach(const std::string& run_id);
    /// Like attach(), and also takes the shared lock. Also throws shm_error if the block has been removed in
    /// the meantime.
    [[nodiscard]] static segment join(const std::string& run_id);
    /// Like attach(), but read-only, so that an observer can't disturb a run.
    [[nodiscard]] static segment observe(const std::string& run_id);
    /// Maps a block whose descriptor was received over a socket, for processes to which its name is not
    /// visible. The caller keeps ownership of the descriptor. Throws shm_error.
    [[nodiscard]] static segment attach_by(int descriptor);
    /// Returns true if a block of that run exists.
    [[nodiscard]] static bool exists(const std::string& run_id) noexcept;
    /// Returns true if a process holds the shared lock on the block of that run, in any namespace, or if that
    /// can't be determined. Also returns false if there is no such block.
    [[nodiscard]] static bool is_held(const std::string& run_id) noexcept;
    /// Removes the name; existing mappings stay valid. Returns false if there is no such name.
    static bool remove(const std::string& run_id) noexcept;
    [[nodiscard]] static std::string object_name(const std::string& run_id) { return "carousel-" + run_id; }

    /// Reserves the frame segments of the rings that the block describes, then stores magic (release):
    /// processes may attach from then on. Called once, after all static parts have been written and before
    /// any header is written. Throws shm_error.
    void publish();

    segment(segment&&) noexcept;
    segment& operator=(segment&&) noexcept;
    ~segment();
    [[nodiscard]] control_block& block() const noexcept { return *block_; }
    /// The descriptor, for passing to another process; this object keeps ownership.
    [[nodiscard]] int descriptor() const noexcept;
    /// Releases the shared lock while the block is still mapped: this process no longer takes part in the
    /// run.
    void release() const noexcept;

private:
    struct mapping;
    explicit segment(std::unique_ptr<mapping> m);
    [[nodiscard]] static segment open(const std::string& run_id, bool writable);
    std::unique_ptr<mapping> mapping_;
    control_block* block_ = nullptr;
};

/// Makes all frame segments of a mapped block read-only in this process. Throws shm_error.
void guard_frames(control_block& c);
/// Makes the headers of ring `link` writable in this process, which is the ring's producer. Throws shm_error.
void open_frames(control_block& c, u32 link);

struct block_unmapper {
    void operator()(control_block* c) const noexcept;
};
/// A zeroed block private to this process. The block's pages are allocated on first access, so a copy of the
/// words needs no memory for headers.
using private_block = std::unique_ptr<control_block, block_unmapper>;
[[nodiscard]] private_block make_private_block();  ///< throws std::bad_alloc

// Creates and maps the trace block of a run: a Boost.Interprocess shared_memory_object, mode 0600, with the
// name of the control block followed by ".trace". Attaching refuses a wrong magic, version, size or user.

inline constexpr const char* trace_suffix = ".trace";

class trace_segment {
public:
    /// Creates the block for `seats` seats with its memory reserved, or opens the block that an earlier
    /// supervisor of this run has created. Holds a shared lock on it (shm/process_fd.hpp) while the object
    /// exists. Throws shm_error if there is no /dev/shm or no room.
    [[nodiscard]] static trace_segment create(const std::string& run_id, u32 seats);
    /// Maps an existing block, for a stage (writable) or a reader. Throws shm_error.
    [[nodiscard]] static trace_segment attach(const std::string& run_id, bool writable);
    static bool remove(const std::string& run_id) noexcept;
    [[nodiscard]] static std::string object_name(const std::string& run_id);

    trace_segment(trace_segment&&) noexcept;
    trace_segment& operator=(trace_segment&&) noexcept;
    ~trace_segment();
    [[nodiscard]] trace_block& block() const noexcept { return *block_; }
    /// Number of rings in the mapping; the count that the block contains is never larger.
    [[nodiscard]] u32 seats() const noexcept { return seats_; }
    /// Returns the ring of a seat, or nullptr.
    [[nodiscard]] trace_ring* ring(u32 seat) const noexcept;

private:
    struct mapping;
    explicit trace_segment(std::unique_ptr<mapping> m);
    void lock() const noexcept;
    std::unique_ptr<mapping> mapping_;
    trace_block* block_ = nullptr;
    u32 seats_ = 0;
};

}  // namespace carousel::shm
