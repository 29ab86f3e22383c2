// main() of every Catch2 program here. Its exit code: 0 when all passed, 77 when all passed and one was skipped, else Catch2's own.
#define CATCH_CONFIG_RUNNER
#include "tests/support/catch.hpp"
#include "tests/support/skip.hpp"

int main(int argc, char** argv) {
    using carousel::test::exit_skipped;
    const int failed = Catch::Session().run(argc, argv);  // how many checks have failed, or how many cases were listed
    if (failed == exit_skipped) return exit_skipped + 1;
    return failed == 0 && carousel::test::skipped ? exit_skipped : failed;
}
