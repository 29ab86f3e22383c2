#pragma once
// Named ranges for a profiler (NVTX: shown by Nsight Systems and other tools), one domain per stage. NVTX is
// a header-only part of the CUDA toolkit, so no library is linked; a range costs one comparison if no tool is
// attached. In a build without CUDA, all this code compiles to nothing.
//
// Any thread may use it; a range must begin and end on the same thread.

#include <string>

#include "core/types.hpp"

namespace carousel::device {

class profiler {
public:
    explicit profiler(const std::string& domain) noexcept;
    ~profiler();
    profiler(const profiler&) = delete;
    profiler& operator=(const profiler&) = delete;
    /// True if a tool is attached.
    [[nodiscard]] bool attached() const noexcept { return domain_ != nullptr; }

private:
    friend class profiler_range;
    void begin(const char* what, u64 ring_sequence) noexcept;
    void end() noexcept;
    void* domain_ = nullptr;
};

/// A range with the name "WHAT SEQUENCE", which lasts as long as the object exists.
class profiler_range {
public:
    static constexpr u64 no_sequence = ~u64{0};
    profiler_range(profiler& p, const char* what, u64 ring_sequence = no_sequence) noexcept
        : profiler_(p.attached() ? &p : nullptr) {
        if (profiler_ != nullptr) profiler_->begin(what, ring_sequence);
    }
    ~profiler_range() {
        if (profiler_ != nullptr) profiler_->end();
    }
    profiler_range(const profiler_range&) = delete;
    profiler_range& operator=(const profiler_range&) = delete;

private:
    profiler* profiler_;
};

}  // namespace carousel::device
