// The program `carousel`: supervisor and command line. The program does not link CUDA.

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <csignal>
#include <iostream>

#include "cli/cli.hpp"
#include "core/errors.hpp"
#include "core/process.hpp"
#include "os/console.hpp"

namespace {

/// If the process starts without stdin, stdout or stderr, the first opened files would get the numbers 0 to
/// 2, and messages would be written into these files.
void fill_standard_files() {
    for (int fd = ::open("/dev/null", O_RDWR); fd >= 0; fd = ::open("/dev/null", O_RDWR)) {
        if (fd <= STDERR_FILENO) continue;
        ::close(fd);
        return;
    }
}

}  // namespace

int main(int argc, char** argv) {
    fill_standard_files();
    try {
        carousel::prepare_process_limits();
    } catch (const carousel::error& e) {
        std::cerr << "error: " << e.what() << "\n";
        return e.code();
    }
    // If the parent process ignored SIGCHLD, this process inherits that setting. With this setting the kernel
    // would reap the children, and their exit status would be lost.
    std::signal(SIGCHLD, SIG_DFL);
    std::signal(SIGPIPE, SIG_IGN);  // a reader that disconnects must not end a pipeline
    carousel::supervisor::cli_environment env{std::cout, std::cerr};
    env.out_is_terminal = carousel::supervisor::understands_escapes(STDOUT_FILENO);
    env.err_is_terminal = carousel::supervisor::understands_escapes(STDERR_FILENO);
    if (winsize w{}; ::isatty(STDOUT_FILENO) == 1 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0)
        env.columns = w.ws_col;
    env.run = carousel::supervisor::run_pipeline;
    const int code = carousel::supervisor::cli_main({argv + 1, argv + argc}, env);
    return carousel::after_output(code);
}
