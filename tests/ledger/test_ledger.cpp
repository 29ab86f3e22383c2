#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <fstream>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/errors.hpp"
#include "ledger/ledger_fold.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;
using namespace carousel::telemetry;

namespace {

std::string file_in(const scratch_folder& folder) { return ledger_path(folder.path.string(), "display"); }

}  // namespace

TEST_CASE("a run without faults: no lost or repeated frames, and the hash of the hashes by sequence") {
    scratch_folder folder;
    ledger_writer writer(file_in(folder));
    std::vector<u64> hashes;
    for (u64 n = 0; n < 5000; ++n) {  // more than the reader takes at once
        hashes.push_back(n * 0x9E3779B97F4A7C15ULL);
        writer.record(n, hashes.back(), false, 1);
        writer.mark_committed(n, hashes.back(), false, 1);
    }
    const auto reader = ledger_reader::open(file_in(folder));
    REQUIRE(reader);
    CHECK(reader->size() == 5000);
    const auto sum = reader->summarize(5000);
    CHECK(sum.records == 5000);
    CHECK(sum.lost == 0);
    CHECK(sum.repeated == 0);
    CHECK(sum.tombstones == 0);
    CHECK(sum.unmarked == 0);
    CHECK(sum.image_hash == XXH3_64bits(hashes.data(), hashes.size() * sizeof(u64)));
}

TEST_CASE("the order in which frames are recorded doesn't change the image hash") {
    scratch_folder folder;
    const std::string backwards = ledger_path(folder.path.string(), "other");
    ledger_writer a(file_in(folder));
    ledger_writer b(backwards);
    for (u64 n = 0; n < 10; ++n) {
        a.record(n, n + 100, false, 1);
        a.mark_committed(n, n + 100, false, 1);
        b.record(9 - n, 9 - n + 100, false, 2);
        b.mark_committed(9 - n, 9 - n + 100, false, 2);
    }
    CHECK(ledger_reader::open(file_in(folder))->summarize(10).image_hash ==
          ledger_reader::open(backwards)->summarize(10).image_hash);
}

TEST_CASE("holes and frames beyond the file's end are lost") {
    scratch_folder folder;
    ledger_writer writer(file_in(folder));
    for (const u64 n : {0, 1, 4}) {
        writer.record(n, 1, false, 1);
        writer.mark_committed(n, 1, false, 1);
    }
    const auto sum = ledger_reader::open(file_in(folder))->summarize(8);
    CHECK(sum.records == 3);
    CHECK(sum.lost == 5);
}

TEST_CASE("a death between record and commit: no repeat if delivered again, a loss if not") {
    scratch_folder folder;
    ledger_writer(file_in(folder)).record(0, 7, false, 1);
    const auto reader = ledger_reader::open(file_in(folder));
    CHECK(reader->summarize(1).lost == 1);  // for any state of its lease: no process has committed it
    CHECK(reader->summarize(1).unmarked == 1);
    ledger_writer second_incarnation(file_in(folder));
    second_incarnation.record(0, 7, false, 2);
    second_incarnation.mark_committed(0, 7, false, 2);
    CHECK(reader->summarize(1).lost == 0);
    CHECK(reader->summarize(1).repeated == 0);
    CHECK(reader->read(0, 1)[0].writer == 2);
    CHECK(reader->read(0, 1)[0].committer == 2);
}

