#pragma once
// A machine with one GPU that the CPU backend simulates (device/device_failure.hpp), and that a test lets
// fail for all processes at once.

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "device/device_failure.hpp"
#include "tests/crash/crash_drive.hpp"
#include "tests/support/catch.hpp"

namespace carousel::test {

class simulated_gpu {
public:
    explicit simulated_gpu(const run_fixture& run, int error = 0) : path_(run.path("gpu")) {
        fails_with(error);
    }
    /// From now on each call to the GPU fails with this CUDA error; 0: it works.
    void fails_with(int error) const {
        const int fd = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        REQUIRE(fd >= 0);
        REQUIRE(::pwrite(fd, &error, sizeof error, 0) == sizeof error);
        (void)::close(fd);
    }
    [[nodiscard]] std::vector<std::string> environment(std::vector<std::string> more = {}) const {
        more.insert(more.end(), {"CAROUSEL_TEST_GPU_ON_CPU=1", "CAROUSEL_TEST_GPU_FAILURE=" + path_});
        return more;
    }

private:
    std::string path_;
};

/// Places a number stage on the GPU.
inline const std::string on_gpu = "device = \"cuda:0\"\n";

/// The stages that are on the CPU instead of their GPU.
inline std::vector<std::string> stages_on_cpu(run_fixture& run) {
    const nlohmann::json p = run.ask({{"type", "ps"}}).value("pipeline", nlohmann::json::object());
    const nlohmann::json f = p.value("fallback", nlohmann::json());
    return f.is_object() ? f.at("stages").get<std::vector<std::string>>() : std::vector<std::string>();
}

/// Waits until these stages are on the CPU, and the run is not being rebuilt.
inline bool settles(run_fixture& run, const std::vector<std::string>& on_cpu) {
    return run.wait_until([&] {
        const nlohmann::json p = run.ask({{"type", "ps"}}).value("pipeline", nlohmann::json::object());
        return p.value("state", "rebuilding") != "rebuilding" && stages_on_cpu(run) == on_cpu;
    });
}

/// `carousel device cuda:0`
inline bool returns(run_fixture& run) {
    std::string out;
    const int code = run.command({"device", "cuda:0"}, out);
    INFO(out);
    CHECK(code == 0);
    return code == 0 && settles(run, {});
}

}  // namespace carousel::test
