// A stage that dies by a signal leaves a backtrace with the name of the function at fault.
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "core/errors.hpp"
#include "run/fault_record.hpp"
#include "tests/crash/number_run.hpp"
#include "tests/crash/run_fixture.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skip.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;

bool has_libdw() { return ::dlopen("libdw.so.1", RTLD_NOW) != nullptr; }

std::string faulting_pipeline(const std::string& name) {
    return fmt::format(
               "[pipeline]\nname = \"{0}\"\ndevice = \"cpu\"\nsize = [16, 16]\nfps = 100\n\n[[stage]]\nname "
               "= "
               "\"numbers\"\nrun = \"{1}/carousel-test-number\"\n[[stage]]\nname = \"faulty\"\nrun = "
               "\"{1}/carousel-test-faulting\"\ninputs = [\"numbers\"]\nmax_attempts = 1\nin_flight = 1\n",
               name, programs()) +
           number_stage("sink", "faulty", "sink = true\n");
}

/// "faulting_stage.cpp:20", from the mark in its source.
std::string place_of(const std::string& mark) {
    std::ifstream in(FAULTING_SOURCE);
    int number = 0;
    for (std::string line; std::getline(in, line);) {
        ++number;
        if (line.find("// " + mark) != std::string::npos) return fmt::format("faulting_stage.cpp:{}", number);
    }
    return "no mark in " FAULTING_SOURCE;
}

}  // namespace

TEST_CASE("each death by a signal logs its address, and a backtrace with the function at fault") {
    run_fixture run;
    run.start(run.pipeline("faults", faulting_pipeline("faults")), {"--frames", "100000000"});
    // The end of a run does not wait long for backtraces, which have a low priority.
    const auto count = [&](const std::string& text) {
        u32 n = 0;
        const std::string log = run.log();
        for (std::size_t at = log.find(text); at != std::string::npos; at = log.find(text, at + 1)) ++n;
        return n;
    };
    CHECK(run.wait_until([&] { return count("core file: ") == 11; }, 60));
    run.signal(SIGINT);
    CHECK(run.wait() == exit_code::frames_abandoned);
    const std::string log = run.log();
    INFO(log);
    CHECK(run.report()["lost"] == 0);
    CHECK(run.report()["dead_letters"].size() == 11);
    CHECK(run.leftovers() == "");
    // in the line of the death
    CHECK_THAT(log, contains("died: signal 11 (SIGSEGV), a write to 0x0 (null pointer); 1 frames in flight"));
    CHECK_THAT(log, contains("died: signal 11 (SIGSEGV), a stack overflow: a write to "));
    CHECK_THAT(log, contains("died: signal 6 (SIGABRT); 1 frames"));
    CHECK_THAT(log, contains("died: signal 8 (SIGFPE), an integer division by zero; 1 frames"));
    CHECK_THAT(log, contains("died: signal 4 (SIGILL), an instruction that the processor does not have"));
    CHECK_THAT(log, contains("died: signal 7 (SIGBUS), a read of "));
    CHECK_THAT(log, contains("(beyond the end of the file of /tmp/carousel-fault-"));
    CHECK_THAT(log, contains("died: signal 11 (SIGSEGV), a jump to 0x0 (null pointer)"));
    // in the log of the stage
    CHECK_THAT(log, contains("| error: SIGSEGV: a write to 0x0 (null pointer), in thread cpu queue:"));
    CHECK_THAT(log, contains("core file: "));
    CHECK_THAT(log, contains("is saved for replay: `carousel replay --dead-letter 2`"));
    if (!has_libdw()) {
        CHECK_THAT(log, contains("#0 carousel-test-faulting+0x"));
        CHECK_THAT(log, contains("addr2line -Cfipe"));
        CAROUSEL_SKIP("libdw is not installed, so there are no names");
    }
    for (const char* name : {"write_to_null", "recurse_for_ever", "call_abort", "divide_by_zero",
                             "execute_illegal", "read_beyond_file", "call_nowhere", "throw_unknown"})
        CHECK_THAT(log, contains(std::string("carousel::test::") + name));
    CHECK_THAT(log, contains(place_of("the null write")));
    CHECK_THAT(log, contains("carousel::test::write_inlined()"));
    CHECK_THAT(log, contains("(inlined)"));
    CHECK_THAT(log, contains("the same as #1; further frames are not recorded"));
}

TEST_CASE("a signal from outside logs where the stage was, and the process that sent it") {
    run_fixture run;
    run.start(run.pipeline("outside", number_pipeline("outside", "fps = 50")));
    REQUIRE(run.wait_running());
    const i32 pid = run.pid_of("middle");
    run.hit("middle", SIGABRT);
    CHECK(run.wait_until([&] { return run.pid_of("middle") != pid && run.pid_of("middle") > 0; }));
    CHECK(run.wait_until([&] { return run.log().find("core file: ") != std::string::npos; }));
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
    INFO(run.log());
    CHECK_THAT(run.log(), contains(fmt::format("middle (pid {}) died: signal 6 (SIGABRT), sent by process {}",
                                               pid, ::getpid())));
    CHECK_THAT(run.log(), contains("#0 "));
    CHECK(run.report()["lost"] == 0);
}
