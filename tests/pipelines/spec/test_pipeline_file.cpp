// One section at a time: keys, types, ranges, places.

#include "spec/options.hpp"
#include "spec/pipeline_keys.hpp"
#include "tests/pipelines/spec/pipeline_support.hpp"

using namespace carousel;
using namespace carousel::test;
using supervisor::parse_pipeline;
using supervisor::pipeline;

TEST_CASE("a pipeline file with every key is read as it was written") {
    const pipeline p = parse_pipeline(R"([pipeline]
name = "all"
device = "cpu"
size = [640, 480]
frame_timeout_ms = 500
stall_timeout_ms = 800
space_mib = 256
latest_lease_ms = 100
isolation = "process"
fps = 59.5
latency = "low"
frames = 12
[parameters]
eye = [1, 2.5, 3]
shading = "depth"
wireframe = true
other = 2
[[stage]]
name = "source"
run = "./bin/source"
in_flight = 5
instances = 2
standby = false
restart = "on-failure"
frame_timeout_ms = 0
max_attempts = 2
device = "cuda:1"
prefix = "gdb --args -ex 'run it'"
own = {deep = [1, 2.5, "x"]}
[[stage]]
name = "tap"
run = "tap"
inputs = ["source"]
group = "latest"
optional = true
[[stage]]
name = "sink"
run = "sink"
inputs = ["source"]
restart = "no"
[link.source]
window = 12
memory = "ipc"
)",
                                      "dir/all.toml");
    CHECK(p.name == "all");
    CHECK(p.width == 640);
    CHECK(p.height == 480);
    CHECK(p.frame_timeout_ms == 500);
    CHECK(p.stall_timeout_ms == 800);
    CHECK(p.space_mib == 256);
    CHECK(p.latest_lease_ms == 100);
    CHECK(p.latency == supervisor::latency_kind::low);
    CHECK(p.fps == 59.5);
    CHECK(p.frames == 12);
    CHECK(p.parameters.at("eye").value.dump() == "[1,2.5,3]");
    CHECK(p.parameters.at("shading").value == "depth");
    CHECK(p.parameters.at("shading").value_at.text() == "dir/all.toml:15:11");
    CHECK(p.parameters.at("other").value == 2);
    REQUIRE(p.stages.size() == 3);
    const auto& s = p.stages[0];
    CHECK(s.in_flight == 5);
    CHECK(s.instances == 2);
    CHECK(s.restart == supervisor::restart_policy::on_failure);
    CHECK(s.max_attempts == 2);
    CHECK(s.frame_timeout_ms == 0);
    CHECK(p.stages[1].frame_timeout_ms == 500);  // the pipeline's
    CHECK(s.device == "cuda:1");
    CHECK(s.prefix == std::vector<std::string>{"gdb", "--args", "-ex", "run it"});
    CHECK(s.settings.dump() == R"({"own":{"deep":[1,2.5,"x"]}})");
    CHECK(s.has_output);
    CHECK(s.position_of("own").text() == "dir/all.toml:29:1");
    CHECK(p.stages[1].device == "cpu");
    CHECK(p.stages[1].group == supervisor::group_kind::latest);
    CHECK(p.stages[1].optional);
    CHECK(p.stages[2].restart == supervisor::restart_policy::no);
    CHECK(p.stages[2].input_indices == std::vector<u32>{0});
    REQUIRE(p.links.size() == 1);
    CHECK(p.links.at("source").window == 12U);
    CHECK(p.links.at("source").memory == device::memory_kind::ipc);
}

TEST_CASE("a GPU's name has a number of one or two digits below 64") {
    CHECK(supervisor::gpu_number("cuda:0") == 0U);
    CHECK(supervisor::gpu_number("cuda:10") == 10U);
    CHECK(supervisor::gpu_number("cuda:63") == 63U);
    for (const char* wrong :
         {"", "cpu", "cuda", "cuda:", "cuda:64", "cuda:100", "cuda:-1", "cuda:1x", "Cuda:1"})
        CHECK_FALSE(supervisor::gpu_number(wrong));
}

