#pragma once
// An empty folder for one test case, removed at its end.

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

namespace carousel {

struct scratch_folder {
    std::filesystem::path path;

    scratch_folder() {
        // Not only by the pid: a killed test leaves its folder, and pids are reused.
        std::string name = (std::filesystem::temp_directory_path() /
                            ("carousel-test-" + std::to_string(getpid()) + "-XXXXXX"))
                               .string();
        if (::mkdtemp(name.data()) == nullptr) throw std::system_error(errno, std::generic_category(), name);
        path = name;
    }
    ~scratch_folder() {
        std::error_code ignored;  // a process that dies meanwhile may still write into it
        std::filesystem::remove_all(path, ignored);
    }
    scratch_folder(const scratch_folder&) = delete;
    scratch_folder& operator=(const scratch_folder&) = delete;

    /// Writes a text file and returns its path.
    std::string write(const std::string& name, const std::string& text) const {
        std::ofstream(path / name, std::ios::binary) << text;
        return (path / name).string();
    }
    /// The names in a folder, sorted.
    [[nodiscard]] static std::vector<std::string> names_in(const std::filesystem::path& folder) {
        std::vector<std::string> found;
        for (const auto& entry : std::filesystem::directory_iterator(folder)) {
            found.push_back(entry.path().filename().string());
        }
        std::sort(found.begin(), found.end());
        return found;
    }
    [[nodiscard]] std::vector<std::string> names() const { return names_in(path); }
};

}  // namespace carousel
