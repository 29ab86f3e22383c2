#include "os/table.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::supervisor;

TEST_CASE("columns are as wide as their widest cell and numbers are aligned right") {
    table t({"NAME", ">N"});
    t.add({"a", "1"});
    t.add({"longer", "1000"});
    t.add({"ü"});
    CHECK(t.text() == "NAME       N\na          1\nlonger  1000\nü\n");
}

TEST_CASE("figures are written as people read them") {
    CHECK(human_bytes(0) == "0 B");
    CHECK(human_bytes(1023) == "1023 B");
    CHECK(human_bytes(1024) == "1.0 KiB");
    CHECK(human_bytes(1536 * 1024) == "1.5 MiB");
    CHECK(human_bytes(1024ULL * 1024 * 1024 - 1) == "1.0 GiB");
    CHECK(human_bytes(~0ULL) == "16.0 EiB");
    CHECK(human_seconds(-1) == "0s");
    CHECK(human_seconds(0.44) == "0.4s");
    CHECK(human_seconds(9.96) == "10s");
    CHECK(human_seconds(59.6) == "1m 0s");
    CHECK(human_seconds(3725) == "1h 2m");
    CHECK(human_seconds(100'000) == "1d 3h");
    CHECK(human_rate(0) == "0");
    CHECK(human_rate(0.516) == "0.52");
    CHECK(human_rate(59.94) == "59.9");
    CHECK(human_rate(1204.4) == "1204");
}

TEST_CASE("control characters reach the terminal as visible escapes") {
    CHECK(printable("a\x1b[2Jb\n\t\x7f") == "a\\x1b[2Jb\\n\\t\\x7f");
    CHECK(printable("a\tb\x07", "\t") == "a\tb\\x07");
    CHECK(printable("\xC2\x9B"
                    "2J, Gr\xC3\xB6\xC3\x9F"
                    "e, \xC2\xA0.") ==
          "\\u009b2J, Gr\xC3\xB6\xC3\x9F"
          "e, \xC2\xA0.");
    CHECK(printable("cut \xC2") == "cut \xC2");
    CHECK(width_of("Größe") == 5);
}