TEST_CASE("the limit of frames that may be given up is a number, unlimited, or zero") {
    const auto read = [](const std::string& value) {
        return parse_pipeline("[pipeline]\nallow_dead_letters = " + value +
                                  "\n[[stage]]\nname=\"a\"\nrun=\"a\"\n[[stage]]\nname=\"b\"\nrun="
                                  "\"b\"\ninputs=[\"a\"]\n",
                              "p.toml")
            .allow_dead_letters;
    };
    CHECK(read("true") == ~u64{0});
    CHECK(read("false") == 0);
    CHECK(read("12") == 12);
}

TEST_CASE("in_flight and window may be left to the run by their word, and a window may be one frame") {
    const std::string two =
        "[[stage]]\nname=\"a\"\nrun=\"a\"\nin_flight=\"auto\"\n[[stage]]\nname=\"b\"\nrun=\"b\"\n"
        "inputs=[\"a\"]\nin_flight=1\n[link.a]\nwindow=";
    const pipeline by_word = parse_pipeline(two + "\"auto\"\n", "p.toml");
    CHECK_FALSE(by_word.stages[0].in_flight.has_value());
    CHECK(by_word.stages[1].in_flight == 1U);
    CHECK_FALSE(by_word.links.at("a").window.has_value());
    CHECK(parse_pipeline(two + "1\n", "p.toml").links.at("a").window == 1U);
}

TEST_CASE("keys that a pipeline file omits have the documented defaults") {
    const pipeline p =
        parse_pipeline("[[stage]]\nname=\"a\"\nrun=\"a\"\n[[stage]]\nname=\"b\"\nrun=\"b\"\ninputs=[\"a\"]\n",
                       "dir/my-file.toml");
    CHECK(p.name == "my-file");
    CHECK(p.device == "auto");
    CHECK(p.width == 1280);
    CHECK(p.height == 720);
    CHECK(p.frame_timeout_ms == 2000);
    CHECK(p.stall_timeout_ms == 5000);
    CHECK(p.space_mib == 64);
    CHECK(p.frames == 0);
    CHECK(p.allow_dead_letters == 0);
    CHECK(p.fps == 0);
    CHECK_FALSE(p.stages[0].in_flight.has_value());
    CHECK(p.latency == supervisor::latency_kind::balanced);
    CHECK_FALSE(p.turn_frames);
    CHECK(p.graphs);
    CHECK(p.stages[0].devices.empty());
    CHECK(p.stages[0].instances == 1);
    CHECK(p.stages[0].max_attempts == 3);
    CHECK(p.stages[0].restart == supervisor::restart_policy::always);
    CHECK(p.stages[0].group == supervisor::group_kind::blocking);
    CHECK_FALSE(p.links.at("a").window.has_value());
    CHECK(p.links.at("a").memory == device::memory_kind::vmm);
}

TEST_CASE("a stage with instances may have a list of GPUs, whose first one stands for the stage") {
    const pipeline p = parse_pipeline(
        "[[stage]]\nname=\"a\"\nrun=\"a\"\n[[stage]]\nname=\"b\"\nrun=\"b\"\ninputs=[\"a\"]\n"
        "device = [\"cuda:1\", \"cuda:0\"]\ninstances = 3\n",
        "p.toml");
    CHECK(p.stages[1].devices == std::vector<std::string>{"cuda:1", "cuda:0"});
    CHECK(p.stages[1].device == "cuda:1");
    CHECK(supervisor::values_of(p.stages[1])["device"] == nlohmann::json{"cuda:1", "cuda:0"});
    CHECK(p.stages[0].devices.empty());
}

