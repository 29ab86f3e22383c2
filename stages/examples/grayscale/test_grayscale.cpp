// Checks the stage's output for a picture of two pixels, on the first GPU. Exits with 77 (skipped) if there
// is none.

#include <carousel/testing.hpp>
#include <cstdio>
#include <exception>
#include <memory>
#include <vector>

#include "grayscale.hpp"

namespace {

using pixels = std::vector<carousel::u8>;
const carousel::device::device_id gpu{.kind = carousel::device_kind::cuda, .uuid = "", .ordinal = 0};

int failures = 0;
void check(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "failed: %s\n", what);
    ++failures;
}

pixels output_for(const pixels& picture) {
    carousel::testing::chain c({.device = gpu, .width = 2, .height = 1});
    c.provide("a picture", carousel::image_format(2, 1));
    c.add("grayscale", std::make_unique<grayscale_stage>(), "{}", {"a picture"});
    c.prepare();
    c.fill("a picture", "color", picture);
    c.run(0);
    return c.read<carousel::u8>("grayscale", "color");
}

}  // namespace

int main() try {
    const pixels picture = {200, 200, 200, 255, 255, 0, 0, 40};
    check(output_for(picture) == pixels{200, 200, 200, 255, 77, 77, 77, 40},
          "red has a weight of 77/256, and alpha is unchanged");
    return failures == 0 ? 0 : 1;
} catch (const carousel::device_error& e) {
    std::fprintf(stderr, "skipped: %s\n", e.what());
    return 77;
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
