#include "tests/gpu/gpu_run.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <sstream>

#include "tests/support/catch.hpp"

namespace carousel::test {

std::string device_pipeline(const std::string& name, const device_keys& keys) {
    const char* device = std::getenv("CAROUSEL_TEST_DEVICE");
    return fmt::format(R"([pipeline]
name = "{0}"
device = "{6}"
size = [16, 16]
{2}
[[stage]]
name = "numbers"
run = "{1}/carousel-test-device"
{3}
[[stage]]
name = "middle"
run = "{1}/carousel-test-device"
inputs = ["numbers"]
{4}
[[stage]]
name = "sink"
run = "{1}/carousel-test-device"
inputs = ["middle"]
sink = true
{5}
[link.numbers]
memory = "{7}"
[link.middle]
memory = "{7}"
guard = "{8}"
)",
                       name, programs(), keys.pipeline, keys.source, keys.middle, keys.sink,
                       device != nullptr ? device : "cuda:0", keys.memory, keys.guard);
}

u64 taken_at(const std::string& log, const std::string& stage, u64 frame) {
    const std::string sought = fmt::format("frame {} taken at ", frame);
    std::istringstream lines(log);
    u64 first = 0;
    for (std::string line; std::getline(lines, line);) {
        const std::size_t at = line.find(sought);
        if (at == std::string::npos || line.find(stage) > at) continue;
        first = first != 0 ? first : std::strtoull(line.c_str() + at + sought.size(), nullptr, 10);
    }
    return first;
}

std::string undisturbed_device_hash(u64 frames) {
    run_fixture run;
    run.start(run.pipeline("calm", device_pipeline("calm", {})), {"--frames", std::to_string(frames)});
    const int code = run.wait();
    INFO(run.log());
    REQUIRE(code == 0);
    return run.report()["image_hash"];
}

}  // namespace carousel::test
