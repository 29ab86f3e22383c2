#pragma once
// A plane of given values, painted as the viewer and the dashboard paint it.

#include <cstddef>
#include <vector>

#include "tests/support/catch.hpp"
#include "viewer/watch/picture_colours.hpp"

namespace carousel::test {

struct painted {
    std::vector<u8> rgba;
    viewer::picture_scale scale;
    [[nodiscard]] viewer::colour at(std::size_t pixel) const {
        return {rgba[pixel * 4], rgba[pixel * 4 + 1], rgba[pixel * 4 + 2]};
    }
};

template <typename T>
painted paint(const viewer::plane_picture& p, const std::vector<T>& values,
              const viewer::picture_style& style = {}, viewer::picture_part used = {}) {
    REQUIRE(values.size() * sizeof(T) == p.bytes);
    painted out{std::vector<u8>(std::size_t{p.width} * p.height * 4), {}};
    out.scale = to_rgba(p, reinterpret_cast<const std::byte*>(values.data()),
                        reinterpret_cast<std::byte*>(out.rgba.data()), style, used);
    std::size_t opaque = 0;
    for (std::size_t k = 3; k < out.rgba.size(); k += 4) opaque += out.rgba[k] == 255 ? 1 : 0;
    if (!p.is_rgba()) CHECK(opaque == out.rgba.size() / 4);
    return out;
}

}  // namespace carousel::test
