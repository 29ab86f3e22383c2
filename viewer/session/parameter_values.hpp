#pragma once
// Numbers in a set of parameters by the description of their field. Nothing here trusts schema or bytes: what
// lies outside is 0 when it is read and left alone when it is written.

#include <cstddef>
#include <span>

#include "ring/parameter_schema.hpp"

namespace carousel::viewer {

/// Fields that one word of bits can name; a set has fewer, max_parameter_bytes / 4 at most.
inline constexpr std::size_t max_fields = 64;

/// The field's bytes; empty: it lies outside of the set.
[[nodiscard]] std::span<std::byte> bytes_of(const ring::parameter& p, std::span<std::byte> values) noexcept;
[[nodiscard]] std::span<const std::byte> bytes_of(const ring::parameter& p,
                                                  std::span<const std::byte> values) noexcept;

/// Element `index` as a finite number.
[[nodiscard]] f64 number_in(const ring::parameter& p, std::span<const std::byte> values,
                            u32 index = 0) noexcept;
/// Writes element `index`, put within what the field may be: what is written is never refused for its range.
void put_number(const ring::parameter& p, std::span<std::byte> values, u32 index, f64 value) noexcept;

/// The field of that role; null: there is none.
[[nodiscard]] const ring::parameter* with_role(const ring::parameter_schema& s, const char* role) noexcept;
/// Three numbers, as a camera's eye and a direction have.
[[nodiscard]] inline bool is_point(const ring::parameter& p) noexcept {
    return p.kind == ring::parameter_kind::number && p.count == 3;
}
void read_point(const ring::parameter& p, std::span<const std::byte> values, f32 (&point)[3]) noexcept;
void put_point(const ring::parameter& p, std::span<std::byte> values, const f32 (&point)[3]) noexcept;

/// One bit a field: those whose bytes differ.
[[nodiscard]] u64 fields_that_differ(const ring::parameter_schema& s, std::span<const std::byte> a,
                                     std::span<const std::byte> b) noexcept;

}  // namespace carousel::viewer
