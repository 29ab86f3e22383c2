// The functions of body/exponential.hpp against the C library's functions in double precision. The loops step
// through the bit patterns of floats with a prime stride, so that every exponent and all kinds of mantissas
// occur.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/body/exponential.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::kernels::body;

namespace {

/// Distance of `got` from the exact value, in units in the last place of the exact value (subnormal results:
/// in subnormal steps).
f64 units(f32 got, f64 exact) {
    const int exponent = std::max(std::ilogb(exact), -126);
    return std::abs(static_cast<f64>(got) - exact) / std::ldexp(1.0, exponent - 23);
}

/// Largest error of `got` against `exact` over the floats with the bit patterns first, first + stride, ...
/// last.
template <typename Got, typename Exact>
f64 worst(f32 first, f32 last, u32 stride, Got got, Exact exact) {
    f64 most = 0;
    for (u64 bits = bits_of(first); bits <= bits_of(last); bits += stride) {
        const f32 x = float_of(static_cast<u32>(bits));
        const f64 value = exact(static_cast<f64>(x));
        if (value == 0 || std::abs(value) > 3.4028234e38) continue;
        const f64 error = units(got(x), value);
        if (!(error <= most)) most = error;  // a NaN is kept, and fails the check
        if (!(error <= 1e6)) return error;
    }
    return most;
}

// A function that is forced inline cannot be passed as it is.
const auto exp2_of = [](f32 x) { return exp2_(x); };
const auto log2_of = [](f32 x) { return log2_(x); };
const auto exp_of = [](f32 x) { return exp_(x); };
const auto log_of = [](f32 x) { return log_(x); };

constexpr f32 infinity = std::numeric_limits<f32>::infinity();

}  // namespace

TEST_CASE("exp2 is within 1 unit in the last place, and exact for whole numbers") {
    const auto exact = [](f64 x) { return std::exp2(x); };
    CHECK(worst(1e-10F, 128.0F, 1009, exp2_of, exact) <= 1.0);
    CHECK(worst(-1e-10F, -149.0F, 1009, exp2_of, exact) <= 1.0);
    for (i32 n = -149; n <= 127; ++n) CHECK(exp2_(static_cast<f32>(n)) == std::ldexp(1.0F, n));
    CHECK(exp2_(0.0F) == 1.0F);
    CHECK(exp2_(128.0F) == infinity);
    CHECK(exp2_(infinity) == infinity);
    CHECK(exp2_(-151.0F) == 0.0F);
    CHECK(exp2_(-infinity) == 0.0F);
    CHECK(std::isnan(exp2_(std::nanf(""))));
}

TEST_CASE("log2 is within 2 units in the last place, also near 1, and exact for powers of two") {
    const auto exact = [](f64 x) { return std::log2(x); };
    CHECK(worst(1e-45F, 3.4e38F, 2003, log2_of, exact) <= 2.0);
    CHECK(worst(0.99F, 1.01F, 1, log2_of, exact) <= 2.0);
    for (i32 n = -149; n <= 127; ++n) CHECK(log2_(std::ldexp(1.0F, n)) == static_cast<f32>(n));
    CHECK(log2_(0.0F) == -infinity);
    CHECK(log2_(-0.0F) == -infinity);
    CHECK(log2_(infinity) == infinity);
    CHECK(std::isnan(log2_(-1.0F)));
    CHECK(std::isnan(log2_(std::nanf(""))));
}

TEST_CASE("exp and log are within 2 and 3 units in the last place") {
    const auto e = [](f64 x) { return std::exp(x); };
    CHECK(worst(1e-10F, 88.0F, 1009, exp_of, e) <= 2.0);
    CHECK(worst(-1e-10F, -87.0F, 1009, exp_of, e) <= 2.0);
    CHECK(worst(1e-45F, 3.4e38F, 4001, log_of, [](f64 x) { return std::log(x); }) <= 3.0);
    CHECK(exp_(0.0F) == 1.0F);
    CHECK(exp_(100.0F) == infinity);
    CHECK(exp_(-infinity) == 0.0F);
    CHECK(std::isnan(exp_(std::nanf(""))));
    CHECK(log_(1.0F) == 0.0F);
}

TEST_CASE("pow has the stated relative error and the special cases of C for x >= 0") {
    f64 most = 0;
    for (const f32 y : {0.1F, 0.41666667F, 0.5F, 1.0F, 2.2F, 2.4F, 5.0F, 64.0F, -1.5F}) {
        for (u64 bits = bits_of(1e-30F); bits <= bits_of(1e30F); bits += 16411) {
            const f32 x = float_of(static_cast<u32>(bits));
            const f64 exact = std::pow(static_cast<f64>(x), static_cast<f64>(y));
            if (exact < 1.2e-38 || exact > 3.4e38) continue;
            const f64 bound = std::ldexp(1.0 + std::abs(std::log2(exact)) / 8, -21);
            most = std::max(most, std::abs(pow_(x, y) - exact) / exact / bound);
        }
    }
    CHECK(most <= 1.0);
    CHECK(pow_(0.0F, 0.0F) == 1.0F);
    CHECK(pow_(0.0F, 2.0F) == 0.0F);
    CHECK(pow_(0.0F, -1.0F) == infinity);
    CHECK(pow_(infinity, 2.0F) == infinity);
    CHECK(pow_(2.0F, 10.0F) == 1024.0F);
    CHECK(pow_(10.0F, 60.0F) == infinity);
    CHECK(pow_(10.0F, -60.0F) == 0.0F);
    CHECK(std::isnan(pow_(-2.0F, 2.0F)));
}
