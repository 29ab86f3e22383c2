// The private MPS daemon, against a program that behaves like NVIDIA's and misbehaves on request.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "core/clock.hpp"
#include "shm/process_id.hpp"
#include "supervisor/mps/mps_control.hpp"
#include "supervisor/mps/mps_domain.hpp"
#include "tests/pipelines/spec/world.hpp"
#include "tests/pipelines/supervisor/mps/fake_mps/fake_mps.hpp"

namespace {

using namespace carousel;
using namespace carousel::supervisor;
using namespace carousel::test;

/// A domain's folder; it must be empty at the end.
struct place {
    world w;
    mps_control control{shm::mps_folder(w.folder()), "0"};
    [[nodiscard]] std::size_t processes() const {
        return shm::marked_processes(shm::mps_mark(shm::mps_folder(w.folder()))).size();
    }
    [[nodiscard]] bool is_empty() const {
        return processes() == 0 && !std::filesystem::exists(control.folder());
    }
    ~place() { (void)control.end(0); }
};

/// The daemons that a dead supervisor has left, with the numbers of the serving and of the spare one; "": the
/// other one has no name.
struct left_daemons {
    mps_control other;

    left_daemons(const place& p, const char* serving, const char* spare)
        : other(shm::mps_folder(p.w.folder()), "1") {
        p.control.start();
        other.start();
        const std::string folder = shm::mps_folder(p.w.folder());
        std::filesystem::create_symlink(serving, folder + "/serving");
        if (*spare != '\0') std::filesystem::create_symlink(spare, folder + "/spare");
    }
};

template <typename F>
bool turn_until(event_loop& loop, F&& holds) {
    for (const u64 until = now_ns() + 20 * ns_per_s; now_ns() < until && !holds();) loop.run_once(20);
    return holds();
}

}  // namespace

TEST_CASE("a private MPS daemon is started, asked, and ended with its server and its folder") {
    const place p;
    const fake_mps fake("", p.w.path("asked"));
    p.control.start();
    CHECK(p.control.daemon().pid != 0);
    CHECK(p.processes() == 2);
    CHECK(p.control.is_responding());
    CHECK(p.control.terminate_client(4711) == "");
    CHECK_THAT(fake.log(), contains(" 4711\n"));
    CHECK(p.control.end(5000));
    CHECK_THAT(fake.log(), contains("quit"));
    CHECK(p.is_empty());
}

TEST_CASE("daemon and server get the settings of MPS and no other variable") {
    const place p;
    const fake_mps fake("", p.w.path("asked"));
    ::setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "50", 1);
    ::setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    ::setenv("CUDA_MPS_PROTOCOL_VERSION", "3", 1);
    ::setenv("CAROUSEL_TEST_SECRET", "x", 1);
    p.control.start();
    for (const char* name : {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "CUDA_VISIBLE_DEVICES",
                             "CUDA_MPS_PROTOCOL_VERSION", "CAROUSEL_TEST_SECRET"})
        ::unsetenv(name);
    std::string text = read_file(fmt::format("/proc/{}/environ", p.control.daemon().pid)).value_or("");
    std::replace(text.begin(), text.end(), '\0', '\n');
    INFO(text);
    CHECK_THAT(text, contains("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50\n"));
    CHECK_THAT(text, contains("CUDA_MPS_PROTOCOL_VERSION=2\n"));
    CHECK_THAT(text, !contains("CUDA_VISIBLE_DEVICES") && !contains("CAROUSEL_TEST_SECRET"));
    CHECK(p.control.end(5000));
    CHECK(p.is_empty());
}

TEST_CASE("a client has one connection to the device, unless the environment sets the number") {
    const mps_control control("/somewhere");
    const auto has_one = [&] {
        const std::vector<std::string> words = control.client_environment(1);
        return std::count(words.begin(), words.end(), "CUDA_DEVICE_MAX_CONNECTIONS=1") == 1;
    };
    CHECK(has_one());
    const variable asked("CUDA_DEVICE_MAX_CONNECTIONS", "4");
    CHECK_FALSE(has_one());
}