TEST_CASE("a death between commit and mark: the supervisor marks it, a second commit is a repeat") {
    scratch_folder folder;
    ledger_writer(file_in(folder)).record(0, 7, false, 1);
    ledger_writer supervisor(file_in(folder));
    CHECK(supervisor.mark_committed_by_supervisor(0, 1));
    CHECK(supervisor.mark_committed_by_supervisor(0, 1));  // the next supervisor finds the same word
    CHECK_FALSE(supervisor.mark_committed_by_supervisor(1, 1));
    const auto reader = ledger_reader::open(file_in(folder));
    CHECK(reader->summarize(1).lost == 0);
    CHECK(reader->summarize(1).repeated == 0);
    CHECK(reader->summarize(1).marked_by_supervisor == 1);
    SECTION("the dead one comes to its own mark after all") {
        ledger_writer(file_in(folder)).mark_committed(0, 7, false, 1);
        CHECK(reader->summarize(1).repeated == 0);
        ledger_writer(file_in(folder)).mark_committed(0, 7, false, 1);  // that would be a second commit
        CHECK(reader->summarize(1).repeated == 1);
    }
    SECTION("a successor commits the frame again") {
        ledger_writer successor(file_in(folder));
        successor.record(0, 7, false, 2);
        CHECK(reader->summarize(1).repeated == 0);
        successor.mark_committed(0, 7, false, 2);
        CHECK(reader->summarize(1).repeated == 1);
    }
    SECTION("a successor commits it again, and dies before its mark, too") {
        ledger_writer(file_in(folder)).record(0, 7, false, 2);
        CHECK(supervisor.mark_committed_by_supervisor(0, 2));
        CHECK(reader->summarize(1).repeated == 1);
    }
}

TEST_CASE("a second mark has no effect, and a late record of a dead process does not erase it") {
    scratch_folder folder;
    ledger_writer writer(file_in(folder));
    writer.record(0, 7, false, 2);
    writer.mark_committed(0, 7, false, 2);
    CHECK(writer.mark_committed_by_supervisor(0, 2));
    ledger_writer(file_in(folder)).record(0, 7, false, 1);  // a predecessor that had been stopped
    const auto sum = ledger_reader::open(file_in(folder))->summarize(1);
    CHECK(sum.lost == 0);
    CHECK(sum.repeated == 0);
    CHECK(sum.marked_by_supervisor == 0);
}

TEST_CASE("a frame that is committed twice is one repeat, for any number of records") {
    scratch_folder folder;
    ledger_writer writer(file_in(folder));
    writer.record(0, 7, false, 1);
    writer.mark_committed(0, 7, false, 1);
    writer.record(0, 7, false, 2);  // a predecessor that dies before its commit
    CHECK(ledger_reader::open(file_in(folder))->summarize(1).repeated == 0);
    writer.record(0, 7, false, 2);
    writer.mark_committed(0, 7, false, 2);
    CHECK(ledger_reader::open(file_in(folder))->summarize(1).repeated == 1);
}

TEST_CASE("a frame without a hash is counted, and the ledger states that it has none") {
    scratch_folder folder;
    ledger_writer writer(file_in(folder));
    writer.record(0, std::nullopt, false, 1);
    writer.mark_committed(0, std::nullopt, false, 1);
    const auto sum = ledger_reader::open(file_in(folder))->summarize(1);
    CHECK(sum.lost == 0);
    CHECK(sum.without_hash == 1);
}

TEST_CASE("a tombstone frame is recorded as such and adds 0 to the image hash") {
    scratch_folder folder;
    ledger_writer writer(file_in(folder));
    writer.record(0, 5, true, 1);
    writer.mark_committed(0, 5, true, 1);
    const u64 zero = 0;
    const auto sum = ledger_reader::open(file_in(folder))->summarize(1);
    CHECK(sum.tombstones == 1);
    CHECK(sum.without_hash == 0);
    CHECK(sum.tombstone_sequences == std::vector<u64>{0});
    CHECK(sum.image_hash == XXH3_64bits(&zero, sizeof zero));
}

