#include <algorithm>
#include <vector>

#include "core/json.hpp"
#include "tests/support/catch.hpp"
#include "viewer/web/requests.hpp"

using namespace carousel::viewer::web;

TEST_CASE("a page answers to addresses and to this machine's names, not to foreign names") {
    for (const char* host : {"127.0.0.1", "127.0.0.1:8080", "localhost", "LocalHost:80", "[::1]:8080",
                             "192.168.1.7:80", "[fe80::1]"}) {
        INFO(host);
        CHECK(is_own_host(host));
    }
    for (const char* host : {"", ":80", "example.org", "evil.example:8080", "localhost.example.org",
                             "127.0.0.1.example.org", "[::1", "[evil]:80", "1"}) {
        INFO(host);
        CHECK_FALSE(is_own_host(host));
    }
}

TEST_CASE("names given by --http-host are accepted as this machine's, for any case and port") {
    const std::vector<std::string> names{"gpu7.example.org", "Short"};
    for (const char* host : {"gpu7.example.org", "GPU7.Example.org:9100", "short", "SHORT:1"}) {
        INFO(host);
        CHECK(is_own_host(host, names));
        CHECK_FALSE(is_own_host(host));
    }
    for (const char* host : {"", "example.org", "xgpu7.example.org", "gpu7.example.org.evil.org", "shor"}) {
        INFO(host);
        CHECK_FALSE(is_own_host(host, names));
    }
}

TEST_CASE("a request target is only a path or an absolute http address") {
    const auto split = [](const char* target) { return split_target(target); };
    CHECK(split("/status.json?a=1&b=?")->path == "/status.json");
    CHECK(split("/status.json?a=1&b=?")->query == "a=1&b=?");
    CHECK(split("/status.json")->authority.empty());
    CHECK(split("http://host:80/a/b?c")->authority == "host:80");
    CHECK(split("http://host:80/a/b?c")->path == "/a/b");
    CHECK(split("http://host:80/a/b?c")->query == "c");
    CHECK(split("HTTP://host")->path == "/");
    CHECK(split("http://host?x=1")->path == "/");
    CHECK(split("http://host?x=1")->query == "x=1");
    for (const char* bad :
         {"", "*", "status.json", "host:80", "http://", "http:///a", "https://host/", "ftp://host/"}) {
        INFO(bad);
        CHECK_FALSE(split(bad).has_value());
    }
}

TEST_CASE("metrics and health are open to any host, and no other path") {
    CHECK(is_open_to_any_host("/metrics"));
    CHECK(is_open_to_any_host("/healthz"));
    CHECK(is_open_to_any_host("/readyz"));
    for (const char* path : {"/", "/status.json", "/metrics/", "/metrics2", "/stages/metrics", ""})
        CHECK_FALSE(is_open_to_any_host(path));
}

TEST_CASE("a key's value is found in a query, and only that key's") {
    CHECK(query_value("token=abc", "token") == "abc");
    CHECK(query_value("a=1&token=abc&b=2", "token") == "abc");
    CHECK(query_value("xtoken=abc", "token").empty());
    CHECK(query_value("token", "token").empty());
    CHECK(query_value("", "token").empty());
    CHECK(query_value("token=&token=x", "token").empty());
}

TEST_CASE("a body that names parameters is forwarded, and any other is refused with an error") {
    std::string why;
    CHECK(values_in(R"( {"exposure": 2, "eye": [0, 1, 6]} )", why) ==
          nlohmann::json::parse(R"({"exposure":2,"eye":[0,1,6]})"));
    CHECK(why.empty());
    const std::string deep(2000, '[');
    for (const char* body : {"", "2", "[1]", "null", "exposure=2", R"({"exposure": 2)", R"({"exposure": 2}})",
                             "\xff", "{}", deep.c_str()}) {
        INFO(body);
        why.clear();
        CHECK(values_in(body, why).is_null());
        CHECK(why.starts_with("the body "));
    }
}

TEST_CASE("values are shown by the schema, and not at all where it does not fit the bytes") {
    view v;
    v.schema = {.type = "some.type", .bytes = 4, .fields = {{.name = "size", .initial = {0.5}}}};
    const std::vector<std::byte> bytes = v.schema.initial_values();
    std::copy(bytes.begin(), bytes.end(), v.snap.parameters.begin());
    v.snap.parameter_bytes = 4;
    v.snap.parameter_number = 3;
    v.snap.parameter_from = 120;
    CHECK(parameters_of(v).is_null());  // no run is watched
    v.phase = run_phase::running;
    const nlohmann::json shown = parameters_of(v);
    CHECK(shown["type"] == "some.type");
    CHECK(shown["number"] == 3);
    CHECK(shown["from"] == 120);
    CHECK(shown["values"] == nlohmann::json{{"size", 0.5}});
    REQUIRE(shown["fields"].size() == 1);
    CHECK(shown["fields"][0]["name"] == "size");
    CHECK(shown["fields"][0]["low"] == 0);  // also what is as usual
    CHECK(shown["fields"][0]["choices"].empty());
    v.phase = run_phase::ended;
    CHECK(parameters_of(v) == shown);
    v.snap.parameters[3] = std::byte{0x7F};  // far out of its range
    CHECK(parameters_of(v).is_null());
    v.snap.parameters[3] = bytes[3];
    v.snap.parameter_bytes = 8;
    CHECK(parameters_json(v) == "null");
    v.snap.parameter_bytes = 4;
    v.schema = {};
    CHECK(parameters_of(v).is_null());
}
