// Which frames a sink counts for, and how its ledger interprets them.
#include <filesystem>

#include "core/errors.hpp"
#include "ledger/ledger.hpp"
#include "ledger/ledger_fold.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;
using namespace carousel::telemetry;

namespace {

struct sink_files {
    scratch_folder folder;
    std::string directory = folder.path.string();

    void deliver(const std::string& sink, u64 first, u64 end) const {
        ledger_writer writer(ledger_path(directory, sink));
        for (u64 n = first; n < end; ++n) {
            writer.record(n, n, false, 1);
            writer.mark_committed(n, n, false, 1);
        }
    }
    template <typename F>
    void claim(const std::string& sink, F&& change) const {
        const std::string ledger = ledger_path(directory, sink);
        frame_claims claims = frame_claims::load(ledger);
        change(claims);
        claims.save(ledger);
    }
    void suspend(const std::string& sink, u64 first) const {
        claim(sink, [&](frame_claims& c) { c.suspend(first); });
    }
    void resume(const std::string& sink, u64 first) const {
        claim(sink, [&](frame_claims& c) { c.resume(first); });
    }
    [[nodiscard]] undelivered_frame undelivered(u64 from = 0) const {
        return find_undelivered(directory, {{"a", from}, {"b", from}}, from);
    }
};

}  // namespace

TEST_CASE("a sink with a suspended claim is not waited for until its resumption") {
    const sink_files f;
    f.deliver("a", 0, 20);
    f.deliver("b", 0, 5);
    CHECK(f.undelivered().frame == 5);
    CHECK(f.undelivered().sink == "b");
    f.suspend("b", 5);
    CHECK(f.undelivered().frame == 20);
    CHECK(f.undelivered().sink == "a");
    f.resume("b", 12);
    CHECK(f.undelivered().frame == 12);
    CHECK(f.undelivered().sink == "b");
    f.deliver("b", 12, 30);
    CHECK(f.undelivered().frame == 20);
    f.suspend("b", 30);
    f.suspend("a", 20);
    CHECK(f.undelivered().frame == no_frame);
}

TEST_CASE("a sink without a ledger is waited for, unless it has no claim") {
    const sink_files f;
    f.deliver("a", 0, 20);
    CHECK(f.undelivered(7).frame == 7);
    CHECK(f.undelivered(7).sink == "b");
    f.suspend("b", 0);
    CHECK(f.undelivered(7).frame == 20);
}

TEST_CASE("frames without a claim are neither lost nor unfolded, and are counted as passed") {
    const sink_files f;
    const std::string ledger = ledger_path(f.directory, "b");
    constexpr u64 all = 3 * fold_step;
    f.deliver("b", 0, 100);
    f.suspend("b", 100);
    f.resume("b", fold_step + 10);
    f.deliver("b", fold_step - 1, all);  // a frame that was in a ring and had not passed yet
    const u64 passed = fold_step - 1 - 100;
    const auto check = [&] {
        const ledger_summary sum = ledger_reader::open(ledger)->summarize(all + 3);
        CHECK(sum.lost == 3);
        CHECK(sum.passed == passed);
        CHECK(sum.records == all - passed);
    };
    check();
    CHECK(ledger_reader::open(ledger)->first_undelivered(0) == all);
    CHECK(fold_ledger(ledger, all) == all);
    check();
    const std::string copy = (f.folder.path / "copy.bin").string();
    copy_ledger(ledger, copy);
    CHECK(ledger_reader::open(copy)->summarize(all).passed == passed);
}

TEST_CASE("a record of a frame that passed the sink before its commit counts only as passed") {
    const sink_files f;
    const std::string ledger = ledger_path(f.directory, "b");
    f.suspend("b", 100);
    f.deliver("b", 0, 100);
    ledger_writer(ledger).record(100, 0, true, 1);
    for (const bool folded : {false, true}) {
        CAPTURE(folded);
        const ledger_summary sum = ledger_reader::open(ledger)->summarize(fold_step);
        CHECK(sum.records == 100);
        CHECK(sum.passed == fold_step - 100);
        CHECK(sum.tombstones == 0);
        CHECK(sum.unmarked == 0);
        fold_ledger(ledger, fold_step);
    }
    CHECK(frame_claims::load(ledger).unclaimed_below(fold_step) == fold_step - 100);
    CHECK(frame_claims::load(ledger).unclaimed_below(50) == 0);
}

