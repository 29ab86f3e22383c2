#pragma once
// The status words of a frame's slots (device/backend.hpp): before and after its work, a reader checks that
// the status words of its inputs are still the words that the producers stored; a producer sets the status
// words of its outputs. The device counts status words that do not match, in one counter per frame in flight
// for all inputs together. If the CPU can access the ring, the affected input is determined.
//
// Threads: step() is called on the thread that enqueues, report() on the thread that commits.

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "ring/worker.hpp"
#include "session/attach.hpp"

namespace carousel::session {

struct torn_input {
    std::string_view ring;   ///< name of the ring
    std::string_view maker;  ///< the stage that fills the slot
    bool differs = false;    ///< true if the CPU reads a word other than the expected one (differs_now())
};

/// To be called while the slot is still leased. Returns false if the CPU can't read the memory (which is on a
/// GPU).
[[nodiscard]] bool differs_now(const device::mapping& of, const device::status_word* at,
                               const device::status_word& expected) noexcept;

/// Not thread-safe: one thread at a time.
class torn_lines {
public:
    /// Reports a frame for which the device has counted `words` mismatching status words among its `inputs`:
    /// logs one line for each input that differs now or, if no input differs now, one line that names all
    /// inputs.
    void report(u64 ring_sequence, u32 words, std::span<const torn_input> inputs);

private:
    u64 next_ns_ = 0;
    u64 unlogged_ = 0;  ///< words not yet logged
};

class status_words {
public:
    /// All arguments must outlive this object. `frames`: the maximum number of frames in flight.
    status_words(shm::control_block& c, ring::worker& w, device::context& on,
                 std::span<const mapped_link> inputs, std::span<const mapped_link> outputs,
                 std::size_t frames);
    /// Returns the step that compares the status words of job `j`'s inputs, sets the status words of its
    /// outputs to `state`, and counts mismatches in word `frame`. A tombstone's inputs are not checked.
    [[nodiscard]] device::status_step step(const ring::job& j, u32 frame, device::status_state state) const;
    /// Counts and logs the mismatching words that the device has counted since the last call for `frame`.
    /// Called while the inputs are leased, so that no process is permitted to fill their slots in the
    /// meantime. If a helper has already released the inputs, a word may differ for that reason; the log line
    /// may then name a ring that is not affected.
    void report(const ring::job& j, u32 frame);

private:
    shm::control_block* control_;
    ring::worker* worker_;
    std::span<const mapped_link> inputs_, outputs_;
    std::unique_ptr<device::mapping> torn_;  ///< one u32 per frame, written by the device
    std::vector<u32> seen_;                  ///< number of mismatching words that are already counted
    torn_lines lines_;
};

}  // namespace carousel::session
