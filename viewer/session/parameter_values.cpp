#include "viewer/session/parameter_values.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace carousel::viewer {
namespace {

using ring::parameter_kind;

bool lies_within(const ring::parameter& p, std::size_t bytes) noexcept {
    return p.count >= 1 && p.count <= 4 && u64{p.offset} + u64{p.count} * 4 <= bytes;
}

f64 bounded(f64 value, f64 low, f64 high) noexcept {
    return low <= high ? std::clamp(value, low, high) : value;
}

// f32 rounding may move the value just outside the range: in that case the next f32 inside the range is used.
f32 rounded_into(f64 value, f64 low, f64 high) noexcept {
    constexpr f32 most = std::numeric_limits<f32>::max();
    auto number = static_cast<f32>(bounded(bounded(value, low, high), -f64{most}, f64{most}));
    if (number > high) number = std::nextafter(number, -most);
    if (number < low) number = std::nextafter(number, most);
    return number;
}

u32 bits_of(const ring::parameter& p, f64 value) noexcept {
    u32 bits = 0;
    if (p.kind == parameter_kind::number) {
        const f32 number = rounded_into(value, p.low, p.high);
        std::memcpy(&bits, &number, sizeof bits);
    } else if (p.kind == parameter_kind::integer) {
        constexpr std::numeric_limits<i32> limit;
        bits = static_cast<u32>(static_cast<i32>(bounded(
            std::round(bounded(value, std::ceil(p.low), std::floor(p.high))), limit.min(), limit.max())));
    } else if (p.kind == parameter_kind::flag) {
        bits = value != 0 ? 1 : 0;
    } else if (!p.choices.empty()) {
        bits = static_cast<u32>(bounded(std::round(value), 0, static_cast<f64>(p.choices.size() - 1)));
    }
    return bits;
}

}  // namespace

std::span<std::byte> bytes_of(const ring::parameter& p, std::span<std::byte> values) noexcept {
    return lies_within(p, values.size()) ? values.subspan(p.offset, std::size_t{p.count} * 4)
                                         : std::span<std::byte>();
}

std::span<const std::byte> bytes_of(const ring::parameter& p, std::span<const std::byte> values) noexcept {
    return lies_within(p, values.size()) ? values.subspan(p.offset, std::size_t{p.count} * 4)
                                         : std::span<const std::byte>();
}

f64 number_in(const ring::parameter& p, std::span<const std::byte> values, u32 index) noexcept {
    if (index >= p.count || bytes_of(p, values).empty()) return 0;
    const f64 value = ring::parameter_schema::element_of(p, values, index);
    return std::isfinite(value) ? value : 0;
}

void put_number(const ring::parameter& p, std::span<std::byte> values, u32 index, f64 value) noexcept {
    const std::span<std::byte> at = bytes_of(p, values);
    if (at.empty() || index >= p.count || !std::isfinite(value)) return;
    const u32 bits = bits_of(p, value);
    std::memcpy(at.data() + std::size_t{index} * 4, &bits, sizeof bits);
}

const ring::parameter* with_role(const ring::parameter_schema& s, const char* role) noexcept {
    const auto at = std::find_if(s.fields.begin(), s.fields.end(),
                                 [&](const ring::parameter& p) { return p.role == role; });
    return at == s.fields.end() ? nullptr : &*at;
}

void read_point(const ring::parameter& p, std::span<const std::byte> values, f32 (&point)[3]) noexcept {
    for (u32 k = 0; k < 3; ++k) point[k] = static_cast<f32>(number_in(p, values, k));
}

void put_point(const ring::parameter& p, std::span<std::byte> values, const f32 (&point)[3]) noexcept {
    for (u32 k = 0; k < 3; ++k) put_number(p, values, k, f64{point[k]});
}

u64 fields_that_differ(const ring::parameter_schema& s, std::span<const std::byte> a,
                       std::span<const std::byte> b) noexcept {
    u64 bits = 0;
    for (std::size_t k = 0; k < std::min(s.fields.size(), max_fields); ++k) {
        const std::span<const std::byte> left = bytes_of(s.fields[k], a), right = bytes_of(s.fields[k], b);
        if (!std::equal(left.begin(), left.end(), right.begin(), right.end())) bits |= u64{1} << k;
    }
    return bits;
}

}  // namespace carousel::viewer
