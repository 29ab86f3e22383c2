#pragma once
// The two environment variables with which a campaign (tests/campaigns/run.py) repeats and lengthens a random
// test.

#include <cstdlib>

#include "core/types.hpp"

namespace carousel::test {

/// The environment variable `name` as a decimal number, or the value `otherwise` if it is not set.
[[nodiscard]] inline u64 from_environment(const char* name, u64 otherwise) {
    const char* const text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// The seed of a random test: CAROUSEL_TEST_SEED, or `otherwise`.
[[nodiscard]] inline u64 seed_or(u64 otherwise) { return from_environment("CAROUSEL_TEST_SEED", otherwise); }

/// `usual` kills, histories or faults, multiplied by CAROUSEL_TEST_SCALE (1 if it is not set).
[[nodiscard]] inline u32 scaled(u32 usual) {
    const u32 times = static_cast<u32>(from_environment("CAROUSEL_TEST_SCALE", 1));
    return usual * (times > 0 ? times : 1);
}

}  // namespace carousel::test