TEST_CASE("an unavailable daemon is reported with reason and remedy, without leftovers") {
    const place p;
    struct row {
        const char *how, *message;
    };
    for (const row& r : {row{"refuse", "exit code 1: no permission, says the fake"},
                         row{"never", "has not returned within"}, row{"mute", "no daemon answers"}}) {
        CAPTURE(r.how);
        const fake_mps fake(r.how, p.w.path("asked"));
        CHECK_THROWS_WITH(p.control.start(2000), contains(r.message) && contains("isolation = \"process\""));
        CHECK(p.is_empty());
    }
    const variable path("PATH", p.w.folder());
    CHECK_THROWS_WITH(p.control.start(), contains("no nvidia-cuda-mps-control in PATH"));
}

TEST_CASE("a folder too long for a unix socket is refused before anything is started") {
    const place p;
    const fake_mps fake("", p.w.path("asked"));
    const mps_control deep(p.w.folder() + "/" + std::string(100, 'd'));
    CHECK_THROWS_WITH(deep.start(), contains("too long for a unix socket"));
    CHECK(fake.log().empty());
}

TEST_CASE("a daemon slow to start, or hanging over a quit or a client, delays no process for long") {
    const place p;
    const fake_mps fake("slow quit-hangs terminate-hangs", p.w.path("asked"));
    p.control.start();
    CHECK_THAT(p.control.terminate_client(4711, 300), contains("no answer within 0.3 s"));
    CHECK(p.control.end(300));
    CHECK(p.is_empty());
}

TEST_CASE("the domain renews itself off the event loop and reports when its daemon dies") {
    const place p;
    const fake_mps fake("", p.w.path("asked"));
    event_loop loop;
    {
        mps_domain domain(p.w.folder(), loop);
        bool died = false;
        domain.on_death([&] { died = true; });
        domain.start();
        CHECK(domain.is_up());
        CHECK(domain.generation() == 1);
        const i32 first = domain.daemon_pid();
        ::kill(first, SIGKILL);
        CHECK(turn_until(loop, [&] { return died; }));
        CHECK_FALSE(domain.is_up());
        std::string why = "not called";
        domain.renew(domain.spare_generation(), {[&](const std::string& w) { why = w; }, [] {}});
        CHECK(turn_until(loop, [&] { return why != "not called"; }));
        CHECK(why == "");
        CHECK(domain.has_ended(1));
        CHECK_FALSE(domain.has_ended(2));
        CHECK(domain.generation() == 2);
        CHECK(domain.is_up());
        CHECK(p.processes() == 2);  // the first one's server was ended, too
    }
    CHECK(p.is_empty());
}

TEST_CASE("if a daemon is abandoned, the spare one serves at once, and the old one is ended") {
    const place p;
    const fake_mps fake("", p.w.path("asked"));
    event_loop loop;
    {
        mps_domain domain(p.w.folder(), loop);
        domain.start();
        const auto first = domain.client_environment(1);
        domain.make_spare();
        CHECK(turn_until(loop, [&] { return domain.has_spare(); }));
        CHECK(domain.spare_generation() == 2);
        CHECK_THAT(fake.log(), contains("start_server -uid"));
        CHECK(p.processes() == 4);
        bool over = false;
        std::string why = "not called";
        domain.renew(domain.spare_generation(),
                     {[&](const std::string& w) { why = w; }, [&] { over = true; }});
        CHECK(domain.is_up());  // nothing was waited for
        CHECK(domain.generation() == 2);
        CHECK(domain.client_environment(2)[0] != first[0]);
        CHECK_FALSE(domain.has_ended(1));
        CHECK(turn_until(loop, [&] { return over && why == ""; }));
        CHECK(domain.has_ended(1));
        CHECK_FALSE(domain.has_ended(2));
        CHECK(p.processes() == 2);
        domain.make_spare();
        CHECK(turn_until(loop, [&] { return domain.has_spare(); }));
        CHECK(p.processes() == 4);
    }
    CHECK(p.is_empty());
}

