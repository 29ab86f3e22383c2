#include "stages/runner/test_hooks.hpp"

#include <cstdlib>
#include <string_view>

namespace carousel::stages {
namespace {

std::optional<u64> number(const char* name) {
    const char* text = std::getenv(name);
    if (text == nullptr) return {};
    return std::strtoull(text, nullptr, 10);
}

shm::block_guard requested_guard() {
    const char* text = std::getenv("CAROUSEL_TEST_BLOCK_GUARD");
    const std::string_view asked = text == nullptr ? "" : text;
    if (asked == "off") return shm::block_guard::off;
    if (asked == "pages") return shm::block_guard::pages;
    if (asked == "emulated") return shm::block_guard::emulated;
    return shm::block_guard::keys;
}

}  // namespace

test_hooks test_hooks::of_environment() {
    return {number("CAROUSEL_TEST_TEAR"), number("CAROUSEL_TEST_HOLD_LEASE"),
            std::getenv("CAROUSEL_TEST_PEER_RINGS") != nullptr, requested_guard(),
            std::getenv("CAROUSEL_TEST_INPUTS_WRITABLE") != nullptr};
}

}  // namespace carousel::stages
