// [hosts.NAME], `host` of a stage, and the parts that a file is split into.

#include <fmt/format.h>

#include "spec/hosts.hpp"
#include "spec/options.hpp"
#include "supervisor/plan/hosts_plan.hpp"
#include "tests/pipelines/spec/parts.hpp"
#include "tests/pipelines/spec/pipeline_support.hpp"

using namespace carousel;
using namespace carousel::test;

namespace {

std::string host(const std::string& name, const std::string& more = "address = \"10.0.0.2\"\n") {
    return "[hosts." + name + "]\n" + more;
}

std::string on(const std::string& name) { return "host = \"" + name + "\""; }

supervisor::pipeline parsed(const std::string& text) { return supervisor::parse_pipeline(text, "p.toml"); }

}  // namespace

TEST_CASE("a file has as many stages as a run, over all its hosts together") {
    std::string most = host("bb"), more;
    for (int k = 0; k < 32; ++k)
        most += stage("s" + std::to_string(k), k == 0 ? "" : "\"s" + std::to_string(k - 1) + "\"",
                      k < 16 ? "" : on("bb"));
    CHECK(refusal(most).empty());
    more = most + stage("s32", "\"s31\"", on("bb"));
    CHECK_THAT(refusal(more), contains("33 stages; at most 32"));
}

TEST_CASE("an unknown host is refused, and so are sections with missing or extra keys") {
    const std::string two = stage("a", "") + stage("b", "\"a\"", on("bb"));
    CHECK_THAT(refusal(two),
               contains("stage \"b\": no host \"bb\"; expected a section [hosts.bb] with its address"));
    CHECK_THAT(refusal(two + host("bc")), contains("did you mean \"bc\"?"));
    CHECK_THAT(refusal(two + host("bb", "")), contains("[hosts.bb] has no address"));
    CHECK_THAT(refusal(two + host("bb", "address = \"b\"\n")), contains("numeric IPv4"));
    CHECK_THAT(refusal(two + host("bb", "address = \"0.0.0.0\"\n")), contains("numeric IPv4"));
    CHECK_THAT(refusal(two + host("bb", "address = \"8.8.8.8\"\n")), contains("expected a private address"));
    CHECK(refusal(two + host("bb", "address = \"8.8.8.8\"\ninsecure = true\n")).empty());
    CHECK_THAT(refusal(two + host("bb", "address = \"10.0.0.2\"\nlogin = \"-oProxyCommand=x\"\n")),
               contains("does not begin with \"-\""));
    CHECK_THAT(refusal(two + host("bb", "address = \"10.0.0.2\"\nlauncher = \"shh\"\n")),
               contains("did you mean \"ssh\"?"));
    CHECK_THAT(refusal(two + host("bb", "adress = \"10.0.0.2\"\n")), contains("did you mean \"address\"?"));
    CHECK_THAT(refusal(stage("a", "", on("bb")) + stage("b", "\"a\"", on("bb")) + host("bb")),
               contains("no stage runs on the host"));
    CHECK_THAT(refusal(stage("a", "", on("bb")) + stage("b", "\"a\"") + host("bb")),
               contains("expected [hosts.here] with launcher = \"here\" and address"));
    CHECK_THAT(
        refusal(two + host("bb") + host("x", "launcher = \"here\"\n") + host("y", "launcher = \"here\"\n")),
        contains("`carousel run` is on one host only"));
    CHECK_THAT(refusal(two + host("bb") + stage("a-to-bb", "\"a\"")),
               contains("the stage that serves the link from here to bb"));
    CHECK_THAT(refusal(two + "[hosts]\nbb = 1\n"),
               contains("[hosts] can have no keys of its own; expected [hosts.NAME]"));
}

TEST_CASE("the option --insecure is the key of every host, also with --set, and is passed to them") {
    const std::string here = "address = \"8.8.4.4\"\nlauncher = \"here\"\n";
    const std::string text = stage("a", "") + stage("b", "\"a\"", on("x")) + stage("c", "\"b\"") +
                             host("x", "address = \"8.8.8.8\"\ninsecure = false\n") + host("me", here);
    supervisor::pipeline_options o;
    CHECK(words_of(o).empty());
    o.insecure = true;
    o.set = {"hosts.me.insecure=false"};
    const auto p = supervisor::parse_pipeline(text, "p.toml", overrides_from(o));
    CHECK(p.hosts.size() == 2);
    for (const supervisor::host_spec& h : p.hosts) CHECK(h.insecure);
    const auto coordinator = supervisor::part_of(p, "", described(p), "/t");
    const auto x = supervisor::part_of(p, "x", described(p), "/t");
    for (const auto& [part, name] : {std::pair(&coordinator, "a-to-x"), std::pair(&coordinator, "b-from-x"),
                                     std::pair(&x, "a-from-me"), std::pair(&x, "b-to-me")})
        CHECK(part->find(name)->settings["insecure"] == true);
    CHECK(words_of(o) == std::vector<std::string>{"--set", "hosts.me.insecure=false", "--insecure"});
    CHECK_THAT(refusal(text), contains("or set insecure = true (for all hosts: --insecure)"));
    o.set.clear();
    CHECK(refusal(chain, overrides_from(o)) ==
          "--insecure: p.toml has no section [hosts.NAME]; set the key in the stage of a "
          "hand-written link (carousel-send, carousel-receive): insecure = true");
}

