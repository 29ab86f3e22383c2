// The tables of keys: each key that accepts a number has a range that is checked, and the reference of all
// keys is made from the tables.
#include <fmt/format.h>

#include <algorithm>

#include "core/io.hpp"
#include "spec/pipeline_keys.hpp"
#include "tests/pipelines/spec/pipeline_support.hpp"

using namespace carousel;
using namespace carousel::test;
using supervisor::all_keys;
using supervisor::key_description;
using supervisor::parse_pipeline;

namespace {

/// A valid file with one more line in that section.
std::string file_with_number(const std::string& section, const std::string& line) {
    const auto in = [&](const std::string& title) { return section == title ? line + "\n" : std::string(); };
    const bool is_spread = !line.starts_with("checkpoint_every ");  // a run of several hosts has none
    const bool of_sink = line.starts_with("every "), is_lease = line.starts_with("latest_lease_ms ");
    return "[pipeline]\nname = \"p\"\n" + in("[pipeline]") +
           (is_lease ? "stall_timeout_ms = 0\n" : "") +  // any other value is an upper bound of a lease
           "[[stage]]\nname = \"source\"\nrun = \"source\"\n" + (of_sink ? "" : in("[[stage]]")) +
           "[[stage]]\nname = \"sink\"\nrun = \"sink\"\ninputs = [\"source\"]\n" +
           (is_spread ? "host = \"b\"\n" : "") + (of_sink ? in("[[stage]]") : "") + "[link.source]\n" +
           in("[link.STAGE]") + "[hosts.a]\naddress = \"10.0.0.1\"\nlauncher = \"here\"\n" +
           in("[hosts.NAME]") +
           "[hosts.b]\naddress = \"10.0.0.2\"\n";  // a link leads to b: it takes ports there
}

/// The message that refuses the number; "": the file is accepted.
std::string refused_number(const std::string& section, const std::string& key, const std::string& number) {
    const std::string value = key == "size" ? fmt::format("[{}, 8]", number) : number;
    try {
        (void)parse_pipeline(file_with_number(section, fmt::format("{} = {}", key, value)), "p.toml");
        return "";
    } catch (const config_error& e) {
        return e.what();
    }
}

bool has_range(const std::string& section, const std::string& key) {
    const auto& all = all_keys();
    return std::any_of(all.begin(), all.end(), [&](const key_description& k) {
        return k.section == section && k.key == key && k.range != nullptr;
    });
}

}  // namespace

TEST_CASE("every key that accepts a number has a range") {
    const auto check = [](const std::string& section, const nlohmann::json& keys) {
        for (const auto& [key, value] : keys.items()) {
            CAPTURE(section, key);
            bool takes_number = false;
            for (const char* number : {"1", "16", "1000", "[16, 16]"})
                takes_number = takes_number || refused_number(section, key, number).empty();
            CHECK(has_range(section, key) == (takes_number || key == "size"));
        }
    };
    check("[pipeline]", values_of(supervisor::pipeline_spec{}));
    check("[[stage]]", values_of(supervisor::stage_spec{}));
    check("[link.STAGE]", values_of(supervisor::link_spec{}));
    CHECK(has_range("[hosts.NAME]", "port"));
}

TEST_CASE("both ends of each range are accepted, values beyond them are refused with the range") {
    for (const key_description& k : all_keys()) {
        if (k.range == nullptr) continue;
        CAPTURE(k.section, k.key);
        const supervisor::number_range& range = *k.range;
        const auto text = [&](f64 value) { return fmt::format("{:.{}f}", value, range.whole ? 0 : 6); };
        const auto refused = [&](const std::string& number) {
            return refused_number(k.section, k.key, number);
        };
        CHECK(refused(text(range.low)) == "");
        CHECK(refused(text(range.high)) == "");
        if (*range.zero != 0) CHECK(refused("0") == "");
        const std::string high = fmt::format("{:.0f}", range.high);
        CHECK_THAT(refused(text(range.high + 1)), contains(high));
        CHECK_THAT(refused("9223372036854775807"), contains(high));
        CHECK_THAT(refused("-1"), contains(high));
        if (range.low > 0 && !range.whole) CHECK_THAT(refused("1e-10"), contains(range.text()));
        if (range.low > 1) CHECK_THAT(refused(text(range.low - 1)), contains(high));
        if (range.whole) CHECK_THAT(refused("1.5"), contains(high));
    }
}

TEST_CASE("the reference in the documents equals the tables of keys") {
    const std::string document = read_file(CAROUSEL_KEY_REFERENCE).value_or("");
    INFO("pipelines/docs/keys.md ends with what `carousel explain --keys` prints");
    CHECK(document.ends_with(supervisor::key_reference()));
}

TEST_CASE("the reference has every key of every section once") {
    const auto check = [](const std::string& section, const nlohmann::json& keys) {
        for (const auto& entry : keys.items()) {
            const std::string& key = entry.key();
            CAPTURE(section, key);
            const auto& all = all_keys();
            CHECK(std::count_if(all.begin(), all.end(), [&](const key_description& k) {
                      return k.section == section && k.key == key && !k.meaning.empty();
                  }) == 1);
        }
    };
    check("[pipeline]", values_of(supervisor::pipeline_spec{}));
    check("[[stage]]", values_of(supervisor::stage_spec{}));
    check("[link.STAGE]", values_of(supervisor::link_spec{}));
}
