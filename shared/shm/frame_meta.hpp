#pragma once
// The facts of a frame that are the same in its headers (frame_header.hpp), in the job that makes the frame,
// and in all objects from which a program reads the frame. Copied as a whole: `to.meta() = from.meta()`.

#include "core/types.hpp"

namespace carousel::shm {

inline constexpr u32 none = ~0U;                 ///< "no such index"
inline constexpr u32 max_parameter_bytes = 256;  ///< maximum size of a set of parameters

/// The clock of a frame's capture time.
enum class capture_clock : u32 {
    none = 0,      ///< not given
    live = 1,      ///< CLOCK_MONOTONIC of this machine, counted since the machine was started
    recorded = 2,  ///< the clock of a recording: no latency can be derived from it
};

/// frame_header contains this struct as a member; structs outside shared memory inherit from it.
struct frame_meta {
    /// The frame number that stages see. Equal to the ring sequence, unless the rings here contain only some
    /// of the frames of another host: such frames keep the number that they have on that host.
    u64 frame_number = 0;
    f64 time_s = 0;            ///< frame_number / fps
    u64 born_ns = 0;           ///< source's claim
    u64 capture_ns = 0;        ///< the time of the event that the frame shows, as reported by its source
    u64 parameter_number = 0;  ///< number of the parameter set: 0 at the start, incremented with each change
    capture_clock clock = capture_clock::none;  ///< of capture_ns
    u32 tombstone_stage = none;  ///< the stage that abandoned the frame; `none`: the payload is complete
    u32 tombstone_reason = 0;    ///< exit_note of the last attempt
    u32 reserved = 0;

    [[nodiscard]] constexpr frame_meta& meta() noexcept { return *this; }
    [[nodiscard]] constexpr const frame_meta& meta() const noexcept { return *this; }
    [[nodiscard]] constexpr bool is_tombstone() const noexcept { return tombstone_stage != none; }
    /// Returns the capture time on this machine's clock; 0: it is on another clock or was not given.
    [[nodiscard]] constexpr u64 live_capture_ns() const noexcept {
        return clock == capture_clock::live ? capture_ns : 0;
    }
    /// Sets a capture time on this machine's clock; 0: none.
    constexpr void set_capture_ns(u64 ns) noexcept {
        clock = ns != 0 ? capture_clock::live : capture_clock::none;
        capture_ns = ns;
    }
};
static_assert(sizeof(frame_meta) == 56);

}  // namespace carousel::shm
