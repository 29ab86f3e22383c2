// Checks the stage's pictures within this process, also after a kill: no supervisor, no rings.

#include <carousel/testing.hpp>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "average.hpp"

namespace {

using pixels = std::vector<carousel::u8>;

int failures = 0;
void check(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "failed: %s\n", what);
    ++failures;
}

/// The stage's outputs for a black picture and then white ones; it is killed before frame `killed_before`.
std::vector<carousel::u8> outputs(carousel::u64 killed_before) {
    carousel::testing::chain c({.width = 1, .height = 1});
    c.provide("a picture", carousel::image_format(1, 1));
    c.add("average", std::make_unique<average_stage>(), R"({"frames": 4})", {"a picture"});
    c.prepare();
    std::vector<carousel::u8> all;
    for (carousel::u64 n = 0; n < 4; ++n) {
        if (n == killed_before) c.kill_and_restart("average", std::make_unique<average_stage>());
        c.fill("a picture", "color", n == 0 ? pixels(4, 0) : pixels(4, 255));
        c.run(n);
        c.run(n);  // a frame that is repeated after a death has the same result
        all.push_back(c.read<carousel::u8>("average", "color").front());
    }
    return all;
}

bool refuses(const std::string& settings) {
    try {
        carousel::testing::chain c({.width = 1, .height = 1});
        c.provide("a picture", carousel::image_format(1, 1));
        c.add("average", std::make_unique<average_stage>(), settings, {"a picture"});
        return false;
    } catch (const carousel::config_error&) {
        return true;
    }
}

}  // namespace

int main() try {
    check(outputs(99) == pixels{0, 64, 112, 147}, "a change arrives in the average by and by");
    for (carousel::u64 n = 0; n < 4; ++n)
        check(outputs(n) == outputs(99), "a kill before any frame changes no picture");
    check(refuses(R"({"frames": 0})"), "a number out of range is refused");
    return failures == 0 ? 0 : 1;
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
