#pragma once
// The value of an entry's word events_published: 0, no event handle is published yet; otherwise 1 + the
// generation of the MPS domain in which the process records its events (0: the process has its own GPU
// context). One store publishes the handles and the generation together.

#include "core/types.hpp"

namespace carousel::ring {

[[nodiscard]] constexpr u64 published_in(u32 domain) noexcept { return u64{domain} + 1; }
/// Returns the generation; 0 if nothing is published.
[[nodiscard]] constexpr u32 domain_of_events(u64 published) noexcept {
    return published == 0 ? 0 : static_cast<u32>(published - 1);
}

}  // namespace carousel::ring
