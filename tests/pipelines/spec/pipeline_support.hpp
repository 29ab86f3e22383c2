#pragma once
// Pipeline texts for the tests of pipeline files.

#include <string>

#include "spec/pipeline_file.hpp"
#include "tests/support/catch.hpp"

namespace carousel::test {

inline const std::string chain = R"([pipeline]
name = "demo"

[[stage]]
name = "geometry"
run = "carousel-geometry"
triangles = 100

[[stage]]
name = "display"
run = "carousel-display"
inputs = ["geometry"]
)";

/// The message of the refusal, or "" when the text was taken.
inline std::string refusal(const std::string& text,
                           const std::vector<supervisor::key_override>& overrides = {}) {
    try {
        (void)supervisor::parse_pipeline(text, "p.toml", overrides);
        return "";
    } catch (const config_error& e) {
        return e.what();
    }
}

/// `chain` with a line inserted after the first line that is `after`.
inline std::string with_line(const std::string& after, const std::string& line) {
    std::string text = chain;
    const auto at = text.find(after + "\n");
    REQUIRE(at != std::string::npos);
    return text.insert(at + after.size() + 1, line + "\n");
}

inline std::string stage(const std::string& name, const std::string& inputs, const std::string& more = "") {
    return "[[stage]]\nname = \"" + name + "\"\nrun = \"x\"\ninputs = [" + inputs + "]\n" + more + "\n";
}

}  // namespace carousel::test
