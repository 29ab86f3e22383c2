#pragma once
// A plane's hash, computed on the plane's device. Defined in body/block_hash.hpp.

#include <string_view>

#include "core/types.hpp"
#include "device/backend.hpp"

namespace carousel::kernels {

/// The name of the hash that hash_plane computes. If the definition changes, the name changes, too; hashes
/// with different names are never compared.
inline constexpr std::string_view plane_hash_name = "carousel.blocks4k.v1";

/// Number of bytes of private device memory that hash_plane needs on a queue of this kind, for planes of any
/// size; may be 0. One block serves all frames of one queue, because a queue runs in order.
[[nodiscard]] u64 hash_scratch_bytes(device::device_kind kind) noexcept;

/// The hash of rows * row_bytes bytes in row order, without the padding that the pitch leaves between rows
/// (defined in body/block_hash.hpp).
struct hash_args {
    const std::byte* data = nullptr;
    u64 row_bytes = 0, rows = 1;
    u64 pitch = 0;  ///< distance in bytes from one row to the next, at least row_bytes; not used if there is
                    ///< only one row
    std::byte* scratch = nullptr;
    u64 scratch_bytes = 0;  ///< at least hash_scratch_bytes()
    u64* out = nullptr;     ///< the hash is written here after the last byte of the plane has been read; this
                            ///< may be host memory that the device can access
};
void hash_plane(device::queue& q, const hash_args& args);

}  // namespace carousel::kernels
