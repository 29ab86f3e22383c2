// The client against a supervisor of this test: a thread with a socket.

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

#include "control/client.hpp"
#include "core/json.hpp"
#include "runs/client.hpp"
#include "shm/fd_socket.hpp"
#include "tests/pipelines/spec/world.hpp"

using namespace carousel;
using namespace carousel::test;
using namespace carousel::supervisor;
using nlohmann::json;

namespace {

/// A run whose supervisor is this process, and answers by `reply` until it goes out of scope.
class fake_supervisor {
public:
    fake_supervisor(const std::string& name, std::function<std::string(const json&)> reply)
        : folder_(run::make_run_folder(name)), reply_(std::move(reply)) {
        listener_ = shm::listen_at(folder_ + "/control.sock");
        run::write_record(
            folder_, {shm::this_process(), "run-" + name, name, "pipelines/" + name + ".toml", "", "", ""});
        thread_ = std::thread([this] { serve(); });
    }
    ~fake_supervisor() {
        ended_ = true;
        thread_.join();
    }
    fake_supervisor(const fake_supervisor&) = delete;
    fake_supervisor& operator=(const fake_supervisor&) = delete;
    std::vector<json> requests;  ///< read it after the client's return

private:
    void serve() {
        while (!ended_) {
            pollfd p{listener_.get(), POLLIN, 0};
            if (::poll(&p, 1, 10) <= 0) continue;
            const shm::unique_fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
            shm::message m;
            if (!client || shm::receive_message(client.get(), m, 1'000'000'000) != shm::receive_status::ok)
                continue;
            requests.push_back(json::parse(m.text));
            const std::string text = reply_(requests.back());
            if (!text.empty()) shm::send_message(client.get(), text);
        }
    }
    std::string folder_;
    std::function<std::string(const json&)> reply_;
    shm::unique_fd listener_;
    std::atomic<bool> ended_{false};
    std::thread thread_;
};

std::string well(const json&) { return R"({"ok":true,"message":"done"})"; }

const std::string ps_reply = R"json({"ok":true,
  "pipeline":{"name":"demo","state":"waiting","pid":77,"file":"pipelines/demo.toml","device":"cpu","uptime_s":75.2,"frames":300,"frames_per_second":59.94,
  "state_text":"waiting: x is down","bottleneck":{"kind":"stage","stage":"fragment","busy":0.98,"text":"bottleneck: fragment (busy 98 %)"}},
  "stages":[
    {"name":"geometry","instance":0,"pid":100,"state":"running","age_s":75,"restarts":0,"last_exit":null,"frames_per_second":60,"frames":300,"busy":0.123,"cpu_percent":12.4,"memory_bytes":1048576,"device":"cpu"},
    {"name":"fragment","instance":0,"pid":101,"state":"running","age_s":3.2,"restarts":2,"last_exit":"signal SIGKILL (9)","frames_per_second":30,"frames":150,"busy":1,"cpu_percent":80,"memory_bytes":1,"standby_memory_bytes":2,"device":"cpu"},
    {"name":"fragment","instance":1,"pid":0,"state":"backoff","age_s":0,"restarts":1,"last_exit":"exit 3","device":"cpu"}]})json";

}  // namespace

TEST_CASE("without a running pipeline the client reports that and exits with 2") {
    const world w;
    const command_result s = carousel::test::carousel({"ps"});
    CHECK(s.code == 2);
    CHECK_THAT(s.err, contains("no pipeline is running; start one with `carousel run FILE`"));
    CHECK_THAT(carousel::test::carousel({"kill", "x", "-p", "demo"}).err,
               contains("no pipeline \"demo\" is running"));
    CHECK_THAT(carousel::test::carousel({"ps", "--wait", "0.05"}).err,
               contains("no pipeline is running after 0.05 s"));
}

TEST_CASE("ps prints the stages as a table or as JSON") {
    const world w;
    const fake_supervisor demo("demo", [](const json&) { return ps_reply; });
    const command_result s = carousel::test::carousel({"ps"});
    CHECK(s.code == 0);
    CHECK(
        s.out ==
        "demo: waiting: x is down, pid 77, device cpu, up 1m 15s, 300 frames, 59.9 frames/s, "
        "pipelines/demo.toml\n"
        "bottleneck: fragment (busy 98 %)\n"
        "STAGE       PID  STATE       AGE  RESTARTS  LAST EXIT           FRAMES/S  FRAMES  BUSY  CPU   "
        "  MEMORY  DEVICE\n"
        "geometry    100  running  1m 15s         0  -                       60.0     300   12%  12%    1.0 "
        "MiB  cpu\n"
        "fragment.0  101  running    3.2s         2  signal SIGKILL (9)      30.0     150  100%  80%  1 B + "
        "2 B  cpu\n"
        "fragment.1    -  backoff      0s         1  exit 3                     -       -     -    -        "
        "  -  cpu\n");
    const json j = json::parse(carousel::test::carousel({"ps", "--json"}).out);
    CHECK(j.at("stages").size() == 3);
    CHECK(j.at("stages").at(1).at("last_exit") == "signal SIGKILL (9)");
}

