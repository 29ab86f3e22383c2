#pragma once
// A fake nvidia-cuda-mps-control. CAROUSEL_FAKE_MPS: the folder of its program.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/io.hpp"

namespace carousel::test {

/// Makes `folder` with the program and files of its settings, because its daemon gets no other variables than
/// NVIDIA's. `how`: words for it; `log`: the file that gets a line a command. Returns PATH with the folder
/// first.
inline std::string path_with_fake_mps(const std::filesystem::path& folder, const std::string& how,
                                      const std::string& log) {
    namespace fs = std::filesystem;
    const fs::path name = "nvidia-cuda-mps-control";
    fs::create_directories(folder);
    if (!fs::exists(folder / name)) fs::create_symlink(fs::path(CAROUSEL_FAKE_MPS) / name, folder / name);
    std::ofstream(folder / "how") << how;
    std::ofstream(folder / "log") << log;
    const char* path = std::getenv("PATH");
    return folder.string() + ":" + (path != nullptr ? path : "/usr/bin:/bin");
}

/// Puts a fake nvidia-cuda-mps-control first in PATH during this object's lifetime.
class fake_mps {
public:
    /// `log`: in an existing folder, in which the fake's folder is made.
    fake_mps(const std::string& how, std::string log) : log_(std::move(log)) {
        const char* path = std::getenv("PATH");
        path_ = path != nullptr ? path : "/usr/bin:/bin";
        ::setenv("PATH", path_with_fake_mps(log_ + ".fake", how, log_).c_str(), 1);
    }
    ~fake_mps() { ::setenv("PATH", path_.c_str(), 1); }
    fake_mps(const fake_mps&) = delete;
    fake_mps& operator=(const fake_mps&) = delete;
    [[nodiscard]] std::string log() const { return read_file(log_).value_or(""); }

private:
    std::string path_, log_;
};

}  // namespace carousel::test