TEST_CASE("one call folds a part of the frames that have passed a sink by, and the next one continues") {
    const sink_files f;
    const std::string ledger = ledger_path(f.directory, "b");
    constexpr u64 all = 200 * fold_step;
    f.deliver("b", 0, 1);
    f.suspend("b", 1);
    const u64 first = fold_ledger(ledger, all);
    CHECK(first > 0);
    CHECK(first < all);
    u64 end = first;
    while (end < all) {
        const u64 next = fold_ledger(ledger, all);
        REQUIRE(next > end);
        end = next;
    }
    CHECK(end == all);
    CHECK(ledger_reader::open(ledger)->summarize(all).passed == all - 1);
}

TEST_CASE("a frame that is lost within a claim stays lost, for any frames that pass later") {
    const sink_files f;
    f.deliver("b", 0, 3);
    f.deliver("b", 4, 9);
    f.suspend("b", 9);
    CHECK(ledger_reader::open(ledger_path(f.directory, "b"))->first_undelivered(0) == 3);
    CHECK(ledger_reader::open(ledger_path(f.directory, "b"))->summarize(20).lost == 1);
}

TEST_CASE("claims may be changed twice, and frames that are produced again are claimed again") {
    const sink_files f;
    f.suspend("b", 10);
    f.suspend("b", 15);
    f.resume("b", 20);
    f.resume("b", 30);
    const std::string ledger = ledger_path(f.directory, "b");
    const auto first_from = [&](u64 frame) { return frame_claims::load(ledger).first_from(frame); };
    CHECK(first_from(9) == 9);
    CHECK(first_from(10) == 20);
    CHECK(first_from(20) == 20);
    f.suspend("b", 18);  // joins the preceding range
    CHECK(first_from(10) == no_frame);
    f.claim("b", [](frame_claims& c) { c.produced_again_from(5); });
    CHECK(first_from(5) == no_frame);  // the sink is still left out
    f.resume("b", 40);
    f.claim("b", [](frame_claims& c) { c.produced_again_from(25); });
    CHECK(first_from(5) == 25);
    f.claim("b", [](frame_claims& c) { c.produced_again_from(0); });
    CHECK(first_from(0) == 0);
    CHECK_FALSE(std::filesystem::exists(claims_path(ledger)));
}

TEST_CASE("a sink of each third frame has a claim on those, also after a suspension and in a fold") {
    const sink_files f;
    f.claim("b", [](frame_claims& c) { c.take_every(3); });
    const std::string ledger = ledger_path(f.directory, "b");
    const auto claims = [&] { return frame_claims::load(ledger); };
    CHECK(claims().first_from(0) == 0);
    CHECK(claims().first_from(1) == 3);
    CHECK(claims().includes(6));
    CHECK_FALSE(claims().includes(7));
    CHECK(claims().unclaimed_below(7) == 4);  // 1, 2, 4, 5
    f.suspend("b", 4);
    CHECK(claims().first_from(4) == no_frame);
    f.resume("b", 10);
    CHECK(claims().first_from(4) == 12);
    CHECK(claims().unclaimed_below(13) == 10);  // all except 0, 3 and 12
    f.claim("b", [](frame_claims& c) { c.produced_again_from(0); });
    CHECK(claims().first_from(4) == 6);
    ledger_writer writer(ledger);
    for (u64 n = 0; n < 3 * fold_step; n += 3) {
        writer.record(n, n, false, 1);
        writer.mark_committed(n, n, false, 1);
    }
    CHECK(ledger_reader::open(ledger)->first_undelivered(0) == 3 * fold_step);
    CHECK(fold_ledger(ledger, 2 * fold_step) == 2 * fold_step);
    const ledger_summary sum = ledger_reader::open(ledger)->summarize(3 * fold_step + 4);
    CHECK(sum.lost == 2);  // 3 * fold_step and the multiple after it
    CHECK(sum.records + sum.lost + sum.passed == 3 * fold_step + 4);
}

TEST_CASE("claims that are not ranges are refused by name") {
    const sink_files f;
    for (const char* text :
         {"7\n", "x 9\n", "9 7\n", "3 -\n9 12\n", "5 9\n8 12\n", "every 0\n", "5 9\nevery 3\n"}) {
        (void)f.folder.write("ledger-b.bin.unclaimed", text);
        CHECK_THROWS_WITH(frame_claims::load(ledger_path(f.directory, "b")),
                          test::contains("ledger-b.bin.unclaimed"));
    }
}
