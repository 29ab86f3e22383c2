#pragma once
// Catch2 2.x and 3.x under one include. To skip a test case: skip.hpp.

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include <cstdio>
#include <string>

namespace carousel::test {

/// Matches strings that contain `text`; the two versions of Catch name it differently.
inline auto contains(const std::string& text) {
#if __has_include(<catch2/catch_all.hpp>)
    return Catch::Matchers::ContainsSubstring(text);
#else
    return Catch::Matchers::Contains(text);
#endif
}

/// Equal within about 1e-5 of `value`.
inline auto near(double value) {
#if __has_include(<catch2/catch_all.hpp>)
    return Catch::Approx(value);
#else
    return Catch::Detail::Approx(value);
#endif
}

}  // namespace carousel::test

#if __has_include(<catch2/catch_all.hpp>)
using Catch::Approx;
#endif
