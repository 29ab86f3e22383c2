#pragma once
// Copies the frame of one chosen slot, for a process that is not a stage: a viewer that shows the picture of
// a slot. The slot is read without a lease, so this process takes no place among the ring's latest members,
// writes nothing into shared memory, and leaves nothing when it dies at any step. Also usable with a
// read-only mapping of the control block.
//
// Sync point: the copy lies between two reads of the slot's word. A producer changes the word to FILL by a
// compare-and-swap before it enqueues any write to the slot, and a freed slot has another generation. If both
// reads (acquire) return the same READY word, no write of another frame has begun before the copy was
// complete. The status words in the slot are compared by the device in addition, before and after the copy.
// Because there is no lease, the slot may be reused during the copy: this is reported, and such bytes are
// never returned as a frame.

#include <memory>

#include "control/mapped_ring.hpp"
#include "device/backend.hpp"
#include "frame/metadata.hpp"

namespace carousel::session {

enum class slot_content : u8 {
    frame,
    tombstone,    ///< a frame without payload
    free,         ///< no frame
    filling,      ///< a producer may be writing the frame
    quarantined,  ///< the writer died and may still be writing
    damaged,      ///< the slot's word or the frame's header is invalid
};

/// A slot's word and the header of its frame, as they were before a copy.
struct slot_stamp {
    slot_content content = slot_content::damaged;
    u64 word = 0;
    u32 epoch = 0;  ///< of the process that filled the slot
    /// If the content is `frame` or `tombstone`: the header. If it is `free`: only the ring sequence of the
    /// last frame that was in the slot.
    ring::frame_facts facts;
};
/// Reads a slot. A slot that the ring does not have reads as damaged.
[[nodiscard]] slot_stamp stamp_slot(const shm::control_block& c, u32 link, u32 slot);
/// True if the slot still has the word of the stamp. To be called after the last byte was copied.
[[nodiscard]] bool is_unchanged(const shm::control_block& c, u32 link, u32 slot,
                                const slot_stamp& before) noexcept;

enum class slot_copy_result : u8 {
    whole,     ///< the bytes belong to the frame of the stamp
    no_frame,  ///< nothing was copied: see the stamp's content
    reused,    ///< the slot was freed or reused during the copy: the bytes are to be discarded
    torn,      ///< the status word in the slot did not match: the bytes are to be discarded
};

/// Copies from the slots of one ring. One thread at a time.
class slot_copier {
public:
    /// Maps the ring's memory for reading. `c` and `on` must outlive this object. Throws device_error.
    slot_copier(const shm::control_block& c, run::mapped_ring from, device::context& on);

    [[nodiscard]] slot_stamp stamp(u32 slot) const { return stamp_slot(*control_, from_.link, slot); }
    /// Copies `bytes` bytes from byte `offset` of the slot on queue `q`, and waits for the copy. `before`:
    /// the slot's stamp. Throws cuda_error if the GPU failed.
    [[nodiscard]] slot_copy_result copy(device::queue& q, u32 slot, const slot_stamp& before, std::byte* to,
                                        u64 offset, u64 bytes);
    [[nodiscard]] const run::mapped_ring& ring() const noexcept { return from_; }

private:
    const shm::control_block* control_;
    run::mapped_ring from_;
    std::unique_ptr<device::mapping> memory_, torn_;
    shm::word event_word_{0};
    std::unique_ptr<device::event> event_;
};

}  // namespace carousel::session
