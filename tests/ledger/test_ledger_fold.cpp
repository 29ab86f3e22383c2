// The ledger's account, folded as it grows, and the names of its hashes.
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/crash_point.hpp"
#include "core/errors.hpp"
#include "ledger/ledger_fold.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/in_child.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;
using namespace carousel::telemetry;

namespace {

std::string file_in(const scratch_folder& folder) { return ledger_path(folder.path.string(), "display"); }

}  // namespace

namespace {

struct frames {
    u64 first = 0, end = 0, tombstone_at = ~u64{0}, twice_at = ~u64{0};
};

void deliver(const std::string& file, const frames& f) {
    ledger_writer writer(file);
    for (u64 n = f.first; n < f.end; ++n) {
        writer.record(n, n * 0x9E37'79B9'7F4A'7C15ULL, n == f.tombstone_at, 1);
        writer.mark_committed(n, n * 0x9E37'79B9'7F4A'7C15ULL, n == f.tombstone_at, 1);
        if (n == f.twice_at) writer.mark_committed(n, n * 0x9E37'79B9'7F4A'7C15ULL, n == f.tombstone_at, 2);
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
    CHECK(folded.tombstones == whole.tombstones);
    CHECK(folded.tombstone_sequences == whole.tombstone_sequences);
    CHECK(folded.image_hash == whole.image_hash);
}

}  // namespace

TEST_CASE("a ledger folded as it grows keeps its size and the result of the whole run") {
    scratch_folder folder;
    const std::string whole = ledger_path(folder.path.string(), "whole"), kept = file_in(folder),
                      copy = (folder.path / "copy.bin").string();
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
    CHECK(most < 400'000);  // of 960,000 bytes
    CHECK(space_of(whole) >= all * sizeof(ledger_record));
    const ledger_summary a = ledger_reader::open(kept)->summarize(all + 10),
                         b = ledger_reader::open(whole)->summarize(all + 10);
    check_equal(a, b);
    CHECK(a.folded == 28'672);
    CHECK(a.lost == 10);
    CHECK(a.repeated == 1);
    CHECK(ledger_reader::open(kept)->first_undelivered(0) == all);
    copy_ledger(kept, copy);
    check_equal(ledger_reader::open(copy)->summarize(all + 10), b);
    CHECK(space_of(copy) < 300'000);
}

TEST_CASE("a frame without a mark is not folded, nor are later ones") {
    scratch_folder folder;
    deliver(file_in(folder), {0, 6000});
    ledger_writer(file_in(folder)).record(6000, 1, false, 1);
    deliver(file_in(folder), {6001, 20'000});
    CHECK(fold_ledger(file_in(folder), 20'000) == fold_step);
    CHECK(ledger_reader::open(file_in(folder))->first_undelivered(0) == 6000);
}

TEST_CASE("a ledger that begins after a lost run's frames counts them neither lost nor its own") {
    scratch_folder folder;
    const std::string file = file_in(folder);
    begin_ledger(file, 1000);
    CHECK(ledger_reader::open(file)->first_undelivered(0) == 1000);
    CHECK(ledger_reader::open(file)->summarize(1003).lost == 3);
    deliver(file, {1000, 1002});
    const ledger_summary sum = ledger_reader::open(file)->summarize(1003);
    CHECK(sum.records == 2);
    CHECK(sum.lost == 1);
    CHECK(sum.folded == 1000);
    CHECK(ledger_reader::open(file)->first_undelivered(0) == 1002);
    deliver(file, {1002, 20'000});
    CHECK(fold_ledger(file, 12'288) >= 12'288);  // this frame is folded like any other
    CHECK(ledger_reader::open(file)->summarize(20'000).lost == 0);
    CHECK(ledger_reader::open(file)->summarize(20'000).records == 19'000);
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
        fs::copy_file(backup, file,
                      fs::copy_options::overwrite_existing);  // its records of 8192 to 16383 are still there
        check_equal(ledger_reader::open(file)->summarize(20'000), whole);
    }
    deliver(file, {20'000, 30'000});
    CHECK(fold_ledger(file, 30'000) == 28'672);  // the supervisor after it
    CHECK(space_of(file) < 200'000);
    const ledger_summary later = ledger_reader::open(file)->summarize(20'000);
    CHECK(later.records == 28'672);  // the account determines its own end
    CHECK(ledger_reader::open(file)->summarize(30'000).repeated == 1);
}

TEST_CASE("a supervisor killed at any step of a fold leaves every record in an account or the file") {
    scratch_folder folder;
    const std::string file = file_in(folder);
    deliver(file, {0, 20'000, 9, 15'000});
    REQUIRE(fold_ledger(file, 8192) == 8192);
    const ledger_summary whole = ledger_reader::open(file)->summarize(20'000);
    const crash_point at = GENERATE(crash_point::account_written, crash_point::account_saved);
    CAPTURE(name_of(at));
    const test::ending killed = test::in_child([&] {
        set_crash_hook([at](crash_point now) {
            if (now == at) ::kill(::getpid(), SIGKILL);
        });
        (void)fold_ledger(file, 16'384);
    });
    REQUIRE(killed == test::ending{SIGKILL, -1});
    CHECK(ledger_reader::open(file)->first_undelivered(0) == 20'000);
    check_equal(ledger_reader::open(file)->summarize(20'000), whole);
    CHECK(fold_ledger(file, 16'384) == 16'384);  // by the next supervisor
    check_equal(ledger_reader::open(file)->summarize(20'000), whole);
    deliver(file, {20'000, 30'000});
    CHECK(fold_ledger(file, 28'672) == 28'672);
    CHECK(space_of(file) < 200'000);
}

TEST_CASE("a damaged account, or another build's, is refused by name and never read as empty") {
    scratch_folder folder;
    deliver(file_in(folder), {0, 5000});
    REQUIRE(fold_ledger(file_in(folder), 5000) == fold_step);
    std::fstream account(folded_path(file_in(folder)), std::ios::in | std::ios::out | std::ios::binary);
    account.seekp(20);
    account.put('x');
    account.close();
    CHECK_THROWS_WITH(ledger_reader::open(file_in(folder))->summarize(5000), test::contains(".folded"));
}

TEST_CASE("a late record of a stopped predecessor changes no hash") {
    scratch_folder folder, calm;
    ledger_writer successor(file_in(folder)), alone(file_in(calm)), zombie(file_in(folder));
    for (ledger_writer* w : {&successor, &alone}) {
        w->record(0, 7, false, 2);
        w->mark_committed(0, 7, false, 2);
    }
    const auto hash = [](const scratch_folder& f) {
        return ledger_reader::open(file_in(f))->summarize(1).image_hash;
    };
    SECTION("behind its successor's mark") {
        zombie.record(0, 1234, false, 1);  // from a buffer that holds another frame by now
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
        CHECK(successor.mark_committed_by_supervisor(1, 2));
        const ledger_summary sum = ledger_reader::open(file_in(folder))->summarize(2);
        CHECK(sum.lost == 0);
        CHECK(sum.without_hash == 1);
        CHECK(ledger_reader::open(file_in(folder))->read(1, 1)[0].hash == 0);
    }
}

TEST_CASE("a ledger names its hashes, also after a supervisor's mark, a fold and a copy") {
    scratch_folder folder;
    const std::string file = file_in(folder), copy = (folder.path / "copy.bin").string();
    for (u64 n = 0; n < 5000; ++n) {
        ledger_writer(file).record(n, {n, "blocks.v1"}, false, 1);
        if (n % 2 == 0)
            ledger_writer(file).mark_committed_by_supervisor(n, 1);
        else
            ledger_writer(file).mark_committed(n, {n, "blocks.v1"}, false, 1);
    }
    CHECK(ledger_reader::open(file)->summarize(5000).hash_names == std::vector<std::string>{"blocks.v1"});
    CHECK(fold_ledger(file, 5000) == fold_step);
    copy_ledger(file, copy);
    for (const std::string& each : {file, copy})
        CHECK(ledger_reader::open(each)->summarize(5000).hash_names == std::vector<std::string>{"blocks.v1"});
    CHECK(scratch_folder::names_in(folder.path).size() == 6);  // each with its account and its names
}

TEST_CASE("hashes of two names in one ledger are both reported, also in folded records") {
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
    CHECK_THROWS_WITH(ledger_reader::open(file_in(folder))->summarize(5000),
                      test::contains("ledger-display.bin") && test::contains("without a name"));
    CHECK_THROWS_WITH(fold_ledger(file_in(folder), 5000), test::contains("without a name"));
}

TEST_CASE("a hash's name is one line of at most a hundred bytes") {
    scratch_folder folder;
    ledger_writer w(file_in(folder));
    for (const std::string& bad : {std::string(), std::string("two\nlines"), std::string(101, 'x')})
        CHECK_THROWS_AS(w.record(0, {1, bad}, false, 1), config_error);
    w.record(0, {1, std::string(100, 'x')}, false, 1);
}