TEST_CASE("clients whose end is pending are ended by their server before a spare one replaces it") {
    const place p;
    const fake_mps fake("", p.w.path("asked"));
    event_loop loop;
    mps_domain domain(p.w.folder(), loop);
    domain.start();
    domain.make_spare();
    REQUIRE(turn_until(loop, [&] { return domain.has_spare(); }));
    std::vector<std::string> ended;
    for (const i32 pid : {4711, 4712})  // the second one waits for the first
        domain.end_client(pid, [&](const std::string& why) { ended.push_back(why); });
    bool over = false;
    domain.renew(domain.spare_generation(), {[](const std::string&) {}, [&] { over = true; }});
    CHECK(turn_until(loop, [&] { return over; }));
    CHECK(ended == std::vector<std::string>{"", ""});
    CHECK_THAT(fake.log(), contains(" 4711\n") && contains(" 4712\n"));
    CHECK(domain.has_ended(1));
}

TEST_CASE("a spare daemon that can't be started is reported once, and is started again") {
    const place p;
    const fake_mps fake("", p.w.path("asked"));
    const auto set_fake = [&](const char* how) { std::ofstream(p.w.path("asked.fake/how")) << how; };
    event_loop loop;
    mps_domain domain(p.w.folder(), loop);
    domain.start();
    set_fake("refuse");
    domain.make_spare();
    std::string why;
    CHECK(turn_until(loop, [&] {
        why += domain.take_spare_failure();
        return !why.empty();
    }));
    CHECK_THAT(why, contains("no permission"));
    CHECK(domain.take_spare_failure() == "");
    CHECK_FALSE(domain.has_spare());
    set_fake("");
    REQUIRE(turn_until(loop, [&] { return domain.make_spare(), domain.has_spare(); }));
    CHECK(domain.spare_generation() == 4);  // 2 was that of the failed start
    domain.drop_spare();
    CHECK_FALSE(domain.has_spare());
    CHECK_FALSE(std::filesystem::is_symlink(shm::mps_folder(p.w.folder()) + "/spare"));
}

TEST_CASE("without a live spare daemon the domain restarts at its place") {
    const place p;
    const fake_mps fake("", p.w.path("asked"));
    event_loop loop;
    mps_domain domain(p.w.folder(), loop);
    domain.start();
    const auto first = domain.client_environment(1);
    domain.make_spare();
    CHECK(turn_until(loop, [&] { return domain.has_spare(); }));
    REQUIRE(
        shm::end_marked_processes(shm::mps_part_mark(shm::mps_folder(p.w.folder()) + "/1"), 5 * ns_per_s));
    std::string why = "not called";
    domain.renew(domain.spare_generation(), {[&](const std::string& w) { why = w; }, [] {}});
    CHECK_FALSE(domain.is_up());
    CHECK(turn_until(loop, [&] { return why == ""; }));
    CHECK(domain.client_environment(3)[0] == first[0]);
    CHECK(domain.has_ended(2));
    CHECK(domain.generation() == 3);  // 2 was the spare one
}

TEST_CASE("an adopter of a run with two daemons keeps the serving one and ends the other") {
    const place p;
    const fake_mps fake("", p.w.path("asked"));
    event_loop loop;
    const left_daemons left(p, "2", "");
    const i32 pid_before = left.other.daemon().pid;
    {
        mps_domain domain(p.w.folder(), loop);
        CHECK(domain.adopt());
        CHECK(domain.daemon_pid() == pid_before);
        CHECK(domain.generation() == 2);
        SECTION("no process may be a client of the other daemon, which has no name") {
            domain.mark_used(2);
            domain.end_nameless();
            CHECK(turn_until(loop, [&] { return domain.has_ended(1); }));
            CHECK(p.processes() == 2);
        }
        SECTION("a process may be its client: it is left until that process's words are revoked") {
            domain.mark_used(3);
            domain.end_nameless();
            for (int k = 0; k < 10; ++k) loop.run_once(20);
            CHECK_FALSE(domain.has_ended(1));
            CHECK(p.processes() == 4);
        }
    }
    CHECK(p.is_empty());
}

