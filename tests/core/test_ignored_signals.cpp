// Signals that the program was started to ignore.
#include "core/process.hpp"

#include "tests/support/catch.hpp"

using namespace carousel;

namespace {

/// SIGUSR2 has that disposition for as long as the object lives.
struct disposition {
    struct sigaction before {};
    explicit disposition(void (*handler)(int)) {
        struct sigaction action {};
        action.sa_handler = handler;
        ::sigaction(SIGUSR2, &action, &before);
    }
    ~disposition() { ::sigaction(SIGUSR2, &before, nullptr); }
    disposition(const disposition&) = delete;
    disposition& operator=(const disposition&) = delete;
};

volatile std::sig_atomic_t handled = 0;

}  // namespace

TEST_CASE("a signal that is ignored at the start is in no set and gets no handler") {
    handled = 0;
    const disposition ignored(SIG_IGN);
    CHECK(is_ignored(SIGUSR2));
    const sigset_t set = not_ignored({SIGUSR1, SIGUSR2});
    CHECK(sigismember(&set, SIGUSR1) == 1);
    CHECK(sigismember(&set, SIGUSR2) == 0);
    handle_unless_ignored(SIGUSR2, [](int) { handled = 1; });
    std::raise(SIGUSR2);
    CHECK(handled == 0);
    CHECK(is_ignored(SIGUSR2));
}

TEST_CASE("a signal with its default disposition may be read and handled") {
    handled = 0;
    const disposition plain(SIG_DFL);
    CHECK_FALSE(is_ignored(SIGUSR2));
    const sigset_t set = not_ignored({SIGUSR2});
    CHECK(sigismember(&set, SIGUSR2) == 1);
    handle_unless_ignored(SIGUSR2, [](int) { handled = 1; });
    std::raise(SIGUSR2);
    CHECK(handled == 1);
}
