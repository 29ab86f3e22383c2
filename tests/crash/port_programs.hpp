#pragma once
// External programs in tests: started by the test, not by a run, and killed at its end. The output of each
// goes to a file.
#include <fmt/format.h>
#include <poll.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "shm/process_id.hpp"
#include "tests/crash/number_run.hpp"

namespace carousel::test {

class external_program {
public:
    /// `prefix`: a tool's command line before the program.
    external_program(const run_fixture& run, const std::string& name, const std::string& program,
                     const std::vector<std::string>& words, const std::vector<std::string>& environment = {},
                     const std::vector<std::string>& prefix = {})
        : file_(run.path(name)) {
        supervisor::spawn_request r;
        r.argv = {"/bin/sh", "-c", "out=$1 && shift && exec \"$@\" >\"$out\" 2>&1", "sh", file_};
        r.argv.insert(r.argv.end(), prefix.begin(), prefix.end());
        r.argv.push_back(program.find('/') == std::string::npos ? programs() + "/" + program : program);
        r.argv.insert(r.argv.end(), words.begin(), words.end());
        r.environment = environment;
        r.environment.push_back("XDG_RUNTIME_DIR=" + run.path("runtime"));
        process_ = supervisor::spawn(r);
    }
    ~external_program() {
        if (!process_.pidfd) return;
        signal(SIGKILL);
        (void)wait(10);
    }
    external_program(external_program&&) = default;
    external_program& operator=(external_program&&) = delete;
    void signal(int number) const { shm::signal_pidfd(process_.pidfd.get(), number); }
    [[nodiscard]] i32 pid() const noexcept { return process_.pid; }
    /// Its exit code; -signal; -1000 if it is still running.
    int wait(f64 timeout_s) {
        if (!process_.pidfd) return -1000;
        pollfd p{process_.pidfd.get(), POLLIN, 0};
        if (::poll(&p, 1, static_cast<int>(timeout_s * 1000)) <= 0) return -1000;
        const supervisor::exit_status s = supervisor::reap(process_.pidfd.get());
        process_.pidfd.reset();
        return s.signal != 0 ? -s.signal : s.exit_code;
    }
    [[nodiscard]] std::string output() const {
        std::ostringstream all;
        all << std::ifstream(file_).rdbuf();
        return all.str();
    }
    [[nodiscard]] bool has_printed(const std::string& what) const {
        return output().find(what) != std::string::npos;
    }
    /// The newest frame that it has printed.
    [[nodiscard]] u64 frame() const {
        const std::string all = output();
        const auto at = all.rfind("frame ");
        return at == std::string::npos ? 0 : std::strtoull(all.c_str() + at + 6, nullptr, 10);
    }

private:
    std::string file_;
    supervisor::spawned process_;
};

}  // namespace carousel::test
