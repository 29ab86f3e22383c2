#pragma once
// A plane's hash, made on its device. body/block_hash.hpp has the definition.

#include <string_view>

#include "core/types.hpp"
#include "device/backend.hpp"

namespace carousel::kernels {

/// What hash_plane computes, by name: another definition gets another name, and hashes of two names are never
/// compared.
inline constexpr std::string_view plane_hash_name = "carousel.blocks4k.v1";

/// Bytes of private device memory that hash_plane needs on such a queue, for planes of any size; 0: none. One
/// block serves all frames of one queue, because a queue runs in order.
[[nodiscard]] u64 hash_scratch_bytes(device::device_kind kind) noexcept;

/// The hash of rows * row_bytes bytes in row order, without what the pitch leaves between them
/// (body/block_hash.hpp has the definition).
struct hash_args {
    const std::byte* data = nullptr;
    u64 row_bytes = 0, rows = 1;
    u64 pitch = 0;  ///< bytes from one row to the next, at least row_bytes; one row needs none
    std::byte* scratch = nullptr;
    u64 scratch_bytes = 0;  ///< at least hash_scratch_bytes()
    u64* out = nullptr;     ///< written behind the plane's last byte was read; host memory that the device
                            ///< reaches will do
};
void hash_plane(device::queue& q, const hash_args& args);

}  // namespace carousel::kernels