TEST_CASE("graphs are on or off") {
    const auto graphs = [](const std::string& value) {
        return parse_pipeline("[pipeline]\ngraphs = " + value +
                                  "\n[[stage]]\nname=\"a\"\nrun=\"a\"\n[[stage]]\nname=\"b\"\nrun=\"b\"\n"
                                  "inputs=[\"a\"]\n",
                              "p.toml")
            .graphs;
    };
    CHECK(graphs("\"on\"") == true);
    CHECK(graphs("\"off\"") == false);
}

TEST_CASE("isolation is the pipeline's unless a stage has its own") {
    const auto isolation_of = [](const std::string& pipeline_key, const std::string& stage_key) {
        return parse_pipeline("[pipeline]\n" + pipeline_key + "\n[[stage]]\nname=\"a\"\nrun=\"a\"\n" +
                                  stage_key + "\n[[stage]]\nname=\"b\"\nrun=\"b\"\ninputs=[\"a\"]\n",
                              "p.toml")
            .stages[0]
            .isolation;
    };
    using supervisor::isolation_kind;
    CHECK(isolation_of("", "") == isolation_kind::process);
    CHECK(isolation_of("isolation = \"mps\"", "") == isolation_kind::mps);
    CHECK(isolation_of("isolation = \"mps\"", "isolation = \"process\"") == isolation_kind::process);
    CHECK(isolation_of("", "isolation = \"mps\"") == isolation_kind::mps);
}

