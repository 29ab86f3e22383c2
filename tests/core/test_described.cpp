// Structs and enums as JSON by their description: what is written, what is read, what is refused.

#include "core/described.hpp"
#include "core/types.hpp"
#include "tests/support/catch.hpp"

using carousel::field_rules;
using carousel::json_field_error;
using carousel::test::contains;
using nlohmann::json;

namespace described_samples {

enum class shade : carousel::u8 { dark, light };
BOOST_DESCRIBE_ENUM(shade, dark, light)

struct point {
    int x = 0;
    std::optional<carousel::u32> y;
};
BOOST_DESCRIBE_STRUCT(point, (), (x, y))

struct drawing {
    std::string name;
    shade tone = shade::dark;
    std::vector<point> points;
    std::optional<point> origin;
    static constexpr field_rules rules{.empty_is_null = true};
};
BOOST_DESCRIBE_STRUCT(drawing, (), (name, tone, points, origin))

struct options {
    int depth = 3;
    bool verbose = false;
    static constexpr field_rules rules{.sparse = true};
};
BOOST_DESCRIBE_STRUCT(options, (), (depth, verbose))

struct draw_request {
    static constexpr const char* type = "draw";
    std::string name;
};
BOOST_DESCRIBE_STRUCT(draw_request, (), (name))

struct erase_request {
    static constexpr const char* type = "erase";
    bool all = false;
    static constexpr field_rules rules{.sparse = true};
};
BOOST_DESCRIBE_STRUCT(erase_request, (), (all))

using request = std::variant<draw_request, erase_request>;

}  // namespace described_samples

using namespace described_samples;

TEST_CASE("a described struct is written with all members and read back") {
    const drawing d{"a", shade::light, {{1, 2}, {3, {}}}, {}};
    const json j = d;
    CHECK(j == json::parse(R"({"name":"a","tone":"light","points":[{"x":1,"y":2},{"x":3}],"origin":null})"));
    const auto read = j.get<drawing>();
    CHECK(json(read) == j);
    CHECK(read.points.at(0).y == 2);
    CHECK_FALSE(read.points.at(1).y);
}

TEST_CASE("a sparse struct leaves out defaults and reads what is missing as the default") {
    CHECK(json(options{}) == json::object());
    CHECK(json(options{3, true}) == json::parse(R"({"verbose":true})"));
    CHECK(json::parse(R"({"unknown":1})").get<options>().depth == 3);
}

TEST_CASE("a missing member, a wrong type and an unknown name are refused with the path of the field") {
    const auto why = [](const char* text) {
        try {
            (void)json::parse(text).get<drawing>();
            return std::string();
        } catch (const json_field_error& e) {
            return std::string(e.what());
        }
    };
    CHECK_THAT(why(R"({"name":"a"})"), contains("\"tone\" is missing"));
    CHECK_THAT(why(R"({"name":7})"), contains("\"name\": ") && contains("must be string"));
    CHECK_THAT(why(R"({"name":"a","tone":"ligth"})"),
               contains("\"tone\": unknown \"ligth\"; expected dark or light; did you mean \"light\"?"));
    CHECK_THAT(why(R"({"name":"a","tone":"dark","points":[{"x":4294967296}]})"),
               contains("\"points\": \"x\": the number 4294967296"));
    CHECK_THAT(why("[]"), contains("expected an object"));
}

TEST_CASE("reading known fields keeps what is missing or has another type") {
    drawing d{"before", shade::light, {}, point{1, {}}};
    carousel::read_known_fields(
        json::parse(R"({"name":7,"tone":"grey","points":[{"x":"no","y":4},5],"origin":{"x":"no"}})"), d);
    CHECK(d.name == "before");
    CHECK(d.tone == shade::light);
    REQUIRE(d.points.size() == 1);
    CHECK(d.points[0].x == 0);
    CHECK(d.points[0].y == 4);
    CHECK_FALSE(d.origin);
    carousel::read_known_fields(json::parse("[]"), d);
    CHECK(d.name == "before");
}

TEST_CASE("a message is read as the struct that its type names") {
    const json j = carousel::write_message(draw_request{"a"});
    CHECK(j == json::parse(R"({"type":"draw","name":"a"})"));
    CHECK(std::get<draw_request>(carousel::read_message<request>(j)).name == "a");
    CHECK(std::get<erase_request>(carousel::read_message<request>(json::parse(R"({"type":"erase","x":1})")))
              .all == false);
    CHECK(carousel::is_message_of<request>(j));
    CHECK_FALSE(carousel::is_message_of<request>(json::parse(R"({"type":"fill"})")));
    const auto why = [](const char* text) {
        try {
            (void)carousel::read_message<request>(json::parse(text));
            return std::string();
        } catch (const json_field_error& e) {
            return std::string(e.what());
        }
    };
    CHECK(why(R"({"name":"a"})") == "\"type\" is missing");
    CHECK(why(R"({"type":"drw"})") ==
          "\"type\": unknown \"drw\"; expected draw or erase; did you mean \"draw\"?");
    CHECK(why(R"({"type":"erase","name":"a"})") == "\"name\" is not a field of \"erase\"");
    CHECK(why(R"({"type":"draw"})") == "\"name\" is missing");
}

TEST_CASE("enumerators have their names") {
    CHECK(std::string(carousel::enum_name(shade::light)) == "light");
    CHECK(std::string(carousel::enum_name(static_cast<shade>(9), "none")) == "none");
    CHECK(carousel::enum_named<shade>("dark") == shade::dark);
    CHECK_FALSE(carousel::enum_named<shade>("Dark"));
    CHECK(carousel::enum_names<shade>() == std::vector<std::string>{"dark", "light"});
}
