#pragma once
// Stages of a pipeline may each describe other fields of one type of parameters: each lists those that it
// reads, and the pipeline has the fields of all of them.

#include "parameters/parameter_schema.hpp"

namespace carousel::ring {

/// Returns the fields of `a`, followed by those that only `b` has, with the larger size of both. Throws
/// config_error if the types differ, if a field of both is described in different ways, or if two fields
/// overlap.
[[nodiscard]] parameter_schema union_of(const parameter_schema& a, const parameter_schema& b);
/// Returns true if `whole` has the type of `part`, at least its size, and all of its fields.
[[nodiscard]] bool includes(const parameter_schema& whole, const parameter_schema& part) noexcept;
/// Copies the values of the fields of `schema`. Both sets must have at least its size.
void copy_fields(const parameter_schema& schema, std::span<const std::byte> from,
                 std::span<std::byte> to) noexcept;

}  // namespace carousel::ring
