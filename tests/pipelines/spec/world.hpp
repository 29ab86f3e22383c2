#pragma once
// A separate world for a test: a new folder that is the XDG_RUNTIME_DIR, removed at the end; programs and
// files in it.

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "cli/cli.hpp"
#include "tests/support/catch.hpp"

namespace carousel::test {

class variable {
public:
    variable(std::string name, const std::string& value) : name_(std::move(name)) {
        if (const char* before = std::getenv(name_.c_str())) before_ = before;
        ::setenv(name_.c_str(), value.c_str(), 1);
    }
    ~variable() {
        if (before_)
            ::setenv(name_.c_str(), before_->c_str(), 1);
        else
            ::unsetenv(name_.c_str());
    }
    variable(const variable&) = delete;
    variable& operator=(const variable&) = delete;

private:
    std::string name_;
    std::optional<std::string> before_;
};

class world {
public:
    world() : folder_(made()), runtime_("XDG_RUNTIME_DIR", folder_) {}
    ~world() {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    world(const world&) = delete;
    world& operator=(const world&) = delete;

    [[nodiscard]] const std::string& folder() const { return folder_; }
    [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }
    std::string write(const std::string& name, const std::string& text) const {
        std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
        std::ofstream(path(name)) << text;
        return path(name);
    }
    /// A shell script; `--describe` and stdin are its own business.
    std::string program(const std::string& name, const std::string& body) const {
        write(name, "#!/bin/sh\n" + body + "\n");
        ::chmod(path(name).c_str(), 0755);
        return path(name);
    }

private:
    static std::string made() {
        char name[] = "/tmp/carousel-test-XXXXXX";
        REQUIRE(::mkdtemp(name) != nullptr);
        return name;
    }
    std::string folder_;
    variable runtime_;
};

struct command_result {
    int code = 0;
    std::string out, err;
};

inline int runs = 0;  ///< times that the engine was called
inline supervisor::pipeline last_pipeline;
inline supervisor::run_options last_options;
inline int note_run(const supervisor::pipeline& p, const supervisor::run_options& o) {
    ++runs;
    last_pipeline = p;
    last_options = o;
    return 0;
}

/// `carousel WORDS`, with an engine that only takes note.
inline command_result carousel(const std::vector<std::string>& words,
                               const supervisor::clean_places& places = {}) {
    std::ostringstream out, err;
    supervisor::cli_environment env{out, err};
    env.run = note_run;
    env.places = places;
    const int code = supervisor::cli_main(words, env);
    return {code, out.str(), err.str()};
}

/// Answers of two stages that fit: a source, and a sink.
inline const std::string source_body =
    R"(cat > /dev/null; echo '{"format":{"type":"t","planes":[]},"slot_bytes":512,"makes":[{"name":"mesh","bytes":64}],"uses":[],"commits_on_host":false}')";
inline const std::string sink_body =
    R"(cat > /dev/null; echo '{"format":null,"slot_bytes":0,"makes":[],"uses":["mesh"],"commits_on_host":true}')";
inline const std::string two_stages =
    "[[stage]]\nname = \"a\"\nrun = \"./source\"\n[[stage]]\nname = \"b\"\nrun = \"./sink\"\ninputs = "
    "[\"a\"]\nown = 3\n";

}  // namespace carousel::test
