// The table of metrics and its exposition, without a run: a view that the test has filled.
#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "control/seat_counters.hpp"
#include "core/json.hpp"
#include "ledger/ledger.hpp"
#include "telemetry/histogram.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"
#include "viewer/web/metric_table.hpp"
#include "viewer/web/status.hpp"

using namespace carousel;
using namespace carousel::viewer;

namespace {

web::view one_stage() {
    web::view v;
    v.phase = web::run_phase::running;
    v.run.name = "a\"b";
    telemetry::stage_view sink;
    sink.name = "sink";
    sink.seats = 1;
    sink.latency[telemetry::bucket_of(1'500'000)] = 3;
    sink.latency[telemetry::bucket_of(50'000'000)] = 1;
    sink.latency[0] = 2;
    v.snap.stages.push_back(sink);
    v.snap.seats.resize(1);
    v.snap.seats[0].stage = 0;
    return v;
}

std::vector<std::string> lines_of(const std::string& text, const std::string& begin) {
    std::vector<std::string> found;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);)
        if (line.starts_with(begin)) found.push_back(line);
    return found;
}

bool has_line(const std::string& text, const std::string& line) {
    return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

}  // namespace

TEST_CASE("each metric has a unique name, a type and unit that fit it, labels and one sentence") {
    std::set<std::string> names;
    for (const web::metric_row& row : web::metric_rows()) {
        const std::string name = row.name, unit = row.unit, help = row.help;
        CAPTURE(name);
        CHECK(names.insert(name).second);
        CHECK(std::regex_match(name, std::regex("carousel_[a-z_]+[a-z]")));
        CHECK(name.ends_with("_total") == (row.type == web::metric_type::counter));
        CHECK((unit.empty() || name.ends_with("_" + unit) || name.ends_with("_" + unit + "_total")));
        CHECK(std::regex_match(row.labels, std::regex("([a-z_]+(, [a-z_]+)*)?")));
        CHECK(help.ends_with("."));
        CHECK(help.find('\n') == std::string::npos);
        CHECK(help.find('|') == std::string::npos);
        CHECK(row.collect != nullptr);
    }
}

TEST_CASE("samples have the labels of the table, in its order") {
    web::view v = one_stage();
    v.led = true;
    v.last_known.emplace();
    seat_report& r = v.last_known->seats.emplace_back();
    r.name = "sink";
    r.instance = 0;
    r.device = "cuda:0";
    r.standby = "ready";
    r.counters.emplace().exits["signal"] = 2;
    v.report = v.last_known->seats;
    v.files.sinks["sink"] = {1, 2};
    for (const web::metric_row& row : web::metric_rows()) {
        std::string text;
        web::metric_samples samples(text, "p", row.name);
        row.collect(v, 0, samples);
        std::string labels = row.labels;
        for (std::size_t at = 0; (at = labels.find(", ", at)) != std::string::npos;)
            labels.replace(at, 2, R"(="[^"]*",)");
        if (!labels.empty()) labels = "," + labels + R"(="[^"]*")";
        if (row.type == web::metric_type::histogram) labels += R"((,le="[^"]+")?)";
        const std::regex sample(std::string(row.name) + R"((_bucket|_sum|_count)?\{pipeline="p")" + labels +
                                R"(\} [-+.e0-9]+)");
        std::istringstream in(text);
        for (std::string line; std::getline(in, line);) {
            CAPTURE(line);
            CHECK(std::regex_match(line, sample));
        }
    }
}

TEST_CASE("without a run there are only the program's version and that no run is up") {
    web::view v;
    v.run.name = "demo";
    const std::string text = web::metrics_text(v, 0);
    CHECK(has_line(text, R"(carousel_up{pipeline="demo"} 0)"));
    CHECK(lines_of(text, "# TYPE").size() == 2);
}

TEST_CASE("a histogram has cumulative buckets, and its count and sum are those of all samples") {
    const std::string text = web::metrics_text(one_stage(), 0);
    const std::string name = "carousel_stage_latency_seconds", labels = R"({pipeline="a\"b",stage="sink")";
    const std::vector<std::string> buckets = lines_of(text, name + "_bucket" + labels);
    REQUIRE(buckets.size() == 20);
    f64 before = 0;
    for (const std::string& line : buckets) {
        const f64 count = std::atof(line.substr(line.rfind(' ')).c_str());
        CHECK(count >= before);
        before = count;
    }
    CHECK(has_line(text, name + "_bucket" + labels + R"(,le="0.000131072"} 2)"));
    CHECK(has_line(text, name + "_bucket" + labels + R"(,le="0.001048576"} 2)"));  // 1.5 ms is above
    CHECK(has_line(text, name + "_bucket" + labels + R"(,le="0.002097152"} 5)"));
    CHECK(has_line(text, name + "_bucket" + labels + R"(,le="0.067108864"} 6)"));
    CHECK(has_line(text, name + "_bucket" + labels + R"(,le="+Inf"} 6)"));
    CHECK(has_line(text, name + "_count" + labels + "} 6"));
    const std::vector<std::string> sum = lines_of(text, name + "_sum");
    REQUIRE(sum.size() == 1);
    CHECK(std::atof(sum[0].substr(sum[0].rfind(' ')).c_str()) == Approx(0.0545).epsilon(1.0 / 16));
}

