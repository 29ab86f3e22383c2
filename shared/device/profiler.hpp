#pragma once
// Named ranges for a profiler (NVTX: Nsight Systems and others show them), a domain a stage. The headers come
// with the CUDA toolkit and are all there is: nothing is linked, and where no tool is attached a range costs
// one comparison. In a build without CUDA all of it is nothing.
//
// Any thread; a range begins and ends in one thread.

#include <string>

#include "core/types.hpp"

namespace carousel::device {

class profiler {
public:
    explicit profiler(const std::string& domain) noexcept;
    ~profiler();
    profiler(const profiler&) = delete;
    profiler& operator=(const profiler&) = delete;
    /// A tool listens.
    [[nodiscard]] bool attached() const noexcept { return domain_ != nullptr; }

private:
    friend class profiler_range;
    void begin(const char* what, u64 ring_sequence) noexcept;
    void end() noexcept;
    void* domain_ = nullptr;
};

/// "WHAT SEQUENCE", for as long as the object lives.
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
