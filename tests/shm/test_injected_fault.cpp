// The table of the faults that can be requested, and the word of a request.
#include "shm/injected_fault.hpp"

#include <set>

#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::shm;

TEST_CASE("a fault's word asks one process, for a fault that the table has") {
    for (const injected_fault_row& row : injected_faults) {
        INFO(row.name);
        CHECK(row_of(row.kind) == &row);
        CHECK(fault_named(row.name) == row.kind);
        CHECK(name_of(row.kind) == row.name);
        CHECK(fault_for(fault_word(row.kind, 7), 7) == row.kind);
        CHECK(fault_for(fault_word(row.kind, 7), 8) == injected_fault::nothing);
    }
    CHECK(fault_for(fault_word(static_cast<injected_fault>(200), 7), 7) == injected_fault::nothing);
    CHECK(fault_for(0, 0) == injected_fault::nothing);
    CHECK(fault_named("nothing") == injected_fault::nothing);
    CHECK(row_of(injected_fault::nothing) == nullptr);
}

TEST_CASE("every fault has a name, a key and a sentence of its own") {
    std::set<std::string> names, sentences;
    std::set<char> letters;
    for (const injected_fault_row& row : injected_faults) {
        names.insert(row.name);
        letters.insert(row.key);
        sentences.insert(row.help);
    }
    CHECK(names.size() == injected_faults.size());
    CHECK(letters.size() == injected_faults.size());
    CHECK(sentences.size() == injected_faults.size());
    CHECK(letters.find('K') == letters.end());  // kill, stop, restart and continue use their own
    CHECK(letters.find('S') == letters.end());
    CHECK(letters.find('R') == letters.end());
    CHECK(letters.find('C') == letters.end());
    CHECK(
        fault_names(" or ") ==
        "hang, gpu-fault, exit, abort, scribble-input, overrun-output, scribble-control, throw or gpu-lost");
}