TEST_CASE("commands reach the pipeline that is meant, one stage at a time") {
    const world w;
    fake_supervisor demo("demo", well);
    fake_supervisor other("other",
                          [](const json&) { return R"({"ok":false,"message":"no stage \"x\"","code":2})"; });
    const command_result several = carousel::test::carousel({"stop", "fragment"});
    CHECK(several.code == 2);
    CHECK_THAT(several.err,
               contains("choose one with -p NAME:\n  demo  (pid") && contains("\n  other  (pid"));
    CHECK_THAT(carousel::test::carousel({"ps", "-p", "dmeo"}).err,
               contains("no pipeline \"dmeo\" is running; did you mean \"demo\"?"));
    const command_result killed =
        carousel::test::carousel({"kill", "fragment.1", "vertex", "-s", "SIGABRT", "-p", "demo"});
    CHECK(killed.code == 0);
    CHECK(killed.out == "done\ndone\n");
    REQUIRE(demo.requests.size() == 2);
    CHECK(demo.requests[0] ==
          json({{"type", "kill"}, {"stage", "fragment.1"}, {"signal", 6}, {"run_id", "run-demo"}}));
    CHECK(demo.requests[1] ==
          json({{"type", "kill"}, {"stage", "vertex"}, {"signal", 6}, {"run_id", "run-demo"}}));
    const command_result refused = carousel::test::carousel({"restart", "x", "-p", "other"});
    CHECK(refused.code == 2);
    CHECK(refused.err == "error: no stage \"x\"\n");
    for (const char* command : {"stop", "cont", "restart", "down", "up"})
        CHECK(carousel::test::carousel({command, "vertex", "-p", "demo"}).code == 0);
    REQUIRE(demo.requests.size() == 7);
    CHECK(demo.requests[6] ==
          json({{"type", "seat"}, {"order", "up"}, {"stage", "vertex"}, {"run_id", "run-demo"}}));
}

TEST_CASE("a command names a run by its id, and the id of an earlier run of that name is refused") {
    const world w;
    const fake_supervisor demo("demo", [](const json&) { return json({{"ok", true}}).dump(); });
    CHECK(carousel::test::carousel({"stop", "vertex", "-p", "run-demo"}).code == 0);
    REQUIRE(demo.requests.size() == 1);
    CHECK(demo.requests[0]["run_id"] == "run-demo");
    CHECK(carousel::test::carousel({"stop", "vertex", "-p", "run-demo-before"}).code == exit_code::usage);
    CHECK(demo.requests.size() == 1);
}

TEST_CASE("a supervisor that answers invalid data, does not answer or disconnects is reported") {
    const world w;
    const auto error_of = [](double timeout_s) -> std::string {
        try {
            (void)run::client(choose_pipeline("", 0)).ask(run::ps_request{}, 0, timeout_s);
            return "";
        } catch (const shm_error& e) {
            return e.what();
        }
    };
    {
        const fake_supervisor demo("demo", [](const json&) { return "hello"; });
        CHECK_THAT(error_of(5), contains("something other than a JSON object"));
    }
    {
        const fake_supervisor demo("demo", [](const json&) { return ""; });
        CHECK_THAT(error_of(5), contains("ended before it answered"));
    }
    {
        std::atomic<bool> timed_out{false};
        const fake_supervisor demo("demo", [&](const json&) {
            for (int k = 0; k < 4000 && !timed_out; ++k)
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
            return "{}";
        });
        CHECK_THAT(error_of(0.05), contains("has not answered within 0.05 s"));
        timed_out = true;
    }
    CHECK_THAT(error_of(5),
               contains("no process listens at"));  // the record still exists, and this process is alive
    CHECK(carousel::test::carousel({"ps"}).code == 74);
}

TEST_CASE("a client with --wait waits for the pipeline to come") {
    const world w;
    std::optional<fake_supervisor> late;
    std::thread starter([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(150));
        late.emplace("demo", well);
    });
    const command_result s = carousel::test::carousel({"up", "vertex", "--wait", "20"});
    starter.join();
    CHECK(s.code == 0);
}

TEST_CASE("down without a stage ends the whole pipeline and waits for its end") {
    const world w;
    const pid_t child = ::fork();
    if (child == 0) {
        ::signal(SIGINT, SIG_DFL);  // a test run in the background of a shell ignores it
        ::execlp("sleep", "sleep", "60", nullptr);
        ::_exit(127);
    }
    run::write_record(run::make_run_folder("demo"),
                      {{child, shm::start_time_of(child)}, "r", "demo", "", "", ""});
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // until the child is `sleep`
    std::thread reaper([&] { ::waitpid(child, nullptr, 0); });
    const command_result s = carousel::test::carousel({"down", "--timeout", "20"});
    reaper.join();
    CHECK(s.code == 0);
    CHECK(s.out == "pipeline \"demo\" has ended\n");
}

TEST_CASE("replies with missing or odd fields still make a table") {
    CHECK_THAT(ps_table(run::read_ps(json::object())), contains("STAGE"));
    CHECK_THAT(ps_table(run::read_ps(
                   json::parse(R"({"pipeline":3,"stages":[4,{"name":7,"pid":"x","age_s":null}]})"))),
               contains("-"));
    CHECK_THAT(ps_table(run::read_ps(json::parse("{\"stages\":[{\"name\":\"a\\u001b[2J\"}]}"))),
               contains("a\\x1b[2J"));
}
