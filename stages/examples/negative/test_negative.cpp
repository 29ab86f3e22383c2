// Checks the stage's output for a picture of two pixels within this process: no supervisor, no rings.

#include <carousel/testing.hpp>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "negative.hpp"

namespace {

using pixels = std::vector<carousel::u8>;

int failures = 0;
void check(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "failed: %s\n", what);
    ++failures;
}

/// Returns the stage's output for a picture of 2 x 1 pixels.
pixels output_for(const pixels& picture, const std::string& settings) {
    carousel::testing::chain c({.width = 2, .height = 1});
    c.provide("a picture", carousel::image_format(2, 1));
    c.add("negative", std::make_unique<negative_stage>(), settings, {"a picture"});
    c.prepare();
    c.fill("a picture", "color", picture);
    c.run(0);
    return c.read<carousel::u8>("negative", "color");
}

bool refuses(const std::string& settings) {
    try {
        (void)output_for({0, 0, 0, 0, 0, 0, 0, 0}, settings);
        return false;
    } catch (const carousel::config_error&) {
        return true;
    }
}

}  // namespace

int main() try {
    const pixels picture = {0, 100, 255, 255, 1, 2, 3, 40};
    check(output_for(picture, "{}") == pixels{255, 155, 0, 255, 254, 253, 252, 40},
          "colours are inverted, alpha is not");
    check(output_for(picture, R"({"alpha": true})") == pixels{255, 155, 0, 0, 254, 253, 252, 215},
          "alpha is also inverted if requested");
    check(refuses(R"({"alhpa": true})"), "an unknown key is refused");
    check(refuses(R"({"alpha": 3})"), "a value of another type is refused");
    return failures == 0 ? 0 : 1;
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
