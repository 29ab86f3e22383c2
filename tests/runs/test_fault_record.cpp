// The text of a recorded fault, and what a reader does with a file that is damaged or of another process.
#include <csignal>
#include <cstring>

#include "run/fault_record.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

using namespace carousel;
using run::fault_access;
using run::fault_record;

fault_record fault_at(u64 address, fault_access access, const char* region = "", int code = SEGV_MAPERR) {
    fault_record r;
    r.begun = fault_record::version;
    r.signal = SIGSEGV;
    r.code = code;
    r.address = address;
    r.access = access;
    r.stack = 0x7ffc'0000'8000;
    r.region_known = 1;
    std::strncpy(r.region, region, sizeof r.region - 1);
    return r;
}

std::string bytes_of(const fault_record& r) { return {reinterpret_cast<const char*>(&r), sizeof r}; }

}  // namespace

TEST_CASE("a fault's text states the access, the address and what the address is") {
    CHECK(run::fault_text(fault_at(0, fault_access::write)) == "a write to 0x0 (null pointer)");
    CHECK(run::fault_text(fault_at(0x18, fault_access::read)) == "a read of 0x18 (null pointer)");
    CHECK(run::fault_text(fault_at(0, fault_access::execute)) == "a jump to 0x0 (null pointer)");
    CHECK(run::fault_text(fault_at(0x5000'0000, fault_access::read)) == "a read of 0x50000000 (not mapped)");
    CHECK(run::fault_text(fault_at(0x7f00'0000'1000, fault_access::write,
                                   "7f0000001000-7f0000002000 r--s 00000000 00:01 2049   /memfd:carousel",
                                   SEGV_ACCERR)) == "a write to 0x7f0000001000 (read-only: /memfd:carousel)");
    CHECK(run::fault_text(fault_at(0x7ffc'0000'7ff0, fault_access::write)) ==
          "a stack overflow: a write to 0x7ffc00007ff0 (the guard of the stack)");
    CHECK_THAT(run::fault_text(fault_at(0, fault_access::unknown, "", SI_KERNEL)),
               test::contains("an address that the processor does not have"));
    fault_record sent = fault_at(0, fault_access::unknown, "", SI_USER);
    sent.sender = 77;
    CHECK(run::fault_text(sent) == "sent by process 77");
    sent.sender = 0;
    CHECK(run::fault_text(sent).empty());
}

TEST_CASE("a fault record is read only if it is whole and of the same process, and its counts are limited") {
    const scratch_folder folder;
    fault_record r = fault_at(0, fault_access::write);
    r.pid = 5;
    r.frames = r.modules = 1'000'000;
    std::memset(r.region, 'x', sizeof r.region);
    std::memset(r.module[3].path, 'x', sizeof r.module[3].path);
    CHECK_FALSE(run::read_fault_record(folder.path.string(), 2, 5));
    folder.write("fault-2", bytes_of(r));
    CHECK_FALSE(run::read_fault_record(folder.path.string(), 2, 6));
    const auto read = run::read_fault_record(folder.path.string(), 2, 5);
    REQUIRE(read);
    CHECK(read->frames == fault_record::max_frames);
    CHECK(read->modules == fault_record::max_modules);
    CHECK(std::strlen(read->region) == sizeof r.region - 1);
    CHECK(std::strlen(read->module[3].path) == sizeof r.module[3].path - 1);
    CHECK_FALSE(run::fault_record_from(bytes_of(r).substr(1)));
    r.begun = 0;
    CHECK_FALSE(run::fault_record_from(bytes_of(r)));
}