TEST_CASE("a wrong value is refused with its line and column and what was expected") {
    struct row {
        std::string after, line, message;
    };
    const row rows[] = {
        {"[pipeline]", "size = [0, 720]",
         "p.toml:2:8: size = [0,720]: expected [width, height], each from 1 to 16384"},
        {"[pipeline]", "size = [100000, 720]",
         "p.toml:2:8: size = [100000,720]: expected [width, height], each from 1 to 16384"},
        {"[pipeline]", "size = 640",
         "p.toml:2:8: size = 640: expected [width, height], each from 1 to 16384"},
        {"[pipeline]", "size = [640.5, 2]",
         "p.toml:2:8: size = [640.5,2]: expected [width, height], each from 1 to 16384"},
        {"[pipeline]", "frames = -1",
         "p.toml:2:10: frames = -1: expected a whole number from 1 to 1000000000000, or 0 for "
         "no limit"},
        {"[pipeline]", "allow_dead_letters = -1",
         "p.toml:2:22: allow_dead_letters = -1: expected true, false, or the number of frames that may be "
         "given up"},
        {"[pipeline]", "allow_dead_letters = \"all\"",
         "p.toml:2:22: allow_dead_letters = \"all\": expected true, false, or the number"},
        {"[pipeline]", "graphs = 3", "p.toml:2:10: graphs = 3: expected \"on\" or \"off\""},
        {"triangles = 100", "device = [\"cuda:0\", \"cpu\"]",
         "p.toml:8:10: device = [\"cuda:0\",\"cpu\"]: expected a list of GPUs, e.g. [\"cuda:0\", "
         "\"cuda:1\"]: "
         "the instances of one stage must all run on named GPUs, or all on the CPU"},
        {"triangles = 100", "device = [\"cuda:0\", \"auto\"]",
         "p.toml:8:10: device = [\"cuda:0\",\"auto\"]: expected a list of GPUs"},
        {"triangles = 100", "device = [\"cuda:0\", \"cuda1\"]",
         "p.toml:8:10: device = [\"cuda:0\",\"cuda1\"]: expected a list of GPUs"},
        {"triangles = 100", "device = []", "p.toml:8:10: device = []: expected a list of GPUs"},
        {"triangles = 100", "device = [\"cuda:0\", \"cuda:1\"]",
         "p.toml:8:10: device = [\"cuda:0\",\"cuda:1\"]: expected at most one device per instance "
         "(the stage has 1): set instances = 2"},
        {"[pipeline]", "fps = -1",
         "p.toml:2:7: fps = -1: expected a number from 0.0001 to 100000, or 0 for as fast as possible"},
        {"[pipeline]", "fps = nan", "p.toml:2:7: fps: not a finite number"},
        {"[pipeline]", "frame_timeout_ms = 9",
         "p.toml:2:20: frame_timeout_ms = 9: expected a whole number from 10 to 3600000, or 0 for none"},
        {"[pipeline]", "frame_timeout_ms = -1",
         "p.toml:2:20: frame_timeout_ms = -1: expected a whole number from 10 to 3600000, or 0 for none"},
        {"triangles = 100", "frame_timeout_ms = 9",
         "p.toml:8:20: frame_timeout_ms = 9: expected a whole number from 10 to 3600000, or 0 for none"},
        {"[pipeline]", "frame_timeout_ms = \"2\"",
         "p.toml:2:20: frame_timeout_ms = \"2\": expected a whole number from 10 to 3600000"},
        {"[pipeline]", "latest_lease_ms = 1.5",
         "p.toml:2:19: latest_lease_ms = 1.5: expected a whole number from 1 to 3600000"},
        {"[pipeline]", "device = \"gpu\"",
         "p.toml:2:10: device = \"gpu\": expected \"auto\", \"cpu\" or \"cuda:N\" with the number of a GPU; "
         "did you mean "
         "\"cpu\"?"},
        {"[pipeline]", "device = \"cuda:x\"",
         "p.toml:2:10: device = \"cuda:x\": expected \"auto\", \"cpu\" or \"cuda:N\" with the number of a "
         "GPU; did you mean "
         "\"cuda:0\"?"},
        {"[pipeline]", "isolation = \"proces\"",
         "p.toml:2:13: isolation = \"proces\": expected \"process\" or \"mps\"; did you mean \"process\"?"},
        {"[pipeline]", "sise = [1, 1]", "p.toml:2:1: unknown key \"sise\" in [pipeline]; its keys are"},
        {"[pipeline]", "since = 2024-05-01", "p.toml:2:9: since: a date or time; expected"},
        {"triangles = 100", "in_flight = \"all\"",
         "p.toml:8:13: in_flight = \"all\": expected a whole number from 1 to 16, or \"auto\""},
        {"[pipeline]", "turns = 0",
         "p.toml:2:9: turns = 0: expected \"auto\", \"off\", or the number of frames per turn, from 1 to 16"},
        {"[pipeline]", "turns = \"on\"",
         "p.toml:2:9: turns = \"on\": expected \"auto\", \"off\", or the number of frames per turn, from 1 "
         "to "
         "16"},
        {"[pipeline]", "latency = \"lo\"",
         "p.toml:2:11: latency = \"lo\": expected \"low\" or \"balanced\" or \"throughput\"; did you mean "
         "\"low\"?"},
        {"triangles = 100", "in_flight = 0",
         "p.toml:8:13: in_flight = 0: expected a whole number from 1 to 16, or \"auto\""},
        {"triangles = 100", "in_flight = 17",
         "p.toml:8:13: in_flight = 17: expected a whole number from 1 to 16, or \"auto\""},
        {"triangles = 100", "instances = 17",
         "p.toml:8:13: instances = 17: expected a whole number from 1 to 16"},
        {"triangles = 100", "instances = -9223372036854775808",
         "p.toml:8:13: instances = -9223372036854775808: expected a whole number"},
        {"triangles = 100", "max_attempts = 8",
         "p.toml:8:16: max_attempts = 8: expected a whole number from 1 to 7"},
        {"triangles = 100", "standby = 1", "p.toml:8:11: standby = 1: expected true, false or \"auto\""},
        {"triangles = 100", "restart = \"allways\"",
         "p.toml:8:11: restart = \"allways\": expected \"always\" or \"on-failure\" or \"no\"; did you mean "
         "\"always\"?"},
        {"triangles = 100", "isolation = \"msp\"",
         "p.toml:8:13: isolation = \"msp\": expected \"process\" or \"mps\"; did you mean \"mps\"?"},
        {"triangles = 100", "group = true", "p.toml:8:9: group = true: expected \"blocking\" or \"latest\""},
        {"triangles = 100", "prefix = \"gdb 'x\"",
         "p.toml:8:10: prefix = \"gdb 'x\": expected a closing quote"},
        {"triangles = 100", "prefix = 3", "p.toml:8:10: prefix = 3: expected a command"},
        {"triangles = 100", "python = \"\"",
         "p.toml:8:10: python = \"\": expected the folder of a virtual environment"},
        {"triangles = 100", "python = \"env\"",
         "p.toml:8:1: stage \"geometry\": python is only for stages in Python"},
        {"triangles = 100", "inputs = \"x\"",
         "p.toml:8:10: inputs = \"x\": expected a list of stages' names"},
        {"triangles = 100", "inputs = [1]", "p.toml:8:10: inputs = [1]: expected a list of stages' names"},
        {"inputs = [\"geometry\"]", "[link.geometry]\nwindow = 0",
         "p.toml:14:10: window = 0: expected a whole number from 1 to 48, or \"auto\""},
        {"inputs = [\"geometry\"]", "[link.geometry]\nwindow = 49",
         "p.toml:14:10: window = 49: expected a whole number from 1 to 48, or \"auto\""},
        {"inputs = [\"geometry\"]", "[link.geometry]\nmemory = \"vm\"",
         "p.toml:14:10: memory = \"vm\": expected \"vmm\" or \"ipc\"; did you mean \"vmm\"?"},
        {"inputs = [\"geometry\"]", "[link.geometry]\nwindows = 9",
         "p.toml:14:1: unknown key \"windows\" in [link.geometry]; its keys are guard, latest_lease_ms, "
         "memory, record, window; did you mean \"window\"?"},
        {"inputs = [\"geometry\"]", "[scene]\neye = [1, 2, 3]",
         "p.toml:13:2: unknown section or key \"scene\"; expected [pipeline], [parameters], [[stage]], "
         "[link.STAGE] or [hosts.NAME]; keys of [scene] are now in "
         "[parameters]"},
        {"inputs = [\"geometry\"]", "[[stages]]\nname = \"x\"",
         "p.toml:13:3: unknown section or key \"stages\"; expected [pipeline], [parameters], [[stage]], "
         "[link.STAGE] or [hosts.NAME]; did you "
         "mean "
         "\"stage\"?"},
    };
    for (const row& r : rows) {
        INFO(r.line);
        CHECK_THAT(refusal(with_line(r.after, r.line)), Catch::Matchers::StartsWith(r.message));
    }
}

