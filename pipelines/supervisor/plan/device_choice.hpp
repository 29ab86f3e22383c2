#pragma once
// Which device a stage gets: "auto", "cpu" or "cuda:N" against what carousel-probe finds. The supervisor asks
// a helper because it never loads CUDA itself; a machine without a driver answers like any other.

#include <optional>
#include <string>
#include <vector>

#include "core/runs_on.hpp"
#include "device/backend.hpp"

namespace carousel::supervisor {

struct gpu_offer {
    device::device_id id;
    std::string name;
    bool vmm = true;                ///< memory can be handed out by fd
    bool read_only_host = false;    ///< host memory can be page-locked for reading alone
    bool same_host_address = true;  ///< page-locked host memory has the CPU's addresses on it
    u64 free_bytes =
        ~u64{0};  ///< of its memory, or all of it where nobody says what is free; all ones: unknown
    /// ordinals of the GPUs whose memory its kernels can reach; empty: not known
    std::optional<std::vector<int>> peers;
};
struct machine_offer {
    std::vector<gpu_offer> gpus;
    std::string why_none;  ///< why there is no GPU to be used
};

/// Runs carousel-probe (in `folder`). A probe that can't be run or talks nonsense is a machine without a GPU,
/// with the reason.
[[nodiscard]] machine_offer probe_machine(const std::string& folder);
[[nodiscard]] machine_offer read_probe(const std::string& json_text);

struct device_choice {
    device::device_id id;
    std::string name;  ///< "cpu", "cuda:0"
    bool vmm = true;
    bool read_only_host = false;
    bool same_host_address = true;
};
/// Throws device_error for a GPU that isn't there: what was asked, what there is. "auto" takes the first GPU,
/// or the CPU, as far as the stage can run there.
[[nodiscard]] device_choice choose_device(const std::string& requested, const machine_offer& machine,
                                          runs_on needed = runs_on::any);

}  // namespace carousel::supervisor
