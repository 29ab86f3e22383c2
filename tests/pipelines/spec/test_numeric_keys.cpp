// Every key that takes a number has a range, which is checked, documented and printed.
#include <fmt/format.h>

#include <algorithm>

#include "core/read_file.hpp"
#include "spec/pipeline_keys.hpp"
#include "tests/pipelines/spec/pipeline_support.hpp"

using namespace carousel;
using namespace carousel::test;
using supervisor::numeric_key;
using supervisor::numeric_keys;
using supervisor::parse_pipeline;

namespace {

/// A valid file with one more line in that section.
std::string file_with_number(const std::string& section, const std::string& line) {
    const auto in = [&](const std::string& title) { return section == title ? line + "\n" : std::string(); };
    return "[pipeline]\nname = \"p\"\n" + in("[pipeline]") +
           "[[stage]]\nname = \"source\"\nrun = \"source\"\n" + in("[[stage]]") +
           "[[stage]]\nname = \"sink\"\nrun = \"sink\"\ninputs = [\"source\"]\nhost = \"b\"\n" +
           "[link.source]\n" + in("[link.STAGE]") +
           "[hosts.a]\naddress = \"10.0.0.1\"\nlauncher = \"here\"\n" + in("[hosts.NAME]") +
           "[hosts.b]\naddress = \"10.0.0.2\"\n";  // a link leads to b: it takes ports there
}

/// The reason of the refusal; "": the file is taken.
std::string refused_number(const numeric_key& k, const std::string& number) {
    const std::string value = k.key == "size" ? fmt::format("[{}, 8]", number) : number;
    try {
        (void)parse_pipeline(file_with_number(k.section, fmt::format("{} = {}", k.key, value)), "p.toml");
        return "";
    } catch (const config_error& e) {
        return e.what();
    }
}

bool is_listed(const std::string& section, const std::string& key) {
    const auto& all = numeric_keys();
    return std::any_of(all.begin(), all.end(),
                       [&](const numeric_key& k) { return k.section == section && k.key == key; });
}

}  // namespace

TEST_CASE("every key that takes a number has a range") {
    const auto check = [](const std::string& section, const nlohmann::json& keys) {
        for (const auto& [key, value] : keys.items()) {
            CAPTURE(section, key);
            bool takes_number = false;
            for (const char* number : {"1", "16", "1000", "[16, 16]"})
                takes_number = takes_number || refused_number({section, key, {}}, number).empty();
            CHECK(is_listed(section, key) == (takes_number || key == "size"));
        }
    };
    check("[pipeline]", values_of(supervisor::pipeline_spec{}));
    check("[[stage]]", values_of(supervisor::stage_spec{}));
    check("[link.STAGE]", values_of(supervisor::link_spec{}));
    CHECK(is_listed("[hosts.NAME]", "port"));
}

TEST_CASE("both ends of each range are taken, and what is beyond them is refused with the range") {
    for (const numeric_key& k : numeric_keys()) {
        CAPTURE(k.section, k.key);
        const auto text = [&](f64 value) { return fmt::format("{:.{}f}", value, k.range.whole ? 0 : 6); };
        CHECK(refused_number(k, text(k.range.low)) == "");
        CHECK(refused_number(k, text(k.range.high)) == "");
        if (*k.range.zero != 0) CHECK(refused_number(k, "0") == "");
        const std::string high = fmt::format("{:.0f}", k.range.high);
        CHECK_THAT(refused_number(k, text(k.range.high + 1)), contains(high));
        CHECK_THAT(refused_number(k, "9223372036854775807"), contains(high));
        CHECK_THAT(refused_number(k, "-1"), contains(high));
        if (k.range.low > 0 && !k.range.whole)
            CHECK_THAT(refused_number(k, "1e-10"), contains(k.range.text()));
        if (k.range.low > 1) CHECK_THAT(refused_number(k, text(k.range.low - 1)), contains(high));
        if (k.range.whole) CHECK_THAT(refused_number(k, "1.5"), contains(high));
    }
}

TEST_CASE("the table of numbers in the README has the range and the unit of each key") {
    const std::string readme = read_file(CAROUSEL_KEY_REFERENCE).value_or("");
    for (const numeric_key& k : numeric_keys()) {
        const std::string low =
            k.range.whole ? fmt::format("{:.0f}", k.range.low) : fmt::format("{}", k.range.low);
        CHECK_THAT(readme, contains(fmt::format("| `{}` | `{}` | {} to {:.0f}", k.key, k.section, low,
                                                k.range.high)));
        CHECK_THAT(readme, contains(fmt::format(" | {} |\n", k.range.unit)));
    }
}
