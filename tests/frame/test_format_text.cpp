// The text form of a plane, as in pipeline files and programs.
#include "core/errors.hpp"
#include "frame/frame_format.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using test::contains;

TEST_CASE("a plane of each element type of a stage can be written, and is read unchanged") {
    for (const char* type : {"u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f8_e4m3", "f8_e5m2",
                             "f16", "bf16", "f32", "f64", "bool"}) {
        CAPTURE(type);
        const ring::plane p = ring::plane_from_text("value", std::string(type) + "[720, 4]");
        CHECK(std::string(ring::name_of(p.type)) == type);
        CHECK(p.shape == std::vector<u64>{720, 4});
        CHECK(ring::element_bytes(p.type) > 0);
    }
}

TEST_CASE("an invalid plane is reported with the expected format") {
    for (const char* text :
         {"", "u8", "u8[", "u8[]", "u8[0]", "u8[-1]", "u9[4]", "[4]", "u8[1,2,3,4,5]", "u8[4]x", "u8[4,]"}) {
        CAPTURE(text);
        CHECK_THROWS_WITH(ring::plane_from_text("value", text),
                          contains("plane \"value\" is \"" + std::string(text) +
                                   "\"; expected an element type (u8, u16, ") &&
                              contains(" bf16, f32, f64, bool) with 1 to 4 extents"));
    }
}
