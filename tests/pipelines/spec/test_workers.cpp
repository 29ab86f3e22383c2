// Instances of one stage on two hosts: `host = ["", "x"]`, and what the plan makes of it.

#include "spec/hosts.hpp"

#include "tests/pipelines/spec/parts.hpp"
#include "tests/pipelines/spec/pipeline_support.hpp"

using namespace carousel;
using namespace carousel::test;

namespace {

const std::string two_hosts =
    "[hosts.x]\naddress = \"10.0.0.2\"\n[hosts.me]\naddress = \"10.0.0.1\"\nport = 50000\nlauncher = "
    "\"here\"\n";

std::string workers(const std::string& hosts, const std::string& more = "instances = 3") {
    return stage("a", "") + stage("b", "\"a\"", "host = " + hosts + "\n" + more) + stage("c", "\"b\"");
}

supervisor::pipeline parsed_workers(const std::string& text) {
    return supervisor::parse_pipeline(text + two_hosts, "p.toml");
}

}  // namespace

TEST_CASE("instances on another host are one seat here, and a run of their own there") {
    const auto p = parsed_workers(workers("[\"\", \"x\", \"x\"]"));
    const auto all = described(p);
    CHECK(p.is_spread());
    CHECK(supervisor::crossings_of(p).empty());
    CHECK(supervisor::only_helps(p, "x"));
    const auto works = supervisor::remote_works_of(p);
    REQUIRE(works.size() == 1);
    CHECK(works[0].instances == 2);
    CHECK(works[0].port == 47101);
    CHECK(works[0].back_port == 50001 + supervisor::ports_per_link);

    const auto coordinator = supervisor::part_of(p, "", all, "/t");
    CHECK(names(coordinator) == std::vector<std::string>{"a", "b", "c"});
    const auto& here = *coordinator.find("b");
    CHECK(here.instances == 2);
    REQUIRE(here.remote);
    CHECK_FALSE(here.is_remote(0));
    CHECK(here.is_remote(1));
    CHECK(here.in_flight == 3U);
    CHECK(here.remote->run == "carousel-remote");
    CHECK(here.remote->settings["address"] == "10.0.0.2");
    CHECK(here.remote->settings["port"] == 47101);
    CHECK(here.remote->settings["back_address"] == "10.0.0.1");
    CHECK(here.remote->settings["back_port"] == works[0].back_port);
    CHECK(here.remote->settings["format"] == "{\"type\":\"of b\"}");
    CHECK(here.remote->settings["give_back_ms"] == 5000);

    const auto there = supervisor::part_of(p, "x", all, "/t");
    CHECK(there.name == "p.x");
    CHECK(names(there) == std::vector<std::string>{"b-work", "b", "b-done"});
    CHECK(there.find("b")->instances == 2);
    CHECK_FALSE(there.find("b")->remote);
    CHECK(there.find("b")->inputs == std::vector<std::string>{"b-work"});
    CHECK(there.find("b-work")->settings["format"] == "{\"type\":\"of a\"}");
    CHECK(there.find("b-work")->settings["work"] == true);
    CHECK(there.find("b-done")->settings["work"] == true);
    CHECK(there.find("b-done")->settings["port"] == works[0].back_port);
    CHECK(supervisor::leading_hosts(p) == std::vector<std::string>{""});
}

TEST_CASE("a list of hosts is assigned to the instances in turn, and a single host to all") {
    CHECK(supervisor::remote_works_of(parsed_workers(workers("[\"me\", \"x\"]", "instances = 5")))[0]
              .instances == 2);
    CHECK(parsed_workers(workers("[\"x\", \"x\"]")).find("b")->host == "x");
    CHECK_FALSE(parsed_workers(workers("[\"\", \"me\"]")).is_spread());
}

TEST_CASE("stages that can't run on two hosts are refused at their line") {
    const std::string list = "[\"\", \"x\"]";
    const auto refusal_with = [&](const std::string& text) { return refusal(text + two_hosts); };
    CHECK(refusal_with(workers(list)).empty());
    CHECK_THAT(refusal_with(workers("[\"\", \"y\"]")),
               contains("no host \"y\"; expected a section [hosts.y]"));
    CHECK_THAT(refusal_with(workers("[]")), contains("a list of hosts"));
    CHECK_THAT(refusal_with(workers(list, "instances = 1")), contains("2 hosts for 1 instances"));
    CHECK_THAT(refusal_with(workers("[\"\", \"x\", \"z\"]") + "[hosts.z]\naddress = \"10.0.0.3\"\n"),
               contains("instances on x and z: expected instances here (\"me\") and on one other host"));
    CHECK_THAT(refusal_with(workers(list, "instances = 2\nstandby = true")), contains("set standby = false"));
    CHECK_THAT(refusal_with(workers(list, "instances = 2\nrestart = \"no\"")),
               contains("needs restart = \"always\""));
    CHECK_THAT(refusal_with(workers(list, "instances = 2\nprefix = \"gdb\"")),
               contains("can't have a prefix"));
    CHECK_THAT(refusal_with(workers(list, "instances = 2\ndevice = [\"cuda:0\", \"cuda:1\"]")),
               contains("can have only one device per host"));
    CHECK_THAT(refusal_with(workers(list, "instances = 2\nsampled = [\"a\"]")),
               contains("can't have sampled inputs"));
    CHECK_THAT(refusal_with(stage("a", "") + stage("b", "\"a\"", "host = " + list + "\ninstances = 2")),
               contains("results are sent back"));
    CHECK_THAT(
        refusal_with(stage("a", "") + stage("d", "") +
                     stage("b", "\"a\", \"d\"", "host = " + list + "\ninstances = 2") + stage("c", "\"b\"")),
        contains("must read the first output of exactly one stage"));
    CHECK_THAT(refusal_with(workers(list) + stage("d", "\"b\"", "host = \"x\"")),
               contains("\"d\" is also there: a host with instances of a stage can have no other stage"));
    CHECK_THAT(refusal_with(stage("a", "") + stage("b", "\"a\"", "host = " + list + "\ninstances = 2") +
                            stage("c", "\"b\"", "host = " + list + "\ninstances = 2") + stage("d", "\"c\"")),
               contains("and \"c\" is also there"));
    CHECK_THAT(refusal_with(workers(list) + stage("b-work", "\"a\"")), contains("would be named b-work"));
    CHECK_THAT(refusal(workers(list) + "[hosts.x]\naddress = \"10.0.0.2\"\n"),
               contains("expected [hosts.here] with launcher = \"here\" and address"));
}

TEST_CASE("several outputs, and assets of others, keep a stage's instances on one host") {
    const auto p = parsed_workers(workers("[\"\", \"x\"]"));
    const auto refused = [&](const std::vector<supervisor::stage_description>& all) -> std::string {
        try {
            (void)supervisor::part_of(p, "", all, "/t");
        } catch (const config_error& e) {
            return e.what();
        }
        return "";
    };
    auto all = described(p);
    CHECK(refused(all).empty());
    all[1].more.push_back({"other", {{"type", "more"}}, 64});
    CHECK_THAT(refused(all), contains("stage \"b\" has 2 outputs"));
    all = described(p);
    all[0].makes = {{"mesh", 64}};
    all[1].uses = {"mesh"};
    CHECK_THAT(refused(all),
               contains("uses the asset mesh, which \"a\" produces: assets can't be sent between hosts"));
    all[0].makes.clear();
    all[1].makes = {{"mesh", 64}};
    CHECK(refused(all).empty());
}
