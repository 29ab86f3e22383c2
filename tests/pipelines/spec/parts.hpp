#pragma once
// The parts that tests of a file over several hosts need.

#include <string>
#include <vector>

#include "spec/describe.hpp"
#include "spec/pipeline_file.hpp"

namespace carousel::test {

/// As the stages would report it.
inline std::vector<supervisor::stage_description> described(const supervisor::pipeline& p) {
    std::vector<supervisor::stage_description> all;
    for (const auto& s : p.stages) {
        all.emplace_back();
        all.back().stage = s.name;
        if (s.has_output) all.back().format = {{"type", "of " + s.name}};
    }
    return all;
}

inline std::vector<std::string> names(const supervisor::pipeline& p) {
    std::vector<std::string> out;
    for (const auto& s : p.stages) out.push_back(s.name);
    return out;
}

}  // namespace carousel::test
