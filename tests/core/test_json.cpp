// Integers read from JSON values: out of range is an error, never undefined behaviour or another number.
#include <array>
#include <map>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "core/types.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using nlohmann::json;

TEST_CASE("a JSON number that its type cannot represent is an error") {
    const json j =
        json::parse(R"({"beyond": 18446744073709551616, "minus": -1, "wide": 4294967296, "half": 2.5,
                                   "huge": -1e30, "list": [1, 70000], "map": {"a": 300}})");
    CHECK_THROWS_AS(j["beyond"].get<u64>(), json_number_error);
    CHECK_THROWS_AS(j["huge"].get<i64>(), json_number_error);
    CHECK_THROWS_AS(j["minus"].get<u64>(), json_number_error);
    CHECK_THROWS_AS(j.value("wide", 0U), json_number_error);
    CHECK_THROWS_AS(j["half"].get<int>(), json_number_error);
    CHECK_THROWS_AS(j["list"].get<std::vector<u16>>(), json_number_error);
    CHECK_THROWS_AS((j["map"].get<std::map<std::string, u8>>()), json_number_error);
    CHECK_THROWS_AS(j["list"].get<int>(), json::type_error);
}

TEST_CASE("a JSON number that its type represents is read exactly") {
    const json j = json::parse("[18446744073709551615, -9223372036854775808, 4294967295, 3.0, 1e3, 255]");
    CHECK(j[0].get<u64>() == ~u64{0});
    CHECK(j[1].get<i64>() == INT64_MIN);
    CHECK(j[2].get<u32>() == ~u32{0});
    CHECK(j[3].get<int>() == 3);
    CHECK(j[4].get<u16>() == 1000);
    CHECK(j[5].get<u8>() == 255);
    CHECK(j[0].get<f64>() == 18446744073709551615.0);
    CHECK(json(u8{7}).dump() == "7");
}
