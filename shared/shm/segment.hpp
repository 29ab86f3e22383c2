#pragma once
// Makes, attaches to and removes the control block: a Boost.Interprocess shared_memory_object and a
// mapped_region over it, mode 0600. Attaching refuses a wrong magic, version, size or user, each with what
// was found.

#include <memory>
#include <string>

#include "shm/control_block.hpp"

namespace carousel::shm {

class segment {
public:
    /// Makes a zeroed block named carousel-RUN_ID. Throws shm_error: exists, no /dev/shm, no space (memory is
    /// reserved here, so that a full /dev/shm is a sentence now and not a SIGBUS later).
    [[nodiscard]] static segment create(const std::string& run_id);
    /// Maps an existing block for reading and writing. Throws shm_error.
    [[nodiscard]] static segment attach(const std::string& run_id);
    /// The same, read-only: an observer can't disturb a run.
    [[nodiscard]] static segment observe(const std::string& run_id);
    /// A block whose descriptor came over a socket: for processes that don't see its name. The descriptor
    /// stays the caller's. Throws shm_error.
    [[nodiscard]] static segment attach_by(int descriptor);
    [[nodiscard]] static bool exists(const std::string& run_id) noexcept;
    static bool remove(const std::string& run_id) noexcept;
    [[nodiscard]] static std::string object_name(const std::string& run_id) { return "carousel-" + run_id; }

    /// Stores magic (release): openers may come in. Called once, when all static parts are written.
    void publish() noexcept;

    segment(segment&&) noexcept;
    segment& operator=(segment&&) noexcept;
    ~segment();
    [[nodiscard]] control_block& block() const noexcept { return *block_; }
    /// To be handed on; it stays this object's.
    [[nodiscard]] int descriptor() const noexcept;

private:
    struct mapping;
    explicit segment(std::unique_ptr<mapping> m);
    [[nodiscard]] static segment open(const std::string& run_id, bool writable);
    std::unique_ptr<mapping> mapping_;
    control_block* block_ = nullptr;
};

}  // namespace carousel::shm
