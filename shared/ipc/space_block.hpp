#pragma once
// The memory of a space: one sealed memfd, which every process of the space maps.
//
//   space_block    identity, the registry, the directory
//   arena          the primitives' words and the pools' memory, one after another
//
// A space that was created with a GPU also has GPU memory (gpu_memory.hpp), which contains the queues for
// kernels and the memory of GPU pools, one after another.
//
// Only the holder writes the directory: it fills an EMPTY place and then publishes it by one CAS. The free
// part of the arena is derived from the published places, so a holder that dies while it creates a primitive
// leaves an EMPTY place and nothing to repair. A primitive exists as long as the space does.
//
// The holder creates the whole memory and stores the magic last (release); an attaching process reads the
// magic first (acquire).

#include <cstddef>
#include <string>

#include "ipc/gate.hpp"
#include "ipc/gpu_memory.hpp"
#include "ipc/registry.hpp"

namespace carousel::ipc {

inline constexpr u64 space_magic = 0x4341'524F'5350'4143;  ///< "CAROSPAC"
inline constexpr u32 space_version = 3;                    ///< version of the layout of the whole memory
inline constexpr u32 max_primitives = 64;
inline constexpr std::size_t longest_name = 40;

/// gpu_pool: only CPUs change its words, but its memory is on the GPU. gpu_queue and gpu_work_queue: words
/// and elements are in GPU memory, and only kernels change them.
enum class kind : u8 { none, semaphore, queue, work_queue, pool, gpu_pool, gpu_queue, gpu_work_queue };
[[nodiscard]] constexpr bool is_pool(kind k) { return k == kind::pool || k == kind::gpu_pool; }
/// True if the primitive's words are in GPU memory. A repair process then repairs them by kernels.
[[nodiscard]] constexpr bool has_gpu_words(kind k) {
    return k == kind::gpu_queue || k == kind::gpu_work_queue;
}
[[nodiscard]] const char* name_of(kind k) noexcept;

/// The shape of a primitive that a client requests. The meaning of a field depends on the kind of the
/// primitive: each field's comment has four parts: its meaning for a semaphore; a queue; a work queue; a
/// pool.
struct shape {
    kind what = kind::none;
    u64 count = 0;  ///< permits; cells; tasks; bytes of the pool
    u64 each = 0;   ///< unused; bytes of an element; bytes of a task; bytes of a unit
    u64 more = 0;   ///< unused; 0, or 1 + the place of the pool whose blocks are sent; max_attempts; unused
    u64 type = 0;   ///< unused; type of an element; type of a task (type_tag.hpp; 0: any type); unused
    bool operator==(const shape&) const = default;
};
/// Returns "a queue of 4096 elements of 24 bytes"
[[nodiscard]] std::string text_of(const shape& s);

enum class place_state : u8 { empty, ready };
using place_word = owner_word<place_state>;
struct alignas(64) directory_entry {
    word state;
    u64 offset, bytes;  ///< range of the primitive, from the start of the space
    u64 what, count, each, more;
    u64 gpu_offset, gpu_bytes;  ///< range of the primitive in the GPU memory
    char name[longest_name + 8];
    u64 type;
    [[nodiscard]] shape shaped() const { return {static_cast<kind>(what), count, each, more, type}; }
};

struct space_block {
    word magic;
    u32 version, uid;
    u64 bytes;
    char id[40];
    char name[longest_name + 8];
    u64 gpu_bytes;  ///< 0: no GPU
    char gpu_uuid[40];
    word repairer, repairer_start;  ///< pid and start time of the current or last repair process
    word holder;  ///< {number of the holder's incarnations, 0, 0}: the number is 1 until the space is taken
                  ///< over
    alignas(64) shm::doorbell_word bell;
    registry_block registry;
    directory_entry place[max_primitives];
    /// Each row occupies whole pages, so that it can be page-locked.
    alignas(4096) gate_row gates[max_clients];

    [[nodiscard]] std::byte* at(u64 offset) { return reinterpret_cast<std::byte*>(this) + offset; }
    template <class Block>
    [[nodiscard]] Block& block_of(u32 k) {
        return *reinterpret_cast<Block*>(at(place[k].offset));
    }
};
static_assert(sizeof(directory_entry) == 128 && sizeof(space_block) % 64 == 0);
static_assert(offsetof(space_block, registry) % 64 == 0);

inline constexpr u32 no_place = ~u32{0};
/// Returns the published place with that name, or no_place.
[[nodiscard]] u32 find_place(const space_block& s, const std::string& name);

/// Called by the holder. Returns the place with that name; creates the primitive if it does not exist. Throws
/// config_error if the existing primitive has another shape, if there is no room, or if sizes are out of
/// bounds.
[[nodiscard]] u32 make_place(space_block& s, const std::string& name, const shape& wanted);
/// Throws config_error if a shape that a client requests is out of bounds.
void check_shape(const std::string& name, const shape& wanted);
/// Throws config_error if the primitive at that place does not have the shape `wanted`.
void require_shape(const space_block& s, u32 place, const shape& wanted);

/// Called by the holder after the fence of `dead`: repairs all primitives. May be repeated.
void repair_all(space_block& s, u32 dead);
/// True if any primitive has words in GPU memory, so that after a death a repair process is needed.
[[nodiscard]] bool has_gpu_words(const space_block& s);

}  // namespace carousel::ipc
