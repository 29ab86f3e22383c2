#include "core/address.hpp"
#include "core/errors.hpp"
#include "core/secret.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;

TEST_CASE("an address to serve a page at is read in all its forms") {
    const auto read = [](const char* text) { return parse_http_address(text).text(); };
    CHECK(read("127.0.0.1:8080") == "127.0.0.1:8080");
    CHECK(read("8081") == "127.0.0.1:8081");
    CHECK(read(":8081") == "127.0.0.1:8081");
    CHECK(read("0") == "127.0.0.1:0");
    CHECK(read("localhost:65535") == "localhost:65535");
    CHECK(read("[::1]:8080") == "[::1]:8080");
    CHECK(read("0.0.0.0:80") == "0.0.0.0:80");
}

TEST_CASE("an address that can't be used for serving is refused with the expected form") {
    for (const char* text : {"", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1",
                             "127.0.0.1:80x", "256.0.0.1:80", "::1:8080", "[::1]", "[127.0.0.1]:80",
                             "example.org:80", "http://127.0.0.1:80", " 80"}) {
        INFO(text);
        CHECK_THROWS_AS(parse_http_address(text), config_error);
    }
    CHECK_THROWS_WITH(parse_http_address("::1:8080"),
                      test::contains("write [::1]") && test::contains("ADDRESS:PORT"));
}

TEST_CASE("only this machine reaches a loopback address") {
    CHECK(parse_http_address("127.3.2.1:80").is_loopback());
    CHECK(parse_http_address("localhost:80").is_loopback());
    CHECK(parse_http_address("[::1]:80").is_loopback());
    CHECK_FALSE(parse_http_address("0.0.0.0:80").is_loopback());
    CHECK_FALSE(parse_http_address("[::]:80").is_loopback());
    CHECK_FALSE(parse_http_address("192.168.0.1:80").is_loopback());
}

TEST_CASE("a token matches only itself, and no two tokens are equal") {
    const std::string a = new_token(), b = new_token();
    CHECK(a.size() == 32);
    CHECK(a != b);
    CHECK(same_token(a, a));
    CHECK_FALSE(same_token(b, a));
    CHECK_FALSE(same_token(a.substr(1), a));
    CHECK_FALSE(same_token("", a));
    CHECK_FALSE(same_token("", ""));
}

TEST_CASE("a host name of --http-host is checked before anything starts") {
    for (const char* name : {"gpu7", "gpu7.example.org", "A-1.b_2"}) CHECK_NOTHROW(check_http_host(name));
    for (const char* name : {"", "gpu7:80", "http://gpu7", "a b", "[::1]", "gpu7/"}) {
        INFO(name);
        CHECK_THROWS_WITH(check_http_host(name), test::contains("--http-host"));
    }
    CHECK_THROWS_AS(check_http_host(std::string(254, 'a')), config_error);
}
