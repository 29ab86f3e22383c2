#pragma once
// Reads and writes numbers in a parameter set, by field description. Neither schema nor bytes are trusted: a
// field outside the set reads as 0 and is not written.

#include <cstddef>
#include <span>

#include "parameters/parameter_schema.hpp"

namespace carousel::viewer {

/// The number of fields that can be represented in one word, one bit each. A set has fewer: at most
/// max_parameter_bytes / 4.
inline constexpr std::size_t max_fields = 64;

/// Returns the field's bytes; empty if the field is outside the set.
[[nodiscard]] std::span<std::byte> bytes_of(const ring::parameter& p, std::span<std::byte> values) noexcept;
[[nodiscard]] std::span<const std::byte> bytes_of(const ring::parameter& p,
                                                  std::span<const std::byte> values) noexcept;

/// Element `index` as a finite number; 0 if it is not finite.
[[nodiscard]] f64 number_in(const ring::parameter& p, std::span<const std::byte> values,
                            u32 index = 0) noexcept;
/// Writes element `index`, clamped to the field's range, so that the supervisor never refuses it because of
/// its range.
void put_number(const ring::parameter& p, std::span<std::byte> values, u32 index, f64 value) noexcept;

/// Returns the field with that role; null: there is none.
[[nodiscard]] const ring::parameter* with_role(const ring::parameter_schema& s, const char* role) noexcept;
/// True for three numbers, such as a camera's eye or a direction.
[[nodiscard]] inline bool is_point(const ring::parameter& p) noexcept {
    return p.kind == ring::parameter_kind::number && p.count == 3;
}
void read_point(const ring::parameter& p, std::span<const std::byte> values, f32 (&point)[3]) noexcept;
void put_point(const ring::parameter& p, std::span<std::byte> values, const f32 (&point)[3]) noexcept;

/// One bit per field, set if the field's bytes differ.
[[nodiscard]] u64 fields_that_differ(const ring::parameter_schema& s, std::span<const std::byte> a,
                                     std::span<const std::byte> b) noexcept;

}  // namespace carousel::viewer
