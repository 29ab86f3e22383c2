// A fatal signal ends its process even if the recording of the stack never returns.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "core/clock.hpp"
#include "run/fault_record.hpp"
#include "stages/runner/exit_note.hpp"
#include "stages/runner/fault_recorder.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;

namespace {

volatile bool hangs = false;

}  // namespace

/// Replaces the function of the C library that the recording calls; it hangs on request.
extern "C" int _dl_find_object(void* address, dl_find_object* result) noexcept {
    while (hangs) ::pause();
    using function = int (*)(void*, dl_find_object*);
    static const auto original = reinterpret_cast<function>(::dlsym(RTLD_NEXT, "_dl_find_object"));
    return original(address, result);
}

TEST_CASE("a process whose recording of a fault hangs ends by the signal of the fault within seconds") {
    const scratch_folder folder;
    static shm::incarnation entry;
    const u64 begun = now_ns();
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        std::signal(SIGSEGV, SIG_DFL);  // the test framework's own
        stages::install_exit_note(entry);
        stages::open_fault_record(folder.path.string(), 0);
        hangs = true;
        std::raise(SIGSEGV);
        ::_exit(0);
    }
    int how = 0;
    pid_t ended = 0;
    while ((ended = ::waitpid(child, &how, WNOHANG)) == 0 && now_ns() - begun < 20 * ns_per_s)
        ::usleep(20'000);
    if (ended == 0) {
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
    }
    REQUIRE(ended == child);
    CHECK(WIFSIGNALED(how));
    CHECK(WTERMSIG(how) == SIGSEGV);
    const auto record = run::read_fault_record(folder.path.string(), 0, child);
    REQUIRE(record);
    CHECK(record->signal == SIGSEGV);
    CHECK(record->complete != run::fault_record::version);  // it did hang
}