TEST_CASE("the supervisor's counters have no samples until a supervisor has reported them") {
    web::view v = one_stage();
    CHECK(lines_of(web::metrics_text(v, 0), "carousel_stage_restarts_total").empty());
    CHECK(lines_of(web::metrics_text(v, 0), "carousel_takeover_duration_seconds").empty());
    v.last_known.emplace();
    v.last_known->whole.adoptions = 2;
    seat_report& r = v.last_known->seats.emplace_back();
    r.name = "sink";
    r.instance = 1;
    r.restarts = 4;
    r.memory_bytes = 5;
    run::seat_counters& c = r.counters.emplace();
    c.exits = {{"signal", 3}, {"deadline", 1}};
    c.takeovers.add(0.2);
    c.takeovers.add(100);
    c.cpu_ns = 1'500'000'000;
    v.led = false;  // the supervisor has died since
    const std::string text = web::metrics_text(v, 0),
                      one = R"({pipeline="a\"b",stage="sink",stage_instance="1")";
    CHECK(has_line(text, R"(carousel_supervisor_adoptions_total{pipeline="a\"b"} 2)"));
    CHECK(has_line(text, "carousel_stage_restarts_total" + one + "} 4"));
    CHECK(has_line(text, "carousel_stage_exits_total" + one + R"(,reason="signal"} 3)"));
    CHECK(has_line(text, "carousel_stage_exits_total" + one + R"(,reason="gpu_fault"} 0)"));
    CHECK(has_line(text, "carousel_stage_cpu_seconds_total" + one + "} 1.5"));
    CHECK(has_line(text,
                   "carousel_takeover_duration_seconds_bucket" + one + R"(,standby="false",le="0.1"} 0)"));
    CHECK(has_line(text,
                   "carousel_takeover_duration_seconds_bucket" + one + R"(,standby="false",le="0.25"} 1)"));
    CHECK(
        has_line(text, "carousel_takeover_duration_seconds_bucket" + one + R"(,standby="false",le="60"} 1)"));
    CHECK(has_line(text, "carousel_takeover_duration_seconds_count" + one + R"(,standby="false"} 2)"));
    CHECK(lines_of(text, "carousel_stage_memory_bytes").empty());  // a value of the present is not known
}

TEST_CASE("counters of a seat survive their JSON, and a damaged histogram stays usable") {
    run::seat_counters c;
    c.exits = {{"signal", 3}};
    c.takeovers.add(0.03);
    c.abandoned = 2;
    c.cpu_ns = 7;
    CHECK(nlohmann::json(c).get<run::seat_counters>() == c);
    CHECK(nlohmann::json::object().get<run::seat_counters>() == run::seat_counters());
    auto damaged = nlohmann::json::parse(R"({"counts": [1], "sum_s": 0.001})").get<run::duration_counts>();
    damaged.add(1000);
    CHECK(damaged.total() == 2);
}

TEST_CASE("lost and repeated frames come from the ledger, and a loss needs two readings of one block") {
    const scratch_folder folder;
    const std::string run = folder.path.string();
    {
        telemetry::ledger_writer ledger(telemetry::ledger_path(run, "sink"));
        for (const u64 frame : {0U, 1U, 3U, 3U}) {
            ledger.record(frame, std::nullopt, false, telemetry::ledger_committer(0, 1));
            ledger.mark_committed(frame, std::nullopt, false, telemetry::ledger_committer(0, 1));
        }
    }
    std::ofstream(run + "/recorded") << "12345";
    std::ofstream(run + "/recording-tape") << nlohmann::json{{"id", "1"}, {"path", run + "/recorded"}}.dump();
    web::run_files files;
    files.read(run, {{"sink", 4}, {"no ledger", 4}}, 77);
    CHECK(files.sinks.empty());
    CHECK(files.recorded_bytes.at("tape") == 5);
    files.read(run, {{"sink", 4}}, 78);  // the block was rebuilt
    CHECK(files.sinks.empty());
    files.read(run, {{"sink", 4}}, 78);
    REQUIRE(files.sinks.size() == 1);
    CHECK(files.sinks.at("sink").lost == 1);
    CHECK(files.sinks.at("sink").repeated == 1);
}

TEST_CASE("the help of exits names each reason") {
    for (const web::metric_row& row : web::metric_rows())
        if (row.name == std::string("carousel_stage_exits_total"))
            for (const std::string& reason : enum_names<run::exit_reason>())
                CHECK(std::string(row.help).find(" " + reason) != std::string::npos);
}

TEST_CASE("the reference of metrics in the documents equals the table") {
    std::ifstream in(CAROUSEL_METRIC_REFERENCE);
    std::ostringstream document;
    document << in.rdbuf();
    INFO("pipelines/docs/metrics.md ends with what `carousel-web --metric-reference` prints");
    CHECK(document.str().ends_with(web::metric_reference()));
}
