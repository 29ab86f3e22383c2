// When a program that ends is started again: early_ends.hpp.
#include "supervisor/policy/early_ends.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::supervisor;

/// One service from `from` for `length` ns.
bool restarts_after(early_ends& e, u64 from, u64 length) {
    e.note_start(from);
    return e.note_end(from + length);
}

}  // namespace

TEST_CASE("a program that ends within a minute of its start is abandoned after four times in a row") {
    early_ends e;
    for (u64 k = 1; k < early_ends::most; ++k)
        CHECK(restarts_after(e, k * early_ends::service_ns, early_ends::service_ns - 1));
    CHECK_FALSE(restarts_after(e, 100 * early_ends::service_ns, early_ends::service_ns - 1));
}

TEST_CASE("a program that serves for a minute before each end is always started again") {
    early_ends e;
    for (u64 k = 0; k < 1000; ++k)
        CHECK(restarts_after(e, 2 * k * early_ends::service_ns, early_ends::service_ns));
}

TEST_CASE("a minute of service forgives the early ends before it") {
    early_ends e;
    for (u64 k = 1; k < early_ends::most; ++k) CHECK(restarts_after(e, 0, 1));
    CHECK(restarts_after(e, 0, early_ends::service_ns));
    for (u64 k = 1; k < early_ends::most; ++k) CHECK(restarts_after(e, 0, 1));
    CHECK_FALSE(restarts_after(e, 0, 1));
}