TEST_CASE("a ring that crosses hosts becomes a pair of stages, once for each host that reads it") {
    const auto p = parsed(stage("a", "") + stage("b", "\"a\"", on("x")) + stage("c", "\"a\"", on("x")) +
                          stage("d", "\"a\", \"b\"", on("y")) + stage("e", "\"d\"") + host("x") +
                          host("y", "address = \"10.0.0.3\"\nport = 50000\n") +
                          host("me", "address = \"10.0.0.1\"\nlauncher = \"here\"\n"));
    const auto all = described(p);
    const auto links = supervisor::crossings_of(p);
    REQUIRE(links.size() == 4);
    CHECK(links[0].send == "a-to-x");
    CHECK(links[0].receive == "a-from-me");
    CHECK(links[0].port == 47101);
    CHECK(links[1].to == "y");
    CHECK(links[1].port == 50001 + supervisor::ports_per_link);
    CHECK(links[2].send == "b-to-y");
    CHECK(links[3].to.empty());

    const auto coordinator = supervisor::part_of(p, "", all, "/t");
    CHECK(coordinator.name == "p");
    CHECK(names(coordinator) == std::vector<std::string>{"a", "a-to-x", "a-to-y", "d-from-y", "e"});
    CHECK(coordinator.find("e")->inputs == std::vector<std::string>{"d-from-y"});
    CHECK(coordinator.find("a-to-x")->settings["address"] == "10.0.0.2");
    CHECK(coordinator.find("a-to-x")->settings["token"] == "/t");
    CHECK_FALSE(coordinator.find("a-to-x")->has_output);
    CHECK(coordinator.find("d-from-y")->returns);  // its END is the END of our own source

    const auto x = supervisor::part_of(p, "x", all, "/t");
    CHECK(x.name == "p.x");
    CHECK(names(x) == std::vector<std::string>{"a-from-me", "b", "c", "b-to-y"});
    CHECK(x.find("a-from-me")->settings["format"] == "{\"type\":\"of a\"}");
    CHECK(x.find("a-from-me")->settings["port"] == 47101);
    CHECK_FALSE(x.find("a-from-me")->returns);
    CHECK(x.supervisor_grace_s == 20);  // its supervisor is started by this one
    CHECK(coordinator.supervisor_grace_s == 5);

    const auto y = supervisor::part_of(p, "y", all, "/t");
    CHECK(y.find("d")->inputs == std::vector<std::string>{"a-from-me", "b-from-x"});
}

TEST_CASE("a host's section describes how frames get there, for both ends of a link") {
    const std::string settings =
        "address = \"10.0.0.2\"\nrelease = \"durable\"\nsync = true\ncompress = \"lz4\"\n";
    const auto p = parsed(stage("a", "") + stage("b", "\"a\"", on("x")) + stage("c", "\"b\"") +
                          host("x", settings) + host("me", "address = \"10.0.0.1\"\nlauncher = \"here\"\n"));
    const auto coordinator = supervisor::part_of(p, "", described(p), "/t");
    const auto x = supervisor::part_of(p, "x", described(p), "/t");
    const auto& there = *coordinator.find("a-to-x");
    CHECK(there.settings["release"] == "durable");
    CHECK(there.settings["compress"] == "lz4");
    CHECK(there.settings["memory"] == "staged");
    CHECK(there.in_flight == 16U);
    CHECK(x.find("a-from-me")->settings["sync"] == true);
    const auto direct = parsed(stage("a", "") + stage("b", "\"a\"", on("x")) +
                               host("x", "address = \"10.0.0.2\"\nmemory = \"direct\"\n"));
    CHECK(supervisor::part_of(direct, "", described(direct), "/t").find("a-to-x")->settings["memory"] ==
          "direct");
    const auto& back = *x.find("b-to-me");  // that host's section is empty
    CHECK(back.settings["release"] == "committed");
    CHECK(back.settings["compress"] == "none");
    CHECK(back.in_flight == 4U);
    CHECK(coordinator.find("b-from-x")->settings["sync"] == false);
    CHECK(coordinator.find("b-from-x")->settings["successors"] == true);  // x may restart
    CHECK_FALSE(x.find("a-from-me")->settings.contains("successors"));
}

TEST_CASE("link settings of a host's section are in the plan that the hosts compare, and in its text") {
    const auto plan_with = [](const std::string& more) {
        const auto p = parsed(stage("a", "") + stage("b", "\"a\"", on("x")) +
                              host("x", "address = \"10.0.0.2\"\n" + more));
        return std::pair(supervisor::hosts_json(p)["links"][0], supervisor::hosts_text(p));
    };
    const auto plain = plan_with("");
    CHECK(plain.first["release"] == "committed");
    CHECK_THAT(plain.second, !contains("released"));
    CHECK_THAT(plain.second, !contains("compressed"));
    const auto query = plan_with("release = \"durable\"\nsync = true\ncompress = \"zstd\"\n");
    CHECK(query.first["release"] == "durable");
    CHECK(query.first["sync"] == true);
    CHECK(query.first["compress"] == "zstd");
    CHECK_THAT(query.second, contains("released when its sinks have a frame, by sync, compressed by zstd"));
    CHECK(query.first["memory"] == "staged");
    CHECK_THAT(query.second, !contains("GPU"));
    const auto direct = plan_with("memory = \"direct\"\n");
    CHECK(direct.first["memory"] == "direct");
    CHECK_THAT(direct.second, contains(", read by UCX on a GPU"));
}

