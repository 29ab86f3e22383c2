// The cost of deaths, recorded across deaths of supervisors.
#include <fstream>

#include "core/json.hpp"
#include "supervisor/stores/run_log.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;
using namespace carousel::supervisor;

namespace {
constexpr u64 ms = 1'000'000;
}

TEST_CASE("a death's steps form one account, in any order") {
    recovery_log log;
    log.report({"fragment", 12, 3, "", 100 * ms, 101 * ms, 0, 0, false});
    log.report({"vertex", 11, 2, "", 0, 50 * ms, 0, 0, false});
    log.report({"fragment", 12, 3, "", 0, 0, 0, 120 * ms, true});
    log.report({"fragment", 12, 3, "signal 9 (SIGKILL)", 0, 0, 0, 0, false});
    log.report({"fragment", 12, 3, "", 0, 0, 161 * ms, 0, false});
    REQUIRE(log.all().size() == 2);
    CHECK(log.all()[0].how == "signal 9 (SIGKILL)");
    CHECK(log.all()[0].standby);
    CHECK(detections_ms(log.all()) == std::vector<f64>{1});
    CHECK(fences_ms(log.all()) == std::vector<f64>{60});
    CHECK(takeovers_ms(log.all(), false) == std::vector<f64>{20});
    CHECK(takeovers_ms(log.all(), true) == std::vector<f64>{20});
}

TEST_CASE("a second supervisor continues the account, and its view replaces no earlier one") {
    const scratch_folder folder;
    const std::string file = (folder.path / "recoveries.jsonl").string();
    {
        recovery_log first(file);
        first.report({"vertex", 11, 2, "", 0, 50 * ms, 0, 0, false});
    }
    {
        std::ofstream half(file, std::ios::app);
        half << "{\"seat\":\"fragm";  // a disk that was full
    }
    {
        std::ofstream(file, std::ios::app) << "\n[1]\n{\"seat\":7}\n";
        recovery_log second(file);
        REQUIRE(second.all().size() == 1);
        second.report({"vertex", 11, 2, "", 0, 900 * ms, 0, 0, false});
        second.report({"vertex", 11, 2, "", 0, 0, 950 * ms, 0, false});
    }
    const recovery_log third(file);
    REQUIRE(third.all().size() == 1);
    CHECK(third.all()[0].seen_ns == 50 * ms);
    CHECK(third.all()[0].fenced_ns == 950 * ms);
    const recovery back = recovery_from(recoveries_json(third.all())[0]);
    CHECK(back.seat == "vertex");
    CHECK(back.fenced_ns == 950 * ms);
}

TEST_CASE("the part of an MPS domain's end of a death is kept in any order across takeovers") {
    const scratch_folder folder;
    const std::string file = (folder.path / "recoveries.jsonl").string();
    {
        recovery_log log(file);
        recovery in_domain{"vertex", 11, 2, "", 0, 0, 0, 0, false};
        in_domain.domain_end = 3;
        log.report(in_domain);
        log.report({"vertex", 11, 2, "exit code 3", 0, 50 * ms, 0, 0, false});
        in_domain.shared = true;
        log.report(in_domain);
        log.report({"fragment", 12, 3, "signal 9 (SIGKILL)", 0, 60 * ms, 0, 0, false});
    }
    const recovery_log again(file);
    REQUIRE(again.all().size() == 2);
    const nlohmann::json written = recoveries_json(again.all());
    CHECK(written[0]["domain_end"] == 3);
    CHECK(written[0]["shared"] == true);
    CHECK(written[0]["how"] == "exit code 3");
    CHECK_FALSE(written[1].contains("domain_end"));
    CHECK_FALSE(written[1].contains("shared"));
}

TEST_CASE("a takeover's time is reported in parts, also by the next supervisor, not for standbys") {
    const scratch_folder folder;
    const std::string file = (folder.path / "recoveries.jsonl").string();
    const auto back = [](const char* seat, i32 pid, u64 followed, bool standby) {
        recovery r{seat, pid, 1, "", 0, 0, 0, followed, standby};
        r.started_ns = 105 * ms, r.attached_ns = 125 * ms, r.ready_ns = 325 * ms;
        return r;
    };
    {
        recovery_log log(file);
        log.report({"vertex", 11, 1, "", 0, 100 * ms, 0, 0, false});
        log.report(back("vertex", 11, 335 * ms, false));
        log.report(back("fragment", 12, 101 * ms, true));
        recovery r{"vertex", 11, 1};
        r.domain_end = 1;
        log.report(r);
        recovery other{"display", 13, 1, "", 0, 98 * ms, 0, 340 * ms, false};
        other.domain_end = 1;
        log.report(other);
    }
    const recovery_log again(file);
    const takeover_parts parts = parts_of_takeovers_ms(again.all());
    CHECK(parts.to_start == std::vector<f64>{5});
    CHECK(parts.to_attach == std::vector<f64>{20});
    CHECK(parts.to_ready == std::vector<f64>{200});
    CHECK(parts.to_frame == std::vector<f64>{10});
    CHECK(domains_back_ms(again.all()) == std::vector<f64>{242});
}

TEST_CASE("an account that can't be kept on disk is kept in memory") {
    recovery_log log("/nonexistent/folder/recoveries.jsonl");
    log.report({"vertex", 11, 2, "", 0, 50 * ms, 60 * ms, 0, false});
    CHECK(fences_ms(log.all()) == std::vector<f64>{10});
}

TEST_CASE("a run of months keeps the newest deaths and the number of others, in memory and file") {
    const scratch_folder folder;
    const std::string file = (folder.path / "recoveries.jsonl").string();
    constexpr i32 deaths = 20'000;
    constexpr std::size_t keep = 100;
    const auto check = [&](const recovery_log& log) {
        REQUIRE(log.all().size() >= keep);
        CHECK(log.all().size() <= keep + keep / 4);
        CHECK(log.all().size() + log.dropped() == deaths);
        CHECK(log.all().back().pid == deaths);
        CHECK(log.all().back().fenced_ns == 9 * ms);
        CHECK(log.all().front().pid == deaths - static_cast<i32>(log.all().size()) + 1);
    };
    {
        recovery_log log(file, keep);
        u64 most = 0;
        for (i32 k = 1; k <= deaths; ++k) {
            log.report({"fragment", k, 3, "", 0, 5 * ms, 0, 0, false});
            log.report({"fragment", k, 3, "", 0, 0, 9 * ms, 0, false});
            if (k % 50 == 0) most = std::max<u64>(most, std::filesystem::file_size(file));
        }
        check(log);
        CHECK(most < 100'000);  // 40,000 lines of about 50 bytes were written
    }
    check(recovery_log(file, keep));  // the supervisor after it
    CHECK(folder.names() == std::vector<std::string>{"recoveries.jsonl"});
}
