#include "tests/support/catch.hpp"
#include "viewer/web/guard.hpp"

using namespace carousel::viewer::web;

TEST_CASE("a page answers to addresses and to this machine's names, not to foreign names") {
    for (const char* host : {"127.0.0.1", "127.0.0.1:8080", "localhost", "LocalHost:80", "[::1]:8080", "192.168.1.7:80", "[fe80::1]"}) {
        INFO(host);
        CHECK(is_own_host(host));
    }
    for (const char* host : {"", ":80", "example.org", "evil.example:8080", "localhost.example.org", "127.0.0.1.example.org", "[::1", "[evil]:80", "1"}) {
        INFO(host);
        CHECK_FALSE(is_own_host(host));
    }
}

TEST_CASE("a key's value is found in a query, and only that key's") {
    CHECK(query_value("token=abc", "token") == "abc");
    CHECK(query_value("a=1&token=abc&b=2", "token") == "abc");
    CHECK(query_value("xtoken=abc", "token").empty());
    CHECK(query_value("token", "token").empty());
    CHECK(query_value("", "token").empty());
    CHECK(query_value("token=&token=x", "token").empty());
}
