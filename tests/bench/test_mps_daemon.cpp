// The bench's MPS daemon, replaced by a program that records its commands.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "bench/ipc/mps_daemon.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::bench;

namespace {

std::string environment(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
}
/// A folder in PATH with a program of the daemon's name.
class fake_daemon {
public:
    explicit fake_daemon(const char* script)
        : path_("/tmp/carousel-fake-XXXXXX"), before_(environment("PATH")) {
        REQUIRE(::mkdtemp(path_.data()) != nullptr);
        const std::string program = path_ + "/nvidia-cuda-mps-control";
        std::ofstream(program) << "#!/bin/sh\n" << script;
        ::chmod(program.c_str(), 0700);
        ::setenv("PATH", (path_ + ":" + before_).c_str(), 1);
    }
    ~fake_daemon() {
        ::setenv("PATH", before_.c_str(), 1);
        std::filesystem::remove_all(path_);
    }
    [[nodiscard]] std::string read_file(const char* file) const {
        std::ifstream in(path_ + "/" + file);
        std::string word;
        in >> word;
        return word;
    }

private:
    std::string path_, before_;
};

// With -f it is the daemon and stays until it receives quit; otherwise it forwards the command.
constexpr const char* obedient = R"(here=$(dirname "$0")
if [ "$1" = -f ]; then
  touch "$CUDA_MPS_PIPE_DIRECTORY/control"
  while [ ! -e "$CUDA_MPS_PIPE_DIRECTORY/quit" ]; do sleep 0.01; done
  echo quit > "$here/ended"
else
  read word more
  [ "$word" = quit ] && touch "$CUDA_MPS_PIPE_DIRECTORY/quit"
fi
)";

}  // namespace

TEST_CASE("the daemon has its own folder and quits with its object") {
    const fake_daemon fake(obedient);
    std::string folder;
    {
        const mps_folder in;
        folder = in.path();
        const mps_daemon daemon(in);
        CHECK(daemon.runs());
        CHECK(std::filesystem::exists(folder + "/control"));
    }
    CHECK(fake.read_file("ended") == "quit");
    CHECK_FALSE(std::filesystem::exists(folder));
}

TEST_CASE("a daemon that ends at once is reported as absent") {
    const fake_daemon fake("exit 1\n");
    const mps_folder in;
    CHECK_FALSE(mps_daemon(in).runs());
}

TEST_CASE("clients search for their daemon only in its folder") {
    const mps_folder in;
    in.enter();
    CHECK(environment("CUDA_MPS_PIPE_DIRECTORY") == in.path());
    ::unsetenv("CUDA_MPS_PIPE_DIRECTORY"), ::unsetenv("CUDA_MPS_LOG_DIRECTORY");
}
