// The place of a core file, for each kind of pattern of the kernel.
#include "backtrace/core_file.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using backtrace::core_facts;
using backtrace::core_text;

core_facts with(const std::string& pattern) {
    core_facts f;
    f.pattern = pattern;
    f.limit = ~u64{0};
    f.pid = 17;
    f.thread = 18;
    f.signal = 11;
    f.uid = 1000;
    f.thread_name = "cpu queue";
    f.program = "/opt/bin/stage";
    f.host = "h";
    f.folder = "/srv";
    return f;
}

}  // namespace

TEST_CASE("a core file's path follows the kernel's pattern") {
    CHECK(core_text(with("core")) == "core file: /srv/core");
    core_facts pid = with("core");
    pid.uses_pid = true;
    CHECK(core_text(pid) == "core file: /srv/core.17");
    pid.pattern = "core-%p";
    CHECK(core_text(pid) == "core file: /srv/core-17");
    CHECK(core_text(with("/var/c/%h-%e-%p-%i-%s-%u-%t%%")) ==
          "core file: /var/c/h-cpu queue-17-18-11-1000-*%");
    CHECK(core_text(with("/c/%E")) == "core file: /c/!opt!bin!stage");
}

TEST_CASE("without a core file the text states why, and with a handler how to open it") {
    core_facts none = with("core");
    none.limit = 0;
    CHECK_THAT(core_text(none), test::contains("core file: none, because `ulimit -c` is 0"));
    CHECK(core_text(with("|/usr/lib/systemd/systemd-coredump %P %u")) ==
          "core file: `coredumpctl debug 17` (kept by systemd-coredump)");
    none.pattern = "|/usr/lib/systemd/systemd-coredump %P %u";
    CHECK_THAT(core_text(none), test::contains("`ulimit -c` is 0, so it may have discarded it"));
    CHECK_THAT(core_text(with("|/usr/share/apport/apport -p%p")), test::contains("passed to apport"));
    CHECK(core_text(with("|/sbin/handler")) == "core file: passed to /sbin/handler");
}
