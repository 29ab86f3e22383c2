// The control socket without an engine: what reaches its handler, and which connections are closed.
#include <fcntl.h>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"
#include "os/console.hpp"
#include "supervisor/engine/control_socket.hpp"
#include "supervisor/engine/problems.hpp"
#include "supervisor/plan/run_setup.hpp"
#include "supervisor/processes/process_table.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

using namespace carousel;
using namespace carousel::supervisor;

run_setup one_stage(const std::string& folder) {
    run_setup s;
    s.name = "one";
    s.directory = folder;
    stage_setup st;
    st.spec.name = "source";
    s.stages.push_back(st);
    return s;
}

struct noted_messages final : connection_handler {
    std::vector<std::string> messages;
    u32 closed = 0;
    void on_message(control_socket& from, connection& c, shm::message& m) override {
        messages.push_back(m.text);
        if (m.text == "break") throw shm_error("it is broken");
        if (m.text == "stage") c.stage = true;
        if (m.text == "later") c.request_id = 7;
        if (m.text == "release") released = from.release(c.fd.get());
    }
    void on_close(const connection& c) override {
        CHECK(c.fd.get() >= 0);
        ++closed;
    }
    shm::unique_fd released;
};

struct made_socket {
    scratch_folder files;
    run_setup setup = one_stage(files.path);
    event_loop loop;
    console out{-1, false, false};
    process_table seats{setup, loop, out};
    shortage_watch shortage{seats};
    noted_messages seen;
    std::vector<std::string> log;
    control_socket socket{loop, seen, shortage, [this](const std::string& text) { log.push_back(text); }};
    std::string path = files.path / "control.sock";

    made_socket() {
        socket.listen(path);
        socket.open();
    }
    void turn() {
        for (int k = 0; k < 4; ++k) loop.run_once(0);
    }
    shm::unique_fd client() {
        shm::unique_fd fd = shm::connect_to(path);
        REQUIRE(fd);
        turn();
        return fd;
    }
    void send(const shm::unique_fd& fd, const std::string& text) {
        REQUIRE(shm::send_message(fd.get(), text));
        turn();
    }
    static std::string reply_on(const shm::unique_fd& fd) {
        shm::message m;
        return shm::receive_message(fd.get(), m) == shm::receive_status::ok ? m.text : "";
    }
};

}  // namespace

TEST_CASE("each message reaches the handler, and a closed connection is reported once") {
    made_socket s;
    shm::unique_fd a = s.client(), b = s.client();
    s.send(a, "one");
    s.send(b, "two");
    CHECK(s.seen.messages == std::vector<std::string>{"one", "two"});
    a.reset();
    s.turn();
    CHECK(s.seen.closed == 1);
    s.send(b, "three");
    CHECK(s.seen.messages.size() == 3);
}

TEST_CASE("a message that cannot be read costs its sender the connection, and no other") {
    made_socket s;
    const shm::unique_fd a = s.client(), b = s.client();
    s.send(a, "break");
    CHECK(s.seen.closed == 1);
    CHECK(s.log.size() == 1);
    CHECK(nlohmann::json::parse(made_socket::reply_on(a)).at("ok") == false);
    s.send(b, "two");
    CHECK(s.seen.messages.back() == "two");
}

TEST_CASE("the answer to a request for another host goes to the connection that waits for it, once") {
    made_socket s;
    const shm::unique_fd a = s.client(), b = s.client();
    s.send(a, "one");
    s.send(b, "later");
    s.socket.answer_request(8, {{"ok", true}});
    CHECK(made_socket::reply_on(b).empty());
    s.socket.answer_request(7, {{"ok", true}});
    CHECK(made_socket::reply_on(b) == R"({"ok":true})");
    CHECK(made_socket::reply_on(a).empty());
    s.socket.answer_request(7, {{"ok", true}});
    CHECK(made_socket::reply_on(b).empty());
}

TEST_CASE("a released connection is another object's: it stays open and is not reported") {
    made_socket s;
    shm::unique_fd a = s.client();
    s.send(a, "release");
    CHECK(s.seen.released);
    REQUIRE(shm::send_message(a.get(), "more"));
    s.turn();
    CHECK(s.seen.messages.size() == 1);
    CHECK(made_socket::reply_on(s.seen.released) == "more");
    CHECK(s.seen.closed == 0);
}

TEST_CASE("a shortage that lasts ends the run, and one that passes does not") {
    made_socket s;
    seat& source = *s.seats.seats.front();
    source.start_short = true;
    source.shortage = "source: no process is left";
    u64 now = 100 * ns_per_s;
    s.shortage.tick(true, false, now);
    CHECK(s.shortage.is_short());
    SECTION("it passes") {
        source.start_short = false;
        s.shortage.tick(true, false, now += 2 * ns_per_s);
        CHECK_FALSE(s.shortage.is_short());
        CHECK_FALSE(s.seats.failure);
    }
    SECTION("it lasts") {
        s.shortage.tick(true, false, now += 60 * ns_per_s);
        REQUIRE(s.seats.failure);
        CHECK(s.seats.failure->what.find("no process is left") != std::string::npos);
    }
    SECTION("the run ends anyway") {
        s.shortage.tick(true, true, now += 60 * ns_per_s);
        CHECK_FALSE(s.seats.failure);
    }
}
