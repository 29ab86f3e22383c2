#include "stages/runner/test_hooks.hpp"

#include <cstdlib>

namespace carousel::stages {
namespace {

std::optional<u64> number(const char* name) {
    const char* text = std::getenv(name);
    if (text == nullptr) return {};
    return std::strtoull(text, nullptr, 10);
}

}  // namespace

test_hooks test_hooks::of_environment() {
    return {number("CAROUSEL_TEST_TEAR"), number("CAROUSEL_TEST_HOLD_LEASE"),
            std::getenv("CAROUSEL_TEST_FAR_RINGS") != nullptr};
}

}  // namespace carousel::stages