TEST_CASE("a standby needs a stage that is always restarted") {
    CHECK_THAT(refusal(with_line("triangles = 100", "standby = true\nrestart = \"no\"")),
               contains("standby = true needs restart"));
    CHECK_THAT(refusal(with_line("triangles = 100", "standby = true\nprefix = \"gdb --args\"")),
               contains("no prefix"));
}

TEST_CASE("a stage in Python has a standby, and it and a port a first-frame timeout, by default") {
    const auto filter = [](const std::string& more) {
        return *supervisor::parse_pipeline(
                    "[[stage]]\nname = \"a\"\nrun = \"x\"\n[[stage]]\nname = \"filter\"\ninputs = [\"a\"]\n" +
                        more + "\n[[stage]]\nname = \"sink\"\nrun = \"y\"\ninputs = [\"filter\"]\n",
                    "p.toml")
                    .find("filter");
    };
    CHECK(filter("run = \"filter.py\"").standby);
    CHECK(filter("run = \"filter.py\"").first_frame_timeout_ns() == 30'000 * ns_per_ms);
    CHECK(!filter("run = \"filter\"").standby);
    CHECK(filter("run = \"filter\"").first_frame_timeout_ns() == 2'000 * ns_per_ms);
    const auto port = [](const std::string& more) {
        return supervisor::parse_pipeline(
                   "[[stage]]\nname = \"camera\"\nrun = \"port\"\noutput = { color = "
                   "\"u8[2,2,4]\" }\n" +
                       more + "[[stage]]\nname = \"sink\"\nrun = \"y\"\ninputs = " + "[\"camera\"]\n",
                   "p.toml")
            .find("camera")
            ->first_frame_timeout_ns();
    };
    CHECK(port("") == 30'000 * ns_per_ms);
    CHECK(port("first_frame_timeout_ms = 900\nframe_timeout_ms = 500\n") == 900 * ns_per_ms);
    CHECK(!filter("run = \"filter.py\"\nstandby = false").standby);
    CHECK(!filter("run = \"filter.py\"\nstandby = \"auto\"").standby);
    CHECK(filter("run = \"filter.py\"\nstandby = \"auto\"").standby_auto);
    CHECK_THROWS_WITH(filter("run = \"filter\"\nstandby = \"yes\""), contains("true, false or \"auto\""));
    CHECK(!filter("run = \"filter.py\"\nrestart = \"no\"").standby);
    CHECK(!filter("run = \"filter.py\"\nprefix = \"gdb --args\"").standby);
    const supervisor::stage_spec own =
        filter("run = \"filter.py\"\nframe_timeout_ms = 500\nfirst_frame_timeout_ms = 900");
    CHECK(own.first_frame_timeout_ns() == 900 * ns_per_ms);
    // 0: no deadline, also for the first frame
    CHECK(filter("run = \"filter.py\"\nframe_timeout_ms = 0").first_frame_timeout_ns() == 0);
}

TEST_CASE("invalid TOML, or TOML of another structure, is refused at the line of the error") {
    CHECK_THAT(refusal("[pipeline\nname = 1"), Catch::Matchers::StartsWith("p.toml:1:10: not TOML: "));
    CHECK_THAT(refusal("a = 1\na = 2\n"), Catch::Matchers::StartsWith("p.toml:2:"));
    CHECK_THAT(refusal("pipeline = 3"), contains("p.toml:1:12: pipeline: expected a section [pipeline]"));
    CHECK_THAT(refusal("[stage]\nname = \"x\""), contains("stage: expected [[stage]] with double brackets"));
    CHECK_THAT(refusal("link = 1"), contains("link: expected [link.STAGE]"));
    CHECK_THAT(
        refusal("[link]\nwindow = 8"),
        contains("p.toml:2:1: [link] can have no keys of its own; expected [link.STAGE] above \"window\""));
    CHECK_THAT(refusal(""), contains("p.toml: no stages"));
    CHECK_THAT(refusal("[[stage]]\nrun = \"x\""), contains("p.toml:1:1: stage number 1 has no name"));
    CHECK_THAT(refusal("[[stage]]\nname = \"x\""), contains("p.toml:1:1: stage \"x\" has no program"));
    CHECK_THAT(refusal("[[stage]]\nname = \"a.b\"\nrun = \"x\""),
               contains("p.toml:2:8: name = \"a.b\": expected a name of 1 to 47"));
    CHECK_THAT(refusal("[[stage]]\nname = \"link\"\nrun = \"x\""), contains("expected another name"));
    CHECK_THAT(refusal("[[stage]]\nname = \"a\"\nrun = \"\""),
               contains("p.toml:3:7: run = \"\": expected the name or path of a program"));
    CHECK_THAT(refusal("[pipeline]\nname = \"../x\""),
               contains("p.toml:2:8: name = \"../x\": expected a name of 1 to 40"));
}

TEST_CASE("a file that is not there, or no file, is refused in one sentence") {
    const auto refused = [](const std::string& file) -> std::string {
        try {
            (void)supervisor::read_pipeline(file);
            return "";
        } catch (const config_error& e) {
            return e.what();
        }
    };
    CHECK(refused("/nowhere/x.toml") ==
          "/nowhere/x.toml: the pipeline file does not exist; expected a TOML file");
    CHECK(refused("/tmp") == "/tmp: is a folder; expected a pipeline file (TOML)");
}
