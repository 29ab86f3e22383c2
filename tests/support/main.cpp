// main() of every Catch2 program here. Its exit code: 0 if all passed, 77 if all passed and one was skipped,
// otherwise Catch2's own; not 0 if no test has run: ctest selects cases by name, and a name that it has
// garbled (a semicolon does it) must not pass.
#define CATCH_CONFIG_RUNNER
#include "tests/support/catch.hpp"
#include "tests/support/skip.hpp"

int main(int argc, char** argv) {
    using carousel::test::exit_skipped;
    Catch::Session session;
    if (const int refused = session.applyCommandLine(argc, argv); refused != 0) return refused;
#if !__has_include(<catch2/catch_all.hpp>)  // Catch2 3 does so by itself
    session.configData().warnings =
        static_cast<Catch::WarnAbout::What>(session.configData().warnings | Catch::WarnAbout::NoTests);
#endif
    const int failed = session.run();  // how many checks have failed, or how many cases were listed
    if (failed == exit_skipped) return exit_skipped + 1;
    return failed == 0 && carousel::test::skipped ? exit_skipped : failed;
}