TEST_CASE("invalid link settings in a host's section are refused") {
    const std::string at = "address = \"10.0.0.2\"\n", two = stage("a", "") + stage("b", "\"a\"", on("x"));
    const std::string durable = "release = \"durable\"\n";
    const std::string me = "address = \"10.0.0.1\"\nlauncher = \"here\"\n";
    CHECK_THAT(refusal(two + host("x", at + "release = \"durabel\"\n")),
               contains("did you mean \"durable\"?"));
    CHECK_THAT(refusal(two + host("x", at + "compress = \"gzip\"\n")),
               contains("expected \"none\" or \"lz4\" or \"zstd\""));
    CHECK_THAT(refusal(two + host("x", at + "memory = \"gpu\"\n")),
               contains("expected \"staged\" or \"direct\""));
    CHECK_THAT(refusal(two + host("x", at + "compress = \"lz4\"\nmemory = \"direct\"\n")),
               contains("the CPU compresses frames"));
    CHECK_THAT(refusal(two + host("x", at + "sync = true\n")),
               contains("sync = true only together with release = \"durable\""));
    CHECK_THAT(refusal(two + host("x", at) + host("me", me + durable)),
               contains("release of [hosts.me] has no effect: the key applies to rings that are sent to that "
                        "host, but no ring is"));
    const std::string helping =
        stage("a", "") + stage("b", "\"a\"", "instances = 2\nhost = [\"\", \"x\"]") + stage("c", "\"b\"");
    for (const std::string& key :
         {durable, std::string("compress = \"lz4\"\n"), std::string("memory = \"direct\"\n")}) {
        std::string file = helping;
        file += host("x", at + key);
        file += host("me", me);
        CHECK_THAT(refusal(file), contains("x only runs instances of a stage; remove the key"));
    }
    CHECK_THAT(refusal(stage("a", "") + stage("c", "\"a\"") +
                       stage("b", "\"a\"", on("x") + "\ngroup = \"latest\"") + host("x", at + durable)),
               contains("no sink there gets every frame"));
    // A sink whose states are read is still one.
    CHECK(refusal(stage("a", "") + stage("b", "\"a\"", on("x")) +
                  stage("c", "\"b.state\"", on("x") + "\ngroup = \"latest\"") + host("x", at + durable))
              .empty());
    CHECK_THAT(refusal("[pipeline]\ncheckpoint_every = 10\n" + two + host("x", at)),
               contains("p.toml:2:1: checkpoint_every is set, and stages run on several hosts"));
    const std::string back = two + stage("c", "\"b\"");
    CHECK(refusal(back + host("x", at + durable) + host("me", me)).empty());
    CHECK(refusal(back + host("x", at) + host("me", me + durable)).empty());
    CHECK_THAT(refusal(back + host("x", at + durable) + host("me", me + durable)),
               contains("each would wait for the sinks of the others"));
}

TEST_CASE("the end comes from the hosts whose sources no other host's frames reach") {
    const auto there_and_back =
        parsed(stage("a", "") + stage("b", "\"a\"", on("x")) + stage("c", "\"b\"") + host("x") +
               host("me", "address = \"10.0.0.1\"\nlauncher = \"here\"\n"));
    CHECK(supervisor::leading_hosts(there_and_back) == std::vector<std::string>{""});
    const auto from_there = parsed(stage("a", "", on("x")) + stage("b", "\"a\"") + host("x") +
                                   host("me", "address = \"10.0.0.1\"\nlauncher = \"here\"\n"));
    CHECK(supervisor::leading_hosts(from_there) == std::vector<std::string>{"x"});
}

TEST_CASE("an asset that would have to cross hosts is refused with both of its stages") {
    const auto p = parsed(stage("a", "") + stage("b", "\"a\"", on("x")) + host("x"));
    auto all = described(p);
    all[0].makes = {{"mesh", 64}};
    all[1].uses = {"mesh"};
    std::string error;
    try {
        (void)supervisor::part_of(p, "", all, "/t");
    } catch (const config_error& e) {
        error = e.what();
    }
    CHECK_THAT(error,
               contains("stage \"b\" on host x uses the asset mesh, which \"a\" produces on host here"));
}

TEST_CASE("a file without other hosts is one part") {
    const auto p = parsed(stage("a", "", on("here")) + stage("b", "\"a\"") + host("x"));
    CHECK_FALSE(p.is_spread());
    CHECK(supervisor::remote_hosts(p).empty());
    CHECK(supervisor::crossings_of(p).empty());
}
