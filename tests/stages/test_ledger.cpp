#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/errors.hpp"
#include "telemetry/ledger_fold.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::telemetry;

namespace {

std::string file_in(const scratch_folder& folder) { return ledger_path(folder.path.string(), "display"); }

}  // namespace

TEST_CASE("an undisturbed run: nothing lost, nothing repeated, and the hash of the hashes by sequence") {
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
    CHECK(sum.voids == 0);
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
    CHECK(ledger_reader::open(file_in(folder))->summarize(10).image_hash == ledger_reader::open(backwards)->summarize(10).image_hash);
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

TEST_CASE("a death between record and commit leaves no repeat when the frame is delivered again, and a loss when it is not") {
    scratch_folder folder;
    ledger_writer(file_in(folder)).record(0, 7, false, 1);
    const auto reader = ledger_reader::open(file_in(folder));
    CHECK(reader->summarize(1).lost == 1);  // whatever became of its lease: nobody has committed it
    CHECK(reader->summarize(1).unmarked == 1);
    ledger_writer second_life(file_in(folder));
    second_life.record(0, 7, false, 2);
    second_life.mark_committed(0, 7, false, 2);
    CHECK(reader->summarize(1).lost == 0);
    CHECK(reader->summarize(1).repeated == 0);
    CHECK(reader->read(0, 1)[0].writer == 2);
    CHECK(reader->read(0, 1)[0].committer == 2);
}

TEST_CASE("a death between commit and mark: the supervisor makes the mark, and a second commit is a repeat") {
    scratch_folder folder;
    ledger_writer(file_in(folder)).record(0, 7, false, 1);
    ledger_writer supervisor(file_in(folder));
    CHECK(supervisor.tell_committed(0, 1));
    CHECK(supervisor.tell_committed(0, 1));  // the supervisor after it finds the same word
    CHECK_FALSE(supervisor.tell_committed(1, 1));
    const auto reader = ledger_reader::open(file_in(folder));
    CHECK(reader->summarize(1).lost == 0);
    CHECK(reader->summarize(1).repeated == 0);
    CHECK(reader->summarize(1).told == 1);
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
        CHECK(supervisor.tell_committed(0, 2));
        CHECK(reader->summarize(1).repeated == 1);
    }
}

TEST_CASE("a mark that is there is told of in vain, and a late record of a dead one doesn't wipe it out") {
    scratch_folder folder;
    ledger_writer writer(file_in(folder));
    writer.record(0, 7, false, 2);
    writer.mark_committed(0, 7, false, 2);
    CHECK(writer.tell_committed(0, 2));
    ledger_writer(file_in(folder)).record(0, 7, false, 1);  // a predecessor that had been stopped
    const auto sum = ledger_reader::open(file_in(folder))->summarize(1);
    CHECK(sum.lost == 0);
    CHECK(sum.repeated == 0);
    CHECK(sum.told == 0);
}

