// What an authenticated peer may send to a supervisor of several hosts while it has another version or is
// damaged: only that connection ends.

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
#include "core/secret.hpp"
#include "run/directory.hpp"
#include "shm/runtime_folder.hpp"
#include "supervisor/hosts/coordinator.hpp"
#include "supervisor/hosts/remote_partition.hpp"
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
        plan.coordinator = "here";
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
    std::vector<std::string> lines;
    void log_line(const std::string& text) override { lines.push_back(text); }
    void end_the_run(const std::string&) override {}
    void end_at_once(const std::string&) override {}
    void end_the_stream(const std::string&, u64, const std::string&) override {}
    void host_has_failed(const std::string& host, const std::string& what, int) override {
        lines.push_back(host + " has failed: " + what);
    }
    json carry_out_for(const json&) override { return json::object(); }
    void serve_requests(int) override {
        if (meanwhile) meanwhile();
    }
    std::function<void()> meanwhile;  ///< the run has ended, and the coordinator is notified
    void answered(u64, const json&) override {}
    void line_of(const std::string&, const std::string&, i32, const std::string& line) override {
        lines.push_back(line);
    }
    [[nodiscard]] bool has_logged(const std::string& what) const {
        return std::any_of(lines.begin(), lines.end(),
                           [&](const std::string& s) { return s.find(what) != std::string::npos; });
    }
};