TEST_CASE("the first frame without a mark is the first that has to be delivered again") {
    scratch_folder folder;
    ledger_writer writer(file_in(folder));
    const auto reader = ledger_reader::open(file_in(folder));
    CHECK(reader->first_undelivered(0) == 0);
    for (u64 n = 0; n < 9000; ++n) {  // more than the reader takes at once
        writer.record(n, n, false, 1);
        if (n != 4500) writer.mark_committed(n, n, false, 1);
    }
    CHECK(reader->first_undelivered(0) == 4500);
    CHECK(reader->first_undelivered(4500) == 4500);
    CHECK(reader->first_undelivered(4501) == 9000);
    CHECK(reader->first_undelivered(20'000) == 20'000);
}

TEST_CASE("no file reads as no ledger, and a folder that is not there is named") {
    scratch_folder folder;
    CHECK_FALSE(ledger_reader::open(file_in(folder)));
    CHECK_THROWS_WITH(ledger_writer((folder.path / "absent" / "l.bin").string()),
                      test::contains("absent/l.bin"));
    ledger_writer writer(file_in(folder));
    CHECK_THROWS_AS(writer.mark_committed(3, 3, false, 1), output_error);
}

TEST_CASE("a disk that is full from any page on leaves whole records and whole marks only") {
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    for (const u64 pages : {1, 2, 3, 4, 5, 6}) {
        scratch_folder folder;
        ledger_writer writer(file_in(folder));
        const rlimit tight{pages * 4096, before.rlim_max};
        setrlimit(RLIMIT_FSIZE, &tight);
        u64 committed = 0;
        std::string failed;
        try {
            for (;; ++committed) {
                writer.record(committed, 7, false, 1);
                writer.mark_committed(committed, 7, false, 1);
            }
        } catch (const output_error& e) {
            failed = e.what();
        }
        setrlimit(RLIMIT_FSIZE, &before);
        CHECK_THAT(failed, test::contains("ledger"));
        const auto reader = ledger_reader::open(file_in(folder));
        const ledger_summary sum = reader->summarize(committed + 1);  // throws for half a mark
        CHECK(sum.lost == 1);
        CHECK(sum.unmarked == 0);
        CHECK(reader->first_undelivered(0) == committed);
        writer.record(committed, 7, false, 1);  // there is room again
        writer.mark_committed(committed, 7, false, 1);
        CHECK(reader->summarize(committed + 1).lost == 0);
        CHECK(reader->summarize(committed + 1).repeated == 0);
    }
}

TEST_CASE("a full disk is an output error that names the remedy") {
    scratch_folder folder;
    ledger_writer writer(file_in(folder));
    writer.record(0, 1, false, 1);
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit tight{32, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &tight);
    std::string message;
    try {
        writer.record(1, 1, false, 1);
    } catch (const output_error& e) {
        message = e.what();
    }
    setrlimit(RLIMIT_FSIZE, &before);
    CHECK_THAT(message, test::contains("can't write the ledger"));
}

TEST_CASE("a ledger of version 0.1.0 is refused by its record size, and one frame of it is read") {
    // As that version wrote it: the fields of ledger_record up to `flags`, and one reserved word.
    constexpr std::size_t old_bytes = 48;
    const auto old_record = [](u64 sequence) {
        ledger_record r;
        r.sequence_plus_1 = sequence + 1;
        r.recorded_hash = r.hash = 100 + sequence;
        r.recorded_flags = r.flags = ledger_tag(own_hash_name);
        r.writer = r.committer = 1;
        r.commits = 1;
        std::string bytes(old_bytes, '\0');
        std::memcpy(bytes.data(), &r, old_bytes);
        return bytes;
    };
    const u64 frames = GENERATE(1, 2, 3, 100);
    CAPTURE(frames);
    scratch_folder folder;
    {
        std::ofstream out(file_in(folder), std::ios::binary);
        for (u64 n = 0; n < frames; ++n) out << old_record(n);
        std::ofstream(ledger_names_path(file_in(folder))) << own_hash_name << "\n";
    }
    const auto reader = ledger_reader::open(file_in(folder));
    REQUIRE(reader);
    if (frames == 1) {
        CHECK(reader->summarize(1).lost == 0);
        CHECK(reader->first_undelivered(0) == 1);
        return;
    }
    const auto refusal = test::contains("an earlier version of Carousel wrote it (0.1.0: 48 bytes)");
    CHECK_THROWS_WITH(reader->summarize(reader->size()), refusal);
    CHECK_THROWS_WITH(reader->first_undelivered(0), refusal);
}

TEST_CASE("the account of old frames of version 0.1.0 is refused by its first word") {
    scratch_folder folder;
    const ledger_writer writer(file_in(folder));
    ledger_account::beginning_at(0).save(folded_path(file_in(folder)));
    std::fstream file(folded_path(file_in(folder)), std::ios::in | std::ios::out | std::ios::binary);
    file.write("CLWFOLD3", 8);
    file.close();
    CHECK_THROWS_WITH(ledger_reader::open(file_in(folder))->summarize(1),
                      test::contains("is not a ledger account of this build of Carousel"));
}
