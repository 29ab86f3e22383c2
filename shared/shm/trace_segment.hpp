#pragma once
// Makes and maps the trace block of a run: a Boost.Interprocess shared_memory_object, mode 0600, named like
// the control block with ".trace" behind it. Attaching refuses a wrong magic, version, size or user.

#include <memory>
#include <string>

#include "shm/trace_block.hpp"

namespace carousel::shm {

inline constexpr const char* trace_suffix = ".trace";

class trace_segment {
public:
    /// Makes it for so many seats, memory reserved, or opens the one that an earlier supervisor of this run
    /// has made. Holds a shared lock on it (shm/file_lock.hpp), as long as it lives. Throws shm_error: no
    /// /dev/shm, no room.
    [[nodiscard]] static trace_segment create(const std::string& run_id, u32 seats);
    /// For a stage (writable) or a reader. Throws shm_error.
    [[nodiscard]] static trace_segment attach(const std::string& run_id, bool writable);
    static bool remove(const std::string& run_id) noexcept;
    [[nodiscard]] static std::string object_name(const std::string& run_id);

    trace_segment(trace_segment&&) noexcept;
    trace_segment& operator=(trace_segment&&) noexcept;
    ~trace_segment();
    [[nodiscard]] trace_block& block() const noexcept { return *block_; }
    /// Rings that the mapping really holds; what the block says is never more.
    [[nodiscard]] u32 seats() const noexcept { return seats_; }
    /// The ring of a seat, or nullptr.
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
