#pragma once
// The GPU operations of `carousel hold`, done by carousel-alloc: this process never uses CUDA.

#include <string>

#include "ipc/gpu_memory.hpp"

namespace carousel::supervisor {

class gpu_programs final : public ipc::gpu_helper {
public:
    /// `folder`: contains carousel-alloc.
    gpu_programs(std::string folder, int ordinal) : folder_(std::move(folder)), ordinal_(ordinal) {}
    [[nodiscard]] ipc::gpu_memory make(u64 bytes) override;
    [[nodiscard]] ipc::gpu_repairer start_repairer() override;
    void reap(const ipc::gpu_repairer& m) override;

private:
    std::string folder_;
    int ordinal_;
};

}  // namespace carousel::supervisor
