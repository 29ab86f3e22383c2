#include "viewer/watch/plane_value.hpp"

#include <fmt/format.h>

namespace carousel::viewer {

using ring::element;

bool is_float(element type) noexcept {
    return type == element::f8_e4m3_ || type == element::f8_e5m2_ || type == element::f16_ ||
           type == element::bf16_ || type == element::f32_ || type == element::f64_;
}

std::string value_text(element type, const std::byte* at) {
    switch (type) {
        case element::bool_:
            return *at != std::byte{0} ? "true" : "false";
        case element::u64_:  // an f64 cannot represent all digits of this type
            return fmt::format("{}", bits_of<u64>(at));
        case element::i64_:
            return fmt::format("{}", bits_of<i64>(at));
        case element::f64_:
            return fmt::format("{}", bits_of<f64>(at));
        default:
            break;
    }
    f64 value = 0;
    with_reader(type, [&](auto read) { value = read(at); });
    return is_float(type) ? fmt::format("{}", static_cast<f32>(value)) : fmt::format("{:.0f}", value);
}

}  // namespace carousel::viewer
