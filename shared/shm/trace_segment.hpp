#pragma once
// Creates and maps the trace block of a run: a Boost.Interprocess shared_memory_object, mode 0600, with the
// name of the control block followed by ".trace". Attaching refuses a wrong magic, version, size or user.

#include <memory>
#include <string>

#include "shm/trace_block.hpp"

namespace carousel::shm {

inline constexpr const char* trace_suffix = ".trace";

class trace_segment {
public:
    /// Creates the block for `seats` seats with its memory reserved, or opens the block that an earlier
    /// supervisor of this run has created. Holds a shared lock on it (shm/file_lock.hpp) while the object
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
    /// Number of rings in the mapping; the block's own count never exceeds it.
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
