#pragma once
// Where the memory of a ring or an asset lies, from the devices of those who map it. Decisions only;
// memory_store.hpp makes it.

#include <string>
#include <vector>

#include "supervisor/plan/run_setup.hpp"
#include "supervisor/plan/slot_guard.hpp"

namespace carousel::supervisor {

struct memory_choice {
    device::memory_kind kind = device::memory_kind::memfd;
    device::device_id device;  ///< whose memory, for vmm and ipc
    bool operator==(const memory_choice& o) const { return kind == o.kind && device.uuid == o.device.uuid; }
};

/// `ends`: producer (or maker) first, each with all its instances. All on the CPU, or unlike ends: a memfd,
/// which a GPU page-locks and maps. All on one GPU: its memory, as `requested` says (vmm or ipc). Several
/// GPUs: the producer's memory, by vmm, with peer access.
[[nodiscard]] memory_choice choose_memory(const std::vector<device::device_id>& ends,
                                          device::memory_kind requested);

struct memory_item {
    std::string name;  ///< "ring vertex", "asset mesh", for messages
    bool asset = false;
    u32 index = 0;  ///< link or asset number in the control block
    u64 bytes = 0;
    memory_choice choice;
    bool extra = false;     ///< of plan_extra_memory()
    slot_guard guard = {};  ///< of a ring
};
/// One item a link (slots x slot_bytes with their canaries, or slots x pieces) and an asset, in the order of
/// the control block.
[[nodiscard]] std::vector<memory_item> plan_memory(const run_setup& s);

/// Why `reader` can't map that memory for reading alone; "": it can.
[[nodiscard]] std::string why_unguarded(const stage_setup& reader, const memory_item& m);

/// plan_of(), and the canaries of its rings: what a control block is made from.
[[nodiscard]] ring::plan guarded_plan_of(const run_setup& s);

/// What else lies on GPUs for these, made by the processes themselves: where a ring lies on another GPU than
/// an instance that reads or writes it, one slot on its own (stages/runner/reach.hpp); where an asset does,
/// or lies on the host, a copy of it; and the spare server of an MPS domain (mps/mps_domain.hpp).
[[nodiscard]] std::vector<memory_item> plan_extra_memory(const run_setup& s);

}  // namespace carousel::supervisor
