#pragma once
// The text that this process writes to stderr.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "shm/fd_socket.hpp"
#include "tests/support/scratch_folder.hpp"

namespace carousel::test {

/// Runs `work`; returns what this process writes to stderr meanwhile.
template <typename F>
std::string exception_text(F&& work) {
    const scratch_folder folder;
    const std::string path = (folder.path / "log").string();
    const shm::unique_fd before(::dup(STDERR_FILENO));
    const shm::unique_fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    ::dup2(file.get(), STDERR_FILENO);
    work();
    ::dup2(before.get(), STDERR_FILENO);
    std::ostringstream all;
    all << std::ifstream(path).rdbuf();
    // A sanitizer's report is passed on, for the reader of the failed test's output.
    if (all.str().find("Sanitizer:") != std::string::npos) std::fputs(all.str().c_str(), stderr);
    return all.str();
}

}  // namespace carousel::test
