// carousel-alloc and carousel-probe on any machine: a GPU or a driver is not needed to answer properly.

#include <array>
#include <cstdio>
#include <string>

#include "core/errors.hpp"
#include "device/backend.hpp"
#include "tests/device/child.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using nlohmann::json;

namespace {

/// Output and exit code of a shell command.
std::pair<std::string, int> output_of(const std::string& command) {
    std::FILE* pipe = ::popen(command.c_str(), "re");
    REQUIRE(pipe != nullptr);
    std::string text;
    std::array<char, 4096> block{};
    for (std::size_t got = 0; (got = std::fread(block.data(), 1, block.size(), pipe)) > 0;)
        text.append(block.data(), got);
    const int status = ::pclose(pipe);
    return {text, WEXITSTATUS(status)};
}

/// carousel-alloc's first answer and exit code for these requests.
std::pair<json, int> ask_alloc(const std::string& requests) {
    test::child alloc("", test::program_next_to_test("carousel-alloc"),
                      {"--fd", "10", "--requests", requests});
    json answer = alloc.receive();
    return {std::move(answer), alloc.exit_code()};
}

}  // namespace

TEST_CASE("the probe answers in JSON and with 0 on every machine") {
    const auto [text, code] = output_of(test::program_next_to_test("carousel-probe") + " --quick");
    REQUIRE(code == 0);
    const json answer = json::parse(text);
    REQUIRE(answer.at("built_with_cuda") == device::built_with_cuda());
    REQUIRE(answer.at("devices").is_array());
    if (answer.at("devices").empty()) {
        REQUIRE(answer.at("error").get<std::string>().find("CUDA") != std::string::npos);
    } else {
        REQUIRE(answer.at("error").is_null());
        const json& first = answer.at("devices").at(0);
        REQUIRE(first.at("uuid").get<std::string>().size() == 32);
        REQUIRE(first.at("total_bytes").get<u64>() > 0);
        // Without a context the value comes from the driver's management library (NVML), if it is installed.
        if (!first.at("free_bytes").is_null())
            REQUIRE(first.at("free_bytes").get<u64>() <= first.at("total_bytes").get<u64>());
        REQUIRE(answer.at("driver_version").is_string());
    }
    REQUIRE(output_of(test::program_next_to_test("carousel-probe") + " --slow 2>&1").second ==
            exit_code::usage);
}

TEST_CASE("carousel-alloc refuses an invalid list of requests") {
    for (const std::string requests :
         {"", "[]", "{}", "[1]", R"([{"id":1}])", R"([{"bytes":0,"kind":"vmm"}])",
          R"([{"bytes":-5,"kind":"vmm"}])", R"([{"bytes":4096,"kind":"magic"}])",
          R"([{"bytes":4096,"kind":"vmm","uuid":7}])"}) {
        CAPTURE(requests);
        const auto [answer, code] = ask_alloc(requests);
        REQUIRE(code == exit_code::usage);
        REQUIRE(answer.at("error").get<std::string>().find("request") != std::string::npos);
    }
}

TEST_CASE("carousel-alloc names the missing GPU and ends with the device's exit code") {
    const auto [answer, code] =
        ask_alloc(R"([{"id":"ring 3","bytes":4096,"kind":"vmm","uuid":"00000000000000000000000000000000"}])");
    REQUIRE(code == exit_code::no_device);
    REQUIRE(answer.at("id") == "ring 3");
    REQUIRE(answer.at("error").get<std::string>().find("CUDA") != std::string::npos);
}
