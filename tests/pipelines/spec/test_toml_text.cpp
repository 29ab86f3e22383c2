// Keys and values whose tables the TOML library would destroy recursively.

#include "spec/options.hpp"
#include "tests/pipelines/spec/pipeline_support.hpp"

using namespace carousel;
using namespace carousel::test;
using supervisor::parse_pipeline;

TEST_CASE("keys of many parts and values of many levels are refused before they overflow the stack") {
    std::string parts = "x";
    for (int k = 1; k < 40'000; ++k) parts += ".x";
    const std::string head = "[[stage]]\nname = \"s\"\nrun = \"r\"\n", many = "a key of more than 16 parts";
    // First a few parts: without the bound, those of `parts` overflow the stack in some builds.
    const std::string few = parts.substr(0, 2 * 17 - 1);
    REQUIRE_THAT(refusal(head + few + " = 1"), contains(many));
    CHECK_THAT(refusal(head + parts + " = 1"), contains("p.toml:4:32: " + many));
    CHECK_THAT(refusal("[" + parts + "]"), contains("p.toml:1:33: " + many));
    CHECK_THAT(refusal(head + "a = {" + parts + " = 1}"), contains(many));
    CHECK_THAT(refusal(head + "a = {b.c.d.e.f.g.h = {i.j.k.l.m.n.o.p.q.r = 1}}"),
               contains("a: lists and tables are nested more than 16 deep"));
    CHECK_THAT(refusal(head + "a = " + std::string(200, '[')), contains("TOML_MAX_NESTED_VALUES"));
    const auto set = [&](const std::string& text) -> std::string {
        supervisor::pipeline_options o;
        o.set.push_back(text);
        try {
            (void)parse_pipeline(carousel::test::chain, "p.toml", supervisor::overrides_from(o));
        } catch (const config_error& e) {
            return e.what();
        }
        return "";
    };
    CHECK_THAT(set("display." + parts + "=1"), contains("a path of 40000 keys"));
    CHECK(set("display.a.b=[[1]]").empty());
    // Dots in texts and comments belong to no key.
    const std::string dots = "\"" + std::string(40, '.') + "\" # " + std::string(40, '.') + "\n";
    CHECK(refusal(carousel::test::chain + "a = " + dots + "b = \"\"\"\n" + std::string(40, '.') +
                  "\"\"\"\nc = '" + std::string(40, '.') + "'\nd = [1.5" + std::string(400, ' ') + ", 2.5]\n")
              .empty());
}
