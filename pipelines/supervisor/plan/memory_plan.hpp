#pragma once
// Determines where the memory of a ring or an asset is placed, based on the devices of the stages that map
// it. Only makes the decisions; memory_store.hpp allocates the memory.

#include <string>
#include <vector>

#include "supervisor/plan/guard_plan.hpp"

namespace carousel::ring {
struct plan;
}

namespace carousel::supervisor {

struct run_setup;
struct stage_setup;

struct memory_choice {
    device::memory_kind kind = device::memory_kind::memfd;
    device::device_id device;  ///< for vmm and ipc: the device that provides the memory
    bool operator==(const memory_choice& o) const { return kind == o.kind && device.uuid == o.device.uuid; }
};

/// `ends`: the devices of the producer (or maker), followed by those of the users; all instances of each are
/// included. If all are the CPU, or if the devices are of different kinds, the memory is a memfd, which a GPU
/// page-locks and maps. If all devices are one GPU, the memory is on that GPU, of the `requested` kind (vmm
/// or ipc). If the devices are several GPUs, the memory is on the producer's GPU, of kind vmm, with peer
/// access.
[[nodiscard]] memory_choice choose_memory(const std::vector<device::device_id>& ends,
                                          device::memory_kind requested);

struct memory_item {
    std::string name;  ///< "ring vertex", "asset mesh", for messages
    bool asset = false;
    u32 index = 0;  ///< link or asset number in the control block
    u64 bytes = 0;
    memory_choice choice;
    bool extra = false;     ///< from plan_extra_memory()
    slot_guard guard = {};  ///< for a ring
};
/// One item per link (slots x slot_bytes with their canaries, or slots x pieces) and per asset, in the order
/// of the control block.
[[nodiscard]] std::vector<memory_item> plan_memory(const run_setup& s);

/// Returns the reason why `reader` cannot map that memory read-only; "": it can.
[[nodiscard]] std::string why_unguarded(const stage_setup& reader, const memory_item& m);

/// Returns plan_of() with the canaries of the rings added: the plan from which a control block is made.
[[nodiscard]] ring::plan guarded_plan_of(const run_setup& s);

/// Lists the additional GPU memory that the processes allocate themselves: one slot on an instance's GPU if
/// it reads or writes a ring on another GPU (stages/runner/depth_governor.hpp); a copy of an asset that is on
/// another GPU or on the host; copies of the frames of sampled inputs; the zeros that a stage has instead of
/// the state before the first one; and the spare server of an MPS domain (mps/mps_domain.hpp).
[[nodiscard]] std::vector<memory_item> plan_extra_memory(const run_setup& s);

}  // namespace carousel::supervisor