/// Host b's part of the run, which is running.
struct partition_of_b : two_hosts {
    partition_of_b() {
        run::make_run_folder("pair.b");
        shm::write_whole_file(run::run_folder("pair.b") + "/coordinator-run", "1");
        partition.attend(loop, orders, "1");
    }
    noted_orders orders;
    event_loop loop;
    remote_partition partition{plan, b};
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

/// A peer that connects to host b and sends `first` once it is authenticated: its proof and that arrive
/// together.
struct caller {
    caller(const host_spec& to, json what)
        : stream(sealed_stream::connect(to.address, to.port), sealed_stream::endpoint::coordinator, secret,
                 now_ns()),
          first(std::move(what)) {}
    sealed_stream stream;
    json first;
    std::vector<json> received;
    void poll() {
        for (json& m : stream.advance(now_ns())) received.push_back(std::move(m));
        if (stream.open() && !first.is_null()) stream.send(std::exchange(first, nullptr));
    }
};

json hello_to_b(const hosts_plan& plan) {
    return write_message(host_message::hello{"b", "pair", "1", plan.plan, {}});
}

/// A `carousel host` that first reports to every peer that it runs, and then something else.
struct malformed_partition {
    malformed_partition(const host_spec& at, json what) : reply(std::move(what)) {
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
    void poll() {
        shm::unique_fd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (fd) {
            stream = std::make_unique<sealed_stream>(std::move(fd), sealed_stream::endpoint::partition,
                                                     secret, now_ns());
            ++connections;
        }
        if (!stream) return;
        for (const json& m : stream->advance(now_ns())) {
            if (m.at("type") != "hello") continue;
            stream->send(write_message(host_message::agreed{m["plan"], true}));
            stream->send(reply);
        }
    }
    json reply;
    shm::unique_fd listener;
    std::unique_ptr<sealed_stream> stream;
    u32 connections = 0;
};

}  // namespace

TEST_CASE("a hello of wrong types from an authenticated peer costs only that connection") {
    if (!hosts::can_seal()) CAROUSEL_SKIP("built without libcrypto");
    partition_of_b w;
    remote_partition& partition = w.partition;
    noted_orders& orders = w.orders;
    for (const json& malformed :
         {json{{"type", "hello"}, {"host", 5}}, json{{"type", "hullo"}}, json{{"hello", json::object()}},
          json{{"type", "hello"}, {"host", "b"}, {"plan", w.plan.plan}, {"run", json::array()}}}) {
        CAPTURE(malformed.dump());
        caller other(w.b, malformed);
        CHECK(until(
            [&] {
                other.poll();
                partition.tick(now_ns());
            },
            [&] { return other.stream.closed(); }));
        for (int k = 0; k < 3; ++k) partition.tick(now_ns());
    }
    const auto reported = std::count_if(orders.lines.begin(), orders.lines.end(), [](const std::string& s) {
        return s.find("sent an unknown message") != std::string::npos;
    });
    CHECK(reported == 1);
    caller coordinator_end(w.b, hello_to_b(w.plan));
    CHECK(until(
        [&] {
            coordinator_end.poll();
            partition.tick(now_ns());
        },
        [&] { return !coordinator_end.received.empty(); }));
    REQUIRE_FALSE(coordinator_end.received.empty());
    CHECK(coordinator_end.received[0].at("type") == "agreed");
    partition.leave();
}

TEST_CASE("a remote host with an unreadable message counts as lost, and the run continues") {
    if (!hosts::can_seal()) CAROUSEL_SKIP("built without libcrypto");
    for (const json& malformed :
         {json{{"type", "log"}, {"lines", {5}}}, json{{"type", "log"}, {"lines", {{{"stage", 5}}}}},
          json{{"type", "ended"}, {"outcome", 5}}, json{{"type", "ended"}, {"outcome", {{"code", "x"}}}},
          json{{"type", "ended"}, {"outcome", {{"code", 0}, {"line", 5}}}},
          json{{"type", "ended"}, {"outcome", {{"code", 0}, {"alone", "no"}}}}}) {
        CAPTURE(malformed.dump());
        two_hosts w;
        w.plan.others = {w.b};
        malformed_partition partition(w.b, malformed);
        coordinator coordinator_end(w.plan);
        event_loop loop;
        noted_orders orders;
        coordinator_end.attend(loop, orders, "1");
        u64 now = now_ns();
        for (int k = 0; k < 1000 && partition.connections < 2;
             ++k, now += 5 * ns_per_ms) {  // it is tried again
            partition.poll();
            REQUIRE_NOTHROW(coordinator_end.tick(now));
            ::usleep(100);
        }
        CHECK(partition.connections == 2);
        CHECK(
            orders.has_logged("host b is lost (it sent an unknown message: check whether its "
                              "version differs)"));
        CHECK_FALSE(orders.has_logged("has failed"));
        partition.stream.reset();
        partition.listener.reset();
        CHECK(coordinator_end.code() == 0);
        CHECK(coordinator_end.closing_lines().empty());
        coordinator_end.leave();
    }
}

TEST_CASE("a part's result is reported for any length of its report, and omissions are named") {
    if (!hosts::can_seal()) CAROUSEL_SKIP("built without libcrypto");
    partition_of_b w;
    remote_partition& partition = w.partition;
    noted_orders& orders = w.orders;
    std::unique_ptr<caller> coordinator_end;
    json ended;
    orders.meanwhile = [&] {
        if (!coordinator_end) coordinator_end = std::make_unique<caller>(w.b, hello_to_b(w.plan));
        coordinator_end->poll();
        for (const json& m : coordinator_end->received)
            if (m.at("type") == "ended" && ended.is_null()) {
                ended = m["outcome"];
                coordinator_end->stream.send(write_message(host_message::bye{}));
            }
    };
    const json report{{"frames", 7},
                      {"recoveries", std::string(1000, 'r')},
                      {"stages", std::string(17U << 20U, 's')},
                      {"problems", json::array({std::string(1U << 20U, 'p')})}};
    partition.report_outcome(1, report, "pair.b: 7 frames");
    REQUIRE(ended.is_object());
    CHECK(ended["code"] == 1);
    CHECK(ended["report"]["frames"] == 7);
    CHECK(ended["report"]["problems"] == report["problems"]);
    CHECK(ended["report"]["left_out"] == json::array({"recoveries", "stages"}));
    partition.leave();
}

TEST_CASE("silent unauthenticated peers do not keep a remote host's coordinator out") {
    if (!hosts::can_seal()) CAROUSEL_SKIP("built without libcrypto");
    two_hosts w;
    remote_partition partition(w.plan, w.b);
    std::vector<shm::unique_fd> connections;
    for (int k = 0; k < 20; ++k) {
        connections.push_back(sealed_stream::connect(w.b.address, w.b.port));
        partition.tick(now_ns());
    }
    caller coordinator_end(w.b, hello_to_b(w.plan));
    const u64 begun = now_ns();
    CHECK(until(
        [&] {
            coordinator_end.poll();
            partition.tick(begun);  // the unauthenticated peers still have all their time
        },
        [&] { return !coordinator_end.received.empty(); }));
}
