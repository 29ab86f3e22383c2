// What somebody who knows the token may say to a supervisor of several hosts, and be of another version or
// damaged: it costs that connection alone.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <utility>

#include "core/clock.hpp"
#include "core/secret_file.hpp"
#include "run/directory.hpp"
#include "supervisor/hosts/far_host.hpp"
#include "supervisor/hosts/near_hosts.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/free_port.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/support/skip.hpp"

using namespace carousel;
using namespace carousel::supervisor;
using carousel::test::contains;
using nlohmann::json;

namespace {

const std::string secret(32, 't');

/// A pipeline of this host and of host b, without stages.
struct two_hosts {
    two_hosts() {
        ::setenv("XDG_RUNTIME_DIR", folder.path.c_str(), 1);
        b.name = "b";
        b.address = "127.0.0.1";
        b.launcher = launcher_kind::none;
        b.port = test::free_port();
        plan.near = "here";
        plan.name = "pair";
        plan.grace_s = {{"", 0.1}, {"b", 0.1}};
        plan.plan = {{"stages", json::array()}};
        plan.token = (folder.path / "pair.token").string();
        write_secret(plan.token, secret);
        run::make_run_folder("pair");
    }
    scratch_folder folder;
    host_spec b;
    hosts_plan plan;
};

struct noted_orders final : host_orders {
    std::vector<std::string> said;
    void say(const std::string& text) override { said.push_back(text); }
    void end_the_run(const std::string&) override {}
    void end_at_once(const std::string&) override {}
    void end_the_stream(const std::string&, u64, const std::string&) override {}
    void host_has_failed(const std::string& host, const std::string& what, int) override {
        said.push_back(host + " has failed: " + what);
    }
    json carry_out_for(const json&) override { return json::object(); }
    void answer_for(int) override {
        if (meanwhile) meanwhile();
    }
    std::function<void()> meanwhile;  ///< the run is over, and the near host is told
    void answered(u64, const json&) override {}
    void line_of(const std::string&, const std::string&, i32, const std::string& line) override {
        said.push_back(line);
    }
    [[nodiscard]] bool has_said(const std::string& what) const {
        return std::any_of(said.begin(), said.end(),
                           [&](const std::string& s) { return s.find(what) != std::string::npos; });
    }
};

/// Host b's part of it, which runs.
struct part_of_b : two_hosts {
    part_of_b() {
        run::make_run_folder("pair.b");
        run::write_whole_file(run::run_folder("pair.b") + "/near-run", "1");
        far.attend(loop, orders, "1");
    }
    noted_orders orders;
    event_loop loop;
    far_host far{plan, b};
};

/// Rounds until it is so, for two seconds at most.
template <typename Round, typename So>
bool until(Round&& round, So&& so) {
    for (const u64 end = now_ns() + 2 * ns_per_s; !so(); ::usleep(1000)) {
        if (now_ns() > end) return false;
        round();
    }
    return true;
}

/// Who connects to host b, and says `first` once it is believed: its proof and that come together.
struct caller {
    caller(const host_spec& to, json what)
        : stream(sealed_stream::connect(to.address, to.port), sealed_stream::side::near, secret, now_ns()),
          first(std::move(what)) {}
    sealed_stream stream;
    json first;
    std::vector<json> heard;
    void go_on() {
        for (json& m : stream.advance(now_ns())) heard.push_back(std::move(m));
        if (stream.open() && !first.is_null()) stream.send(std::exchange(first, nullptr));
    }
};

json hello_to_b(const hosts_plan& plan) {
    return {{"hello", {{"host", "b"}, {"pipeline", "pair"}, {"run", "1"}, {"plan", plan.plan}}}};
}

/// A `carousel host` that says to whoever finds it that it runs, and then something else.
struct odd_far_host {
    odd_far_host(const host_spec& at, json what) : saying(std::move(what)) {
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(static_cast<u16>(at.port));
        ::inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
        listener.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        const int on = 1;
        (void)::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        REQUIRE(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
        REQUIRE(::listen(listener.get(), 8) == 0);
    }
    void go_on() {
        shm::unique_fd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (fd) {
            stream =
                std::make_unique<sealed_stream>(std::move(fd), sealed_stream::side::far, secret, now_ns());
            ++connections;
        }
        if (!stream) return;
        for (const json& m : stream->advance(now_ns())) {
            if (!m.contains("hello")) continue;
            stream->send({{"hello", {{"plan", m["hello"]["plan"]}, {"running", true}}}});
            stream->send(saying);
        }
    }
    json saying;
    shm::unique_fd listener;
    std::unique_ptr<sealed_stream> stream;
    u32 connections = 0;
};

}  // namespace

TEST_CASE(
    "a hello of wrong types from who knows the token costs that connection, and the next one is heard") {
    if (!hosts::can_seal()) CAROUSEL_SKIP("built without libcrypto");
    part_of_b w;
    far_host& far = w.far;
    noted_orders& orders = w.orders;
    for (const json& odd :
         {json{{"hello", {{"host", 5}}}}, json{{"hello", {{"host", "b"}, {"plan", 7}}}},
          json{{"hello", {{"host", "b"}, {"plan", w.plan.plan}, {"run", json::array()}}}}}) {
        CAPTURE(odd.dump());
        caller other(w.b, odd);
        CHECK(until(
            [&] {
                other.go_on();
                far.tick(now_ns());
            },
            [&] { return other.stream.closed(); }));
        for (int k = 0; k < 3; ++k) far.tick(now_ns());
    }
    const auto told = std::count_if(orders.said.begin(), orders.said.end(), [](const std::string& s) {
        return s.find("says what this version does not know") != std::string::npos;
    });
    CHECK(told == 1);
    caller near(w.b, hello_to_b(w.plan));
    CHECK(until(
        [&] {
            near.go_on();
            far.tick(now_ns());
        },
        [&] { return !near.heard.empty(); }));
    REQUIRE_FALSE(near.heard.empty());
    CHECK(near.heard[0].contains("hello"));
    far.leave();
}

TEST_CASE("a far host that says what can't be read is a host that is away, and the run goes on") {
    if (!hosts::can_seal()) CAROUSEL_SKIP("built without libcrypto");
    for (const json& odd : {json{{"log", {5}}}, json{{"log", {{{"stage", 5}}}}}, json{{"ended", 5}},
                            json{{"ended", {{"code", "x"}}}}, json{{"ended", {{"code", 0}, {"line", 5}}}},
                            json{{"ended", {{"code", 0}, {"alone", "no"}}}}}) {
        CAPTURE(odd.dump());
        two_hosts w;
        w.plan.others = {w.b};
        odd_far_host far(w.b, odd);
        near_hosts near(w.plan);
        event_loop loop;
        noted_orders orders;
        near.attend(loop, orders, "1");
        u64 now = now_ns();
        for (int k = 0; k < 1000 && far.connections < 2; ++k, now += 5 * ns_per_ms) {  // it is tried again
            far.go_on();
            REQUIRE_NOTHROW(near.tick(now));
            ::usleep(100);
        }
        CHECK(far.connections == 2);
        CHECK(
            orders.has_said("host b is lost (it says what this version does not know: is it of another "
                            "version?)"));
        CHECK_FALSE(orders.has_said("has failed"));
        far.stream.reset();
        far.listener.reset();
        CHECK(near.code() == 0);
        CHECK(near.closing_lines().empty());
        near.leave();
    }
}

TEST_CASE("how a part has ended is told, however long its report is, and what was left out of it is named") {
    if (!hosts::can_seal()) CAROUSEL_SKIP("built without libcrypto");
    part_of_b w;
    far_host& far = w.far;
    noted_orders& orders = w.orders;
    std::unique_ptr<caller> near;
    json ended;
    orders.meanwhile = [&] {
        if (!near) near = std::make_unique<caller>(w.b, hello_to_b(w.plan));
        near->go_on();
        for (const json& m : near->heard)
            if (m.contains("ended") && ended.is_null()) {
                ended = m["ended"];
                near->stream.send({{"bye", true}});
            }
    };
    const json report{{"frames", 7},
                      {"recoveries", std::string(1000, 'r')},
                      {"stages", std::string(17U << 20U, 's')},
                      {"problems", json::array({std::string(1U << 20U, 'p')})}};
    far.tell_outcome(1, report, "pair.b: 7 frames");
    REQUIRE(ended.is_object());
    CHECK(ended["code"] == 1);
    CHECK(ended["report"]["frames"] == 7);
    CHECK(ended["report"]["problems"] == report["problems"]);
    CHECK(ended["report"]["left_out"] == json::array({"recoveries", "stages"}));
    far.leave();
}

TEST_CASE("strangers who say nothing to a far host do not keep its near host out") {
    if (!hosts::can_seal()) CAROUSEL_SKIP("built without libcrypto");
    two_hosts w;
    far_host far(w.plan, w.b);
    std::vector<shm::unique_fd> strangers;
    for (int k = 0; k < 20; ++k) {
        strangers.push_back(sealed_stream::connect(w.b.address, w.b.port));
        far.tick(now_ns());
    }
    caller near(w.b, hello_to_b(w.plan));
    const u64 begun = now_ns();
    CHECK(until(
        [&] {
            near.go_on();
            far.tick(begun);  // the strangers have all their time still
        },
        [&] { return !near.heard.empty(); }));
}
