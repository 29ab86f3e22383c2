#include <cerrno>

#include "core/io.hpp"
#include "core/json_text.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;

namespace {

constexpr json_limits small{100, 3};

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

}  // namespace

TEST_CASE("a JSON text that nests deeper than its channel allows has no value") {
    CHECK(json_depth(parse_json(nested(3), small)) == 3);
    CHECK(parse_json_or_discard(R"([{"a":[]}])", small).is_array());
    CHECK(parse_json_or_discard(nested(4), small).is_discarded());
    CHECK_THROWS_AS(parse_json(nested(4), small), nlohmann::json::exception);
    const json_limits deep{1U << 20U, max_json_depth};
    CHECK(parse_json_or_discard(nested(60'000), deep).is_discarded());
    CHECK(parse_json_or_discard(std::string(60'000, '['), deep).is_discarded());
}

TEST_CASE("brackets inside strings are not nesting, and siblings are counted once") {
    CHECK(parse_json_or_discard(R"(["[[[[{{", "\"[[[[", "\\", [1]])", small).size() == 4);
    CHECK(parse_json_or_discard("[[1],[2],[3],[[4]],{}]", small).size() == 5);
    CHECK(parse_json_or_discard(R"(["\\", [[[1]]]])", small).is_discarded());
}

TEST_CASE("a JSON text that is longer than its channel allows has no value") {
    CHECK(parse_json_or_discard("\"" + std::string(98, 'x') + "\"", small).is_string());
    CHECK(parse_json_or_discard("\"" + std::string(99, 'x') + "\"", small).is_discarded());
}

TEST_CASE("a value that a message may contain fits every channel that the value is forwarded to") {
    using namespace json_channel;
    CHECK(max_settings_depth + 8 <= message.depth);
    CHECK(message.depth + 8 <= host_message.depth);
    CHECK(host_message.depth + 8 <= document.depth);
}

TEST_CASE("a file that is longer than its limit is not read, one of exactly the limit is") {
    const scratch_folder folder;
    folder.write("file", std::string(50'000, 'x'));
    const std::string path = (folder.path / "file").string();
    CHECK(read_file(path, 50'000).value_or("").size() == 50'000);
    CHECK_FALSE(read_file(path, 49'999).has_value());
    CHECK(errno == EFBIG);
    CHECK_FALSE(read_file("/dev/zero", 100'000).has_value());
}
