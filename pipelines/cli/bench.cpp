// `carousel bench`: becomes carousel-bench, which may load CUDA and OpenGL.

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "bench/commands.hpp"
#include "cli/cli.hpp"
#include "core/errors.hpp"
#include "spec/describe.hpp"

namespace carousel::supervisor {

int cli_bench(const cli_arguments& a, const cli_environment& env) {
    const std::string program = executable_folder() + "/carousel-bench";
    std::vector<std::string> words{program};
    words.insert(words.end(), a.words.begin() + 1, a.words.end());  // behind "bench"
    std::vector<char*> pointers;
    for (std::string& w : words) pointers.push_back(w.data());
    pointers.push_back(nullptr);
    env.out.flush();
    ::execv(program.c_str(), pointers.data());
    throw config_error(fmt::format("starting {}: {}; build the target carousel-bench", program, errno_text(errno)));
}

}  // namespace carousel::supervisor
