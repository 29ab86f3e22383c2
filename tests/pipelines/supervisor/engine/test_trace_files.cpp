// The parts in which a trace of one host is sent to another.

#include <sstream>

#include "supervisor/engine/trace_control.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using supervisor::trace_files;

TEST_CASE("the parts of a file combine to the file, and none begins or ends within a character") {
    for (const char* letter : {"a", "\u00e4", "\u20ac", "\U0001f3a0"})
        for (u64 before = 0; before < 5; ++before) {
            INFO(letter << " " << before);
            std::string whole(before, '.');
            while (whole.size() < 2 * run::trace_part + 100) whole += letter;
            std::istringstream file(whole);
            std::string joined;
            for (u64 at = 0; at < whole.size(); at += run::trace_part) {
                const std::string part = trace_files::part_of(file, whole.size(), at);
                CHECK((static_cast<unsigned char>(part.front()) & 0xC0U) != 0x80U);
                CHECK(part.size() <= run::trace_part + 3);
                CHECK((part.size() < std::string(letter).size() ||
                       part.substr(part.size() - std::string(letter).size()) == letter));
                joined += part;
            }
            CHECK(joined == whole);
        }
}

TEST_CASE("bytes that are not text are transferred in parts all the same") {
    const std::string whole(run::trace_part + 10, '\x80');
    std::istringstream file(whole);
    CHECK(trace_files::part_of(file, whole.size(), 0).size() == run::trace_part + 3);
    CHECK(trace_files::part_of(file, whole.size(), run::trace_part).size() == 7);
}

TEST_CASE("a trace that isn't there is refused with its number") {
    trace_files all;
    CHECK_THROWS_WITH(all.poll(7, false, 0, 1), "trace: trace 7 does not exist here, or has been removed");
}
