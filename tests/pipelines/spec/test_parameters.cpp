// The parameters of a pipeline: what its stages name, and what the file contains.

#include <string>

#include "spec/describe.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::supervisor;
using test::contains;

ring::parameter_schema lamp() {
    return {.type = "test.lamp",
            .bytes = 8,
            .fields = {{.name = "level", .offset = 0, .initial = {0.25}, .low = 0, .high = 2},
                       {.name = "mode",
                        .kind = ring::parameter_kind::choice,
                        .offset = 4,
                        .high = 1,
                        .choices = {"calm", "wild"}}}};
}

const std::string chain =
    "[[stage]]\nname = \"a\"\nrun = \"a\"\n[[stage]]\nname = \"b\"\nrun = \"b\"\ninputs = [\"a\"]\n";

std::vector<stage_description> described(const ring::parameter_schema& first,
                                         const ring::parameter_schema& second) {
    std::vector<stage_description> all(2);
    all[0].stage = "a";
    all[0].parameters = first;
    all[1].stage = "b";
    all[1].parameters = second;
    return all;
}

parameter_plan planned(const std::string& section, const std::vector<stage_description>& all) {
    return plan_parameters(parse_pipeline(chain + section, "p.toml"), all);
}

std::string refusal(const std::string& section, const std::vector<stage_description>& all) {
    try {
        (void)planned(section, all);
    } catch (const config_error& e) {
        return e.what();
    }
    return "";
}

f64 value_of(const parameter_plan& p, const char* name) {
    return ring::parameter_schema::element_of(*p.schema.find(name), p.values);
}

}  // namespace

TEST_CASE("a pipeline has the parameters that its stages name, with the file's values in them") {
    const parameter_plan p = planned("[parameters]\nmode = \"wild\"\n", described(lamp(), {}));
    CHECK(p.schema == lamp());
    CHECK(value_of(p, "level") == 0.25);
    CHECK(value_of(p, "mode") == 1);
    CHECK(planned("", described({}, lamp())).schema == lamp());
}

TEST_CASE("a pipeline has the fields of all stages that describe one type") {
    ring::parameter_schema level = lamp(), mode = lamp();
    level.fields.pop_back();
    level.bytes = 4;
    mode.fields.erase(mode.fields.begin());
    const parameter_plan p = planned("[parameters]\nmode = \"wild\"\n", described(level, mode));
    CHECK(p.schema == lamp());
    CHECK(value_of(p, "mode") == 1);
    CHECK_THAT(refusal("[parameters]\nmode = \"wild\"\n", described(level, {})),
               contains("no parameter \"mode\""));
}

TEST_CASE("a pipeline whose stages name no parameters has none, and its file may set none") {
    CHECK_FALSE(planned("", described({}, {})).schema);
    CHECK_THAT(refusal("[parameters]\nlevel = 1\n", described({}, {})),
               contains("p.toml:9:1: [parameters]: no stage of this pipeline takes any"));
}

TEST_CASE("stages that name different parameters are refused with both names") {
    ring::parameter_schema other = lamp();
    other.type = "test.other";
    CHECK_THAT(refusal("", described(lamp(), other)), contains("stage \"b\"") && contains("test.other") &&
                                                          contains("stage \"a\"") && contains("test.lamp"));
    ring::parameter_schema newer = lamp();
    newer.fields[0].high = 3;
    CHECK_THAT(refusal("", described(lamp(), newer)), contains("another version of the type"));
}

TEST_CASE("a key or value that the parameters don't take is refused at its place in the file") {
    CHECK_THAT(refusal("[parameters]\nlevle = 1\n", described(lamp(), {})),
               contains("p.toml:9:1: ") && contains("did you mean \"level\"?"));
    CHECK_THAT(refusal("[parameters]\nlevel = 5\n", described(lamp(), {})),
               contains("p.toml:9:9: ") && contains("level = 5"));
    CHECK_THAT(refusal("[parameters]\nmode = \"wilde\"\n", described(lamp(), {})),
               contains("p.toml:9:8: ") && contains("did you mean \"wild\"?"));
}
