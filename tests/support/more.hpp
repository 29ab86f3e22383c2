#pragma once
// How often a long test does what it does: CAROUSEL_TEST_MORE times the usual count (a campaign's way to ask
// for more).

#include <cstdlib>

#include "core/types.hpp"

namespace carousel::test {

[[nodiscard]] inline u32 more_of(u32 usual) {
    const char* const times = std::getenv("CAROUSEL_TEST_MORE");
    const int given = times != nullptr ? std::atoi(times) : 1;
    return usual * static_cast<u32>(given > 0 ? given : 1);
}

}  // namespace carousel::test
