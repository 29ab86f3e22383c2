// Stages that describe different fields of one type of parameters.
#include "core/errors.hpp"
#include "parameters/parameter_union.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using ring::copy_fields;
using ring::includes;
using ring::parameter_schema;
using ring::union_of;
using test::contains;

namespace {

parameter_schema with(const char* name, u32 offset, u32 bytes = 16) {
    return {.type = "test.lamp", .bytes = bytes, .fields = {{.name = name, .offset = offset}}};
}

}  // namespace

TEST_CASE("a union has the fields of both schemas, each once, and the larger size") {
    const parameter_schema level = with("level", 0, 4), mode = with("mode", 12);
    const parameter_schema both = union_of(level, mode);
    CHECK(both.bytes == 16);
    CHECK(both.names() == std::vector<std::string>{"level", "mode"});
    CHECK(union_of(both, level) == both);
    CHECK(union_of(both, both) == both);
}

TEST_CASE("a schema includes the schemas of which it is the union, and no other one") {
    const parameter_schema level = with("level", 0, 4), mode = with("mode", 12);
    const parameter_schema both = union_of(level, mode);
    CHECK(includes(both, level));
    CHECK(includes(both, mode));
    CHECK(includes(both, both));
    CHECK_FALSE(includes(level, both));
    CHECK_FALSE(includes(both, with("tone", 8)));
    CHECK_FALSE(includes(both, with("mode", 8)));
    parameter_schema other = level;
    other.type = "test.other";
    CHECK_FALSE(includes(both, other));
    CHECK_FALSE(includes(level, with("level", 0, 8)));  // the run's sets are too small for that program
}

TEST_CASE("schemas whose types differ, or whose fields differ or overlap, have no union") {
    parameter_schema other = with("mode", 4);
    other.type = "test.other";
    CHECK_THROWS_WITH(union_of(with("level", 0), other), contains("test.lamp") && contains("test.other"));
    parameter_schema higher = with("level", 0);
    higher.fields[0].high = 3;
    CHECK_THROWS_WITH(union_of(with("level", 0), higher),
                      contains("another version of the type") && contains("\"level\""));
    CHECK_THROWS_WITH(union_of(with("level", 0), with("mode", 0)), contains("overlap"));
}

TEST_CASE("only the fields of a schema are copied, and none that is outside of a set") {
    const std::vector<std::byte> from(16, std::byte{1});
    std::vector<std::byte> to(16);
    copy_fields(with("mode", 8), from, to);
    for (std::size_t k = 0; k < 16; ++k) CHECK(to[k] == (k >= 8 && k < 12 ? std::byte{1} : std::byte{0}));
    std::vector<std::byte> small(8);
    copy_fields(with("mode", 8), from, small);
    CHECK(small == std::vector<std::byte>(8));
}