TEST_CASE("an adopter keeps a spare daemon that was ready, and its number") {
    const place p;
    const fake_mps fake("", p.w.path("asked"));
    event_loop loop;
    const left_daemons left(p, "7", "10");
    const i32 pid_before = left.other.daemon().pid;
    {
        mps_domain domain(p.w.folder(), loop);
        CHECK(domain.adopt());
        CHECK(domain.generation() == 7);
        CHECK(domain.spare_generation() == 10);
        CHECK_FALSE(domain.has_ended(7));
        SECTION("it serves") {
            bool over = false;
            domain.renew(domain.spare_generation(), {[](const std::string&) {}, [&] { over = true; }});
            CHECK(domain.generation() == 10);
            CHECK(domain.daemon_pid() == pid_before);
            CHECK(std::filesystem::read_symlink(shm::mps_folder(p.w.folder()) + "/serving") == "10");
            CHECK_FALSE(std::filesystem::is_symlink(shm::mps_folder(p.w.folder()) + "/spare"));
            CHECK(turn_until(loop, [&] { return over; }));
            CHECK(domain.has_ended(7));
        }
        SECTION("its server dies: the next spare has a number that no client had") {
            REQUIRE(::kill(left.other.server().pid, SIGKILL) == 0);
            CHECK(turn_until(loop, [&] { return domain.spare_generation() == 0; }));
            CHECK(turn_until(loop, [&] { return domain.make_spare(), domain.has_spare(); }));
            CHECK(domain.spare_generation() == 12);
        }
    }
    CHECK(p.is_empty());
}

TEST_CASE("an adopter leaves a spare domain whose daemon is dead until its clients' words are revoked") {
    const place p;
    const fake_mps fake("", p.w.path("asked"));
    event_loop loop;
    const left_daemons left(p, "1", "2");
    REQUIRE(::kill(left.other.daemon().pid, SIGKILL) == 0);
    {
        mps_domain domain(p.w.folder(), loop);
        CHECK(domain.adopt());
        domain.end_nameless();
        CHECK(domain.generation() == 1);
        CHECK(domain.spare_generation() == 0);
        for (int k = 0; k < 10; ++k) loop.run_once(20);
        CHECK(p.processes() == 3);  // the server of the spare domain still runs
        domain.mark_used(5);
        std::string why = "not called";
        domain.renew(0, {[&](const std::string& w) { why = w; }, [] {}});
        CHECK(turn_until(loop, [&] { return why == ""; }));
        CHECK(domain.generation() == 6);
        CHECK(domain.has_ended(5));
        CHECK(p.processes() == 2);
    }
    CHECK(p.is_empty());
}

TEST_CASE("the death of a domain's server is noticed although its daemon lives") {
    const place p;
    const fake_mps fake("unlisted", p.w.path("asked"));  // as before the first client
    event_loop loop;
    mps_domain domain(p.w.folder(), loop);
    domain.start();
    const auto queries = [&] {
        const std::string log = fake.log();
        return std::count(log.begin(), log.end(), '\n');
    };
    const auto turn_until_queried = [&](auto before) {
        CHECK(turn_until(loop, [&] { return domain.server_dead_since_ns() == 0 && queries() > before; }));
        for (int k = 0; k < 10; ++k) loop.run_once(20);
    };
    turn_until_queried(queries());
    std::ofstream(p.w.path("asked.fake/how")) << "";
    turn_until_queried(queries());
    REQUIRE(::kill(p.control.server().pid, SIGKILL) == 0);
    CHECK(turn_until(loop, [&] { return domain.server_dead_since_ns() != 0; }));
    CHECK(domain.is_up());
}

TEST_CASE("a dead supervisor's daemon is adopted, and a second start ends the existing daemon") {
    const place p;
    const fake_mps fake("", p.w.path("asked"));
    event_loop loop;
    p.control.start();
    const i32 pid_before = p.control.daemon().pid;
    {
        mps_domain domain(p.w.folder(), loop);
        CHECK(domain.adopt());
        CHECK(domain.daemon_pid() == pid_before);
        CHECK(domain.generation() == 1);
    }
    CHECK(p.is_empty());
    mps_domain none(p.w.folder(), loop);
    CHECK_FALSE(none.adopt());
}
