#pragma once
// Chooses the device of a stage: "auto", "cpu" or "cuda:N", based on the output of carousel-probe. The
// supervisor runs this helper because it never loads CUDA itself. The helper also replies on a machine
// without a driver.

#include <optional>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "core/runs_on.hpp"
#include "device/backend.hpp"

namespace carousel::supervisor {

struct gpu_offer {
    device::device_id id;
    std::string name;
    bool vmm = true;                ///< memory can be exported as a file descriptor
    bool read_only_host = false;    ///< host memory can be page-locked read-only
    bool same_host_address = true;  ///< page-locked host memory has the same addresses on the GPU as on the
                                    ///< CPU
    bool one_process = false;       ///< compute mode EXCLUSIVE_PROCESS: one process, or one MPS server
    /// free bytes of the GPU's memory; if this number is not known, the size of the memory; all ones: neither
    /// is known
    u64 free_bytes = ~u64{0};
    /// ordinals of the GPUs whose memory the kernels of this GPU can access; empty: unknown
    std::optional<std::vector<int>> peers;
};
struct machine_offer {
    std::vector<gpu_offer> gpus;
    std::string why_none;  ///< the reason why there is no usable GPU
};

/// Runs carousel-probe (in `folder`). If the probe cannot be run or gives an invalid reply, returns a machine
/// without a GPU, and the reason in why_none. Throws out_of_resources if the probe cannot be started for lack
/// of resources.
/// `opens`: a GPU on which no context can be opened is left out; this takes about 0.2 s per GPU.
[[nodiscard]] machine_offer probe_machine(const std::string& folder, bool opens = false);
[[nodiscard]] machine_offer read_probe(const std::string& json_text);
/// The offer in the form of the output of carousel-probe, for read_probe().
[[nodiscard]] nlohmann::json to_json(const machine_offer& machine);

struct device_choice {
    device::device_id id;
    std::string name;  ///< "cpu", "cuda:0"
    bool vmm = true;
    bool read_only_host = false;
    bool same_host_address = true;
    bool one_process = false;
};
/// Throws device_error for a GPU that does not exist; the message names the request and the available
/// devices. "auto" chooses the first GPU if there is one and the stage can run on it; otherwise it chooses
/// the CPU, if the stage can run on the CPU.
[[nodiscard]] device_choice choose_device(const std::string& requested, const machine_offer& machine,
                                          runs_on needed = runs_on::any);

}  // namespace carousel::supervisor