TEST_CASE("a frame that is committed twice is a repeat, however often it is recorded") {
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

TEST_CASE("a frame without a hash is counted, and the ledger says that it has none") {
    scratch_folder folder;
    ledger_writer writer(file_in(folder));
    writer.record(0, std::nullopt, false, 1);
    writer.mark_committed(0, std::nullopt, false, 1);
    const auto sum = ledger_reader::open(file_in(folder))->summarize(1);
    CHECK(sum.lost == 0);
    CHECK(sum.without_hash == 1);
}

TEST_CASE("a void frame is recorded as such and adds 0 to the image hash") {
    scratch_folder folder;
    ledger_writer writer(file_in(folder));
    writer.record(0, 5, true, 1);
    writer.mark_committed(0, 5, true, 1);
    const u64 zero = 0;
    const auto sum = ledger_reader::open(file_in(folder))->summarize(1);
    CHECK(sum.voids == 1);
    CHECK(sum.without_hash == 0);
    CHECK(sum.void_sequences == std::vector<u64>{0});
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
    CHECK_THROWS_WITH(ledger_writer((folder.path / "absent" / "l.bin").string()), test::contains("absent/l.bin"));
    ledger_writer writer(file_in(folder));
    CHECK_THROWS_AS(writer.mark_committed(3, 3, false, 1), output_error);
}

TEST_CASE("a disk without room is an output error that says what to do") {
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

namespace {

struct frames {
    u64 first = 0, end = 0, void_at = ~u64{0}, twice_at = ~u64{0};
};

void deliver(const std::string& file, const frames& f) {
    ledger_writer writer(file);
    for (u64 n = f.first; n < f.end; ++n) {
        writer.record(n, n * 0x9E37'79B9'7F4A'7C15ULL, n == f.void_at, 1);
        writer.mark_committed(n, n * 0x9E37'79B9'7F4A'7C15ULL, n == f.void_at, 1);
        if (n == f.twice_at) writer.mark_committed(n, n * 0x9E37'79B9'7F4A'7C15ULL, n == f.void_at, 2);
    }
}

u64 space_of(const std::string& file) {
    struct stat s {};
    REQUIRE(::stat(file.c_str(), &s) == 0);
    return static_cast<u64>(s.st_blocks) * 512;
}

void check_equal(const ledger_summary& folded, const ledger_summary& whole) {
    CHECK(folded.records == whole.records);
    CHECK(folded.lost == whole.lost);
    CHECK(folded.repeated == whole.repeated);
    CHECK(folded.voids == whole.voids);
    CHECK(folded.void_sequences == whole.void_sequences);
    CHECK(folded.image_hash == whole.image_hash);
}

}  // namespace

TEST_CASE("a ledger that is folded as it grows keeps its size, and tells the same of the whole run") {
    scratch_folder folder;
    const std::string whole = ledger_path(folder.path.string(), "whole"), kept = file_in(folder), copy = (folder.path / "copy.bin").string();
    constexpr u64 keep = 1000, all = 30'000;
    u64 most = 0;
    for (u64 n = 0; n < all; n += 1000) {
        for (const std::string& file : {whole, kept}) deliver(file, {n, n + 1000, 77, 5003});
        const u64 may_fold = n + 1000 > keep ? n + 1000 - keep : 0;
        const u64 first_kept = fold_ledger(kept, may_fold);
        CHECK(first_kept <= may_fold);
        CHECK(first_kept % fold_step == 0);
        CHECK(first_kept + keep + fold_step > n + 1000);
        most = std::max(most, space_of(kept));
    }
    CHECK(most < 300'000);  // of 960,000 bytes
    CHECK(space_of(whole) >= all * sizeof(ledger_record));
    const ledger_summary a = ledger_reader::open(kept)->summarize(all + 10), b = ledger_reader::open(whole)->summarize(all + 10);
    check_equal(a, b);
    CHECK(a.folded == 28'672);
    CHECK(a.lost == 10);
    CHECK(a.repeated == 1);
    CHECK(ledger_reader::open(kept)->first_undelivered(0) == all);
    copy_ledger(kept, copy);
    check_equal(ledger_reader::open(copy)->summarize(all + 10), b);
    CHECK(space_of(copy) < 300'000);
}

TEST_CASE("a frame without a mark is not folded, nor what is behind it") {
    scratch_folder folder;
    deliver(file_in(folder), {0, 6000});
    ledger_writer(file_in(folder)).record(6000, 1, false, 1);
    deliver(file_in(folder), {6001, 20'000});
    CHECK(fold_ledger(file_in(folder), 20'000) == fold_step);
    CHECK(ledger_reader::open(file_in(folder))->first_undelivered(0) == 6000);
}

TEST_CASE("a fold that is killed at any step leaves the old account or the new one") {
    scratch_folder folder;
    const std::string file = file_in(folder), backup = (folder.path / "before").string();
    namespace fs = std::filesystem;
    deliver(file, {0, 20'000, 9, 15'000});
    const ledger_summary whole = ledger_reader::open(file)->summarize(20'000);
    CHECK(fold_ledger(file, 8192) == 8192);
    SECTION("before the rename: a half-written account aside") {
        std::ofstream(folded_path(file) + ".tmp") << "half";
        check_equal(ledger_reader::open(file)->summarize(20'000), whole);
    }
    SECTION("behind the rename, before the space is given back") {
        fs::copy_file(file, backup);
        CHECK(fold_ledger(file, 16'384) == 16'384);
        fs::copy_file(backup, file, fs::copy_options::overwrite_existing);  // its records of 8192 to 16383 are still there
        check_equal(ledger_reader::open(file)->summarize(20'000), whole);
    }
    deliver(file, {20'000, 30'000});
    CHECK(fold_ledger(file, 30'000) == 28'672);  // the one after it
    CHECK(space_of(file) < 200'000);
    const ledger_summary later = ledger_reader::open(file)->summarize(20'000);
    CHECK(later.records == 28'672);  // an account has no end but its own
    CHECK(ledger_reader::open(file)->summarize(30'000).repeated == 1);
}

TEST_CASE("an account that is damaged, or another build's, is refused by name and never taken for an empty one") {
    scratch_folder folder;
    deliver(file_in(folder), {0, 5000});
    REQUIRE(fold_ledger(file_in(folder), 5000) == fold_step);
    std::fstream account(folded_path(file_in(folder)), std::ios::in | std::ios::out | std::ios::binary);
    account.seekp(20);
    account.put('x');
    account.close();
    CHECK_THROWS_WITH(ledger_reader::open(file_in(folder))->summarize(5000), test::contains(".folded"));
}

TEST_CASE("a late record of a predecessor that had been stopped changes nobody's hash") {
    scratch_folder folder, calm;
    ledger_writer successor(file_in(folder)), alone(file_in(calm)), zombie(file_in(folder));
    for (ledger_writer* w : {&successor, &alone}) {
        w->record(0, 7, false, 2);
        w->mark_committed(0, 7, false, 2);
    }
    const auto hash = [](const scratch_folder& f) { return ledger_reader::open(file_in(f))->summarize(1).image_hash; };
    SECTION("behind its successor's mark") {
        zombie.record(0, 1234, false, 1);  // of a buffer that holds another frame by now
        CHECK(hash(folder) == hash(calm));
    }
    SECTION("before a mark that the successor makes itself") {
        successor.record(1, 8, false, 2);
        zombie.record(1, 1234, false, 1);
        successor.mark_committed(1, 8, false, 2);
        CHECK(ledger_reader::open(file_in(folder))->read(1, 1)[0].hash == 8);
    }
    SECTION("before a mark that the supervisor makes: then nobody knows the hash, and the ledger says so") {
        successor.record(1, 8, false, 2);
        zombie.record(1, 1234, false, 1);
        CHECK(successor.tell_committed(1, 2));
        const ledger_summary sum = ledger_reader::open(file_in(folder))->summarize(2);
        CHECK(sum.lost == 0);
        CHECK(sum.without_hash == 1);
        CHECK(ledger_reader::open(file_in(folder))->read(1, 1)[0].hash == 0);
    }
}

TEST_CASE("a ledger says what its hashes are hashes of, also behind a mark that the supervisor made, a fold and a copy") {
    scratch_folder folder;
    const std::string file = file_in(folder), copy = (folder.path / "copy.bin").string();
    for (u64 n = 0; n < 5000; ++n) {
        ledger_writer(file).record(n, {n, "blocks.v1"}, false, 1);
        if (n % 2 == 0) ledger_writer(file).tell_committed(n, 1);
        else ledger_writer(file).mark_committed(n, {n, "blocks.v1"}, false, 1);
    }
    CHECK(ledger_reader::open(file)->summarize(5000).hash_names == std::vector<std::string>{"blocks.v1"});
    CHECK(fold_ledger(file, 5000) == fold_step);
    copy_ledger(file, copy);
    for (const std::string& each : {file, copy}) CHECK(ledger_reader::open(each)->summarize(5000).hash_names == std::vector<std::string>{"blocks.v1"});
    CHECK(scratch_folder::names_in(folder.path).size() == 6);  // each with its account and its names
}

TEST_CASE("hashes of two names in one ledger are both told, in folded records, too") {
    scratch_folder folder;
    ledger_writer w(file_in(folder));
    for (u64 n = 0; n < 5000; ++n) {
        const frame_hash hash = n < 100 ? frame_hash(n) : frame_hash(n, "blocks.v1");
        w.record(n, hash, false, 1);
        w.mark_committed(n, hash, false, 1);
    }
    const std::vector<std::string> both{"own", "blocks.v1"};
    CHECK(ledger_reader::open(file_in(folder))->summarize(5000).hash_names == both);
    CHECK(fold_ledger(file_in(folder), 5000) == fold_step);
    CHECK(ledger_reader::open(file_in(folder))->summarize(5000).hash_names == both);
}

TEST_CASE("a ledger of an older build, whose hashes have no name, is refused by its own name") {
    scratch_folder folder;
    deliver(file_in(folder), {0, 5000});
    std::fstream old(file_in(folder), std::ios::in | std::ios::out | std::ios::binary);
    for (const u64 at : {offsetof(ledger_record, recorded_flags), offsetof(ledger_record, flags)}) {
        old.seekp(static_cast<std::streamoff>(7 * sizeof(ledger_record) + at));
        old.write("\0\0\0\0", 4);
    }
    old.close();
    CHECK_THROWS_WITH(ledger_reader::open(file_in(folder))->summarize(5000), test::contains("ledger-display.bin") && test::contains("without a name"));
    CHECK_THROWS_WITH(fold_ledger(file_in(folder), 5000), test::contains("without a name"));
}

TEST_CASE("a hash's name is one line of at most a hundred bytes") {
    scratch_folder folder;
    ledger_writer w(file_in(folder));
    for (const std::string& bad : {std::string(), std::string("two\nlines"), std::string(101, 'x')}) CHECK_THROWS_AS(w.record(0, {1, bad}, false, 1), config_error);
    w.record(0, {1, std::string(100, 'x')}, false, 1);
}
