#pragma once
// A pipeline whose fork has two outputs, and a join downstream of both (fork_stage.cpp).
#include <fmt/format.h>

#include <string>

#include "tests/crash/run_fixture.hpp"

namespace carousel::test {

/// `keys` of the pipeline, `fork`: keys of that stage; `more`: lines after all of them.
inline std::string forked(const std::string& name, const std::string& keys = "", const std::string& fork = "",
                          const std::string& more = "") {
    return fmt::format(R"([pipeline]
name = "{0}"
device = "cpu"
{2}
[[stage]]
name = "numbers"
run = "{1}/carousel-test-number"
[[stage]]
name = "fork"
run = "{1}/carousel-test-fork"
inputs = ["numbers"]
{3}
[[stage]]
name = "join"
run = "{1}/carousel-test-fork"
inputs = ["fork", "fork.square"]
{4}
)",
                       name, programs(), keys, fork, more);
}

}  // namespace carousel::test
