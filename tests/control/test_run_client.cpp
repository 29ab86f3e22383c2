// A client against a supervisor of this test (a thread with a socket): the error messages of each way to
// address a run when no answer arrives.

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "control/client.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"
#include "shm/fd_socket.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;
using nlohmann::json;
using test::contains;

namespace {

/// Listens in a folder and answers by `reply`, "": not at all.
class listener {
public:
    listener(const std::string& folder, std::function<std::string(const json&)> reply)
        : reply_(std::move(reply)),
          socket_(shm::listen_at(folder + "/control.sock")),
          thread_([this] { serve(); }) {}
    ~listener() {
        ended_ = true;
        thread_.join();
    }
    listener(const listener&) = delete;
    listener& operator=(const listener&) = delete;
    std::vector<json> asked;  ///< read behind the asker's return

private:
    void serve() {
        while (!ended_) {
            pollfd p{socket_.get(), POLLIN, 0};
            if (::poll(&p, 1, 10) <= 0) continue;
            const shm::unique_fd client(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
            shm::message m;
            if (!client || shm::receive_message(client.get(), m, ns_per_s) != shm::receive_status::ok)
                continue;
            asked.push_back(json::parse(m.text));
            if (const std::string text = reply_(asked.back()); !text.empty())
                shm::send_message(client.get(), text);
        }
    }
    std::function<std::string(const json&)> reply_;
    shm::unique_fd socket_;
    std::atomic<bool> ended_{false};
    std::thread thread_;
};

struct place {
    scratch_folder folder;
    std::string path = folder.path.string();
    run::client by_path{path + "/control.sock", "mine"};
    run::client by_record{run::record{{7, 1}, "mine", "demo", "", "", "", path}};
};

std::string error_of(const run::client& c, f64 timeout_s = 5) {
    try {
        (void)c.ask(run::ps_request{}, 0, timeout_s);
        return "";
    } catch (const shm_error& e) {
        return e.what();
    }
}

}  // namespace

TEST_CASE("a request is sent to the named run, and its answer is returned") {
    const place p;
    listener there(p.path, [](const json&) { return R"({"ok":true,"message":"done"})"; });
    CHECK(p.by_path.ask(run::kill_request{"a", 9})["message"] == "done");
    CHECK(p.by_record.ask(run::end_request{})["ok"] == true);
    REQUIRE(there.asked.size() == 2);
    CHECK(there.asked[0] == json::parse(R"({"type":"kill","stage":"a","signal":9,"run_id":"mine"})"));
    CHECK(there.asked[1] == json::parse(R"({"type":"shutdown","run_id":"mine"})"));
}

TEST_CASE("a missing listener is reported by both clients with the address") {
    const place p;
    CHECK_THAT(error_of(p.by_path), contains("no supervisor at " + p.path + "/control.sock: "));
    CHECK_THAT(
        error_of(p.by_record),
        contains("pipeline \"demo\" (pid 7): no process listens at " + p.path) && contains("it is starting"));
}

TEST_CASE("a missing or invalid answer is reported with the name of the addressed supervisor") {
    const place p;
    SECTION("silence") {
        std::atomic<bool> stopped{false};
        const listener there(p.path, [&](const json&) {
            for (const u64 until = now_ns() + 20 * ns_per_s; !stopped && now_ns() < until;)
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
            return "{}";
        });
        CHECK(error_of(p.by_path, 0.05) ==
              "the supervisor didn't answer within 0.05 s: check whether it is stopped (`carousel ps`)");
        CHECK(error_of(p.by_record, 0.05) ==
              "pipeline \"demo\" (pid 7) has not answered within 0.05 s: check whether its supervisor is "
              "stopped");
        stopped = true;
    }
    SECTION("its end") {
        const listener there(p.path, [](const json&) { return ""; });
        CHECK_THAT(error_of(p.by_path), contains("the supervisor didn't answer within 5 s"));
        CHECK(error_of(p.by_record) == "pipeline \"demo\" (pid 7) ended before it answered");
    }
    SECTION("nonsense") {
        const listener there(p.path, [](const json&) { return "[1]"; });
        CHECK(error_of(p.by_path) ==
              "the supervisor's answer can't be read: check that both programs have the same version");
        CHECK_THAT(error_of(p.by_record),
                   contains("something other than a JSON object; check whether its version differs"));
    }
}

TEST_CASE("a listener that accepts no connection never blocks a client without a timeout") {
    const place p;
    const shm::unique_fd deaf = shm::listen_at(p.path + "/control.sock");
    std::vector<shm::unique_fd> queue;  // until it is full
    for (int k = 0; k < 4000; ++k) {
        queue.push_back(shm::connect_to(p.path + "/control.sock", 20 * ns_per_ms));
        if (!queue.back()) break;
    }
    REQUIRE_FALSE(queue.back());
    const u64 begun = now_ns();
    CHECK_THAT(error_of(p.by_path, 0.1), contains("didn't answer within 0.1 s"));
    CHECK(now_ns() - begun < 5 * ns_per_s);
}

TEST_CASE("a client that may wait waits for the listener to come") {
    const place p;
    std::optional<listener> late;
    std::thread starter([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        late.emplace(p.path, [](const json&) { return "{}"; });
    });
    CHECK_NOTHROW(p.by_record.ask(run::ps_request{}, 20));
    starter.join();
}

TEST_CASE("a request that fits no message is refused before it is sent") {
    const place p;
    CHECK_THROWS_AS(p.by_path.ask(run::kill_request{std::string(300'000, 'x'), 9}), config_error);
}
