#pragma once
// Puts the fake nvidia-cuda-mps-control first in PATH during this object's lifetime. CAROUSEL_FAKE_MPS: its
// folder.

#include <cstdlib>
#include <string>

#include "core/io.hpp"

namespace carousel::test {

class fake_mps {
public:
    /// `how`: words of FAKE_MPS; `log`: file that gets a line a command.
    fake_mps(const std::string& how, std::string log) : log_(std::move(log)) {
        const char* path = std::getenv("PATH");
        path_ = path != nullptr ? path : "/usr/bin:/bin";
        std::string first(CAROUSEL_FAKE_MPS);
        first += ":";
        first += path_;
        ::setenv("PATH", first.c_str(), 1);
        ::setenv("FAKE_MPS", how.c_str(), 1);
        ::setenv("FAKE_MPS_LOG", log_.c_str(), 1);
    }
    ~fake_mps() {
        ::setenv("PATH", path_.c_str(), 1);
        ::unsetenv("FAKE_MPS");
        ::unsetenv("FAKE_MPS_LOG");
    }
    fake_mps(const fake_mps&) = delete;
    fake_mps& operator=(const fake_mps&) = delete;
    [[nodiscard]] std::string log() const { return read_file(log_).value_or(""); }

private:
    std::string path_, log_;
};

}  // namespace carousel::test
