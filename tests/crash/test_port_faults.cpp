// What a program may do to its port: interrupt it, fork, fill its disk.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <thread>

#include <carousel/port.hpp>
#include "device/cpu/context.hpp"
#include "ledger/ledger.hpp"
#include "stages/sdk/port_session.hpp"
#include "tests/crash/port_programs.hpp"
#include "tests/support/in_child.hpp"
#include "tests/support/signal_timer.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

/// A run whose source and first sink are ports, and which also has a stage that reads every frame.
class faulty_run : public run_fixture {
public:
    explicit faulty_run(const std::string& name, const std::string& keys = "",
                        const std::vector<std::string>& environment = {})
        : name_(name), file_(pipeline(name, text(name, keys))) {
        ::setenv("XDG_RUNTIME_DIR", path("runtime").c_str(), 1);
        start(file_, {}, environment);
        REQUIRE(wait_until([&] { return is("camera", "vacant") && is("analysis", "vacant"); }));
    }
    bool is(const std::string& port, const std::string& state) {
        const json row = stage(port);
        return row.is_object() && row.value("state", "") == state;
    }
    /// A session of a port in this process.
    [[nodiscard]] std::unique_ptr<port_session> enter(const std::string& port, bool writes) {
        return std::make_unique<port_session>(
            path("runtime") + "/carousel/" + name_, port, writes,
            [this](const device::device_id&) -> device::context& { return cpu_; });
    }
    void end_and_check() {
        signal(SIGINT);
        const int code = wait();
        INFO(log());
        CHECK(code == 0);
        check_undamaged(report());
    }
    [[nodiscard]] const std::string& file() const noexcept { return file_; }

private:
    static std::string text(const std::string& name, const std::string& keys) {
        return fmt::format(
            "[pipeline]\nname = \"{}\"\ndevice = \"cpu\"\nsupervisor_grace_s = 20\n{}\n"
            "[[stage]]\nname = \"camera\"\nrun = \"port\"\noutput = {{ value = \"u64[512]\" }}\n"
            "type = \"test.number\"\n"
            "[[stage]]\nname = \"analysis\"\nrun = \"port\"\ninputs = [\"camera\"]\n"
            "[[stage]]\nname = \"witness\"\nrun = \"{}/carousel-test-number\"\ninputs = [\"camera\"]\n"
            "sink = true\n",
            name, keys, programs());
    }

    std::string name_, file_;
    device::cpu::context cpu_{1};
};

void fill(writer_frame& f) {
    const plane_view<u64> value = f.plane<u64>("value");
    for (u64 k = 0; k < value.extent(0); ++k) value.data()[k] = f.frame_number();
}

void write_one(writer_port& w) {
    writer_frame f = w.next(20);
    REQUIRE(f);
    fill(f);
    f.commit();
}

u64 read_one(reader_port& r) {
    reader_frame* const f = r.next(20);
    REQUIRE(f != nullptr);
    const u64 n = f->frame_number();
    f->commit();
    return n;
}

}  // namespace

TEST_CASE("a program with a profiler's timer opens every port of a run that answers late") {
    faulty_run run("late");
    const open_run opened = open("late", {.device = "", .wait_s = 0});
    // Stopped for as long as many signals take; the first missing reply ends the call (wait_s = 0).
    const auto late = [&](auto call) {
        run.signal(SIGSTOP);
        std::thread resumes([&] {
            block_signals();
            sleep_s(0.15);
            run.signal(SIGCONT);
        });
        {
            const signal_timer timer;
            CHECK_NOTHROW(call());
        }
        resumes.join();
    };
    late([&] { (void)opened.parameters(); });
    late([&] { (void)opened.latest("camera"); });
    late([&] { (void)opened.reader("analysis"); });
    late([&] { (void)opened.writer("camera"); });
    run.end_and_check();
}

TEST_CASE("a forked child that unwinds its stack leaves its parent's ports and frames as they are") {
    faulty_run run("forks");
    const open_run opened = open("forks");
    reader_port r = opened.reader("analysis");
    writer_port w = opened.writer("camera");
    latest_port l = opened.latest("camera");
    write_one(w);
    writer_frame f = w.next(20);
    REQUIRE(f);
    fill(f);
    CHECK(in_child([&] {
              ::alarm(20);  // a child that joins a thread that it does not have never ends
              const auto refused = [](auto call) {
                  try {
                      call();
                  } catch (const config_error& e) {
                      return std::string(e.what()).find("a forked child can't use it") != std::string::npos;
                  }
                  return false;
              };
              need(refused([&] { (void)r.next(1); }));
              need(refused([&] { f.commit(); }));
              need(refused([&] { (void)l.next(1); }));
              need(refused([&] { (void)opened.reader("analysis"); }));
              const writer_frame frame = std::move(f);
              const reader_port reader = std::move(r);
              const writer_port writer = std::move(w);
              const latest_port latest = std::move(l);
          }) == went_through);
    f.commit();
    CHECK(read_one(r) == 0);
    CHECK(read_one(r) == 1);
    CHECK(l.next(20) != nullptr);
    // The parent's thread still signals that it is alive.
    const shm::segment s = map_block(run);
    const shm::control_block& c = s.block();
    const auto heartbeat = [&] {
        const u64 sits = ring::load(c.seat[seat_of(c, "analysis")].current);
        return ring::load(c.entry[ring::seat_word::of(sits).entry].heartbeat_ns);
    };
    const u64 then = heartbeat();
    CHECK(run.wait_until([&] { return heartbeat() > then; }));
    write_one(w);
    CHECK(read_one(r) == 2);
    run.end_and_check();
}

TEST_CASE("a forked child of a killed port keeps no place from a second supervisor") {
    faulty_run run("outlived");
    auto [ours, theirs] = shm::socket_pair();
    const pid_t port = ::fork();
    REQUIRE(port >= 0);
    if (port == 0) {
        ours.reset();
        reader_port r = open("outlived").reader("analysis");
        if (::fork() == 0) {
            (void)shm::send_message(theirs.get(), "forked");
            shm::message m;
            (void)shm::receive_message(theirs.get(), m, 60 * ns_per_s);  // until the test ends
            ::_exit(0);
        }
        for (;;) ::pause();
    }
    theirs.reset();
    shm::message m;
    REQUIRE(shm::receive_message(ours.get(), m, 20 * ns_per_s) == shm::receive_status::ok);
    REQUIRE(run.wait_until([&] { return run.is("analysis", "running"); }));
    run.signal(SIGKILL);
    REQUIRE(run.wait() == -SIGKILL);
    ::kill(port, SIGKILL);
    REQUIRE(::waitpid(port, nullptr, 0) == port);
    run.start(run.file());
    CHECK(run.wait_until([&] { return run.is("analysis", "vacant"); }));
    {
        const open_run opened = open("outlived");
        reader_port r = opened.reader("analysis");
        writer_port w = opened.writer("camera");
        write_one(w);
        CHECK(read_one(r) == 0);
    }
    run.end_and_check();
    ours.reset();
}

TEST_CASE("a commit whose mark could not be written is resumed by the next call and counts once") {
    faulty_run run("full");
    auto camera = run.enter("camera", true), analysis = run.enter("analysis", false);
    const auto write = [&] {
        REQUIRE(camera->begin(~u64{0}) == port_session::wait_result::frame);
        auto* value = reinterpret_cast<u64*>(camera->output_slot() + camera->output().find("value")->offset);
        std::fill_n(value, 512, camera->job().ring_sequence);
        REQUIRE(camera->commit(std::nullopt));
    };
    write();
    REQUIRE(analysis->begin(~u64{0}) == port_session::wait_result::frame);
    // The record of frame 0 fits the file, its mark does not.
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
    const rlimit small{offsetof(telemetry::ledger_record, committer), before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    for (int k = 0; k < 2; ++k)
        CHECK_THROWS_AS(analysis->commit(telemetry::frame_hash(7, "own")), output_error);
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
    CHECK(analysis->commit(telemetry::frame_hash(7, "own")));
    write();
    REQUIRE(analysis->begin(~u64{0}) == port_session::wait_result::frame);
    CHECK(analysis->job().ring_sequence == 1);
    CHECK(analysis->commit(telemetry::frame_hash(8, "own")));
    analysis.reset(), camera.reset();
    run.end_and_check();
    CHECK(run.report()["frames"] == 2);
}

#ifdef INTERRUPTED_CALLS
TEST_CASE("ports, their supervisor and a stage lose no frame while their system calls are interrupted") {
    const std::vector<std::string> preload{"LD_PRELOAD=" INTERRUPTED_CALLS};
    faulty_run run("interrupted", "frames = 300\n", preload);
    external_program reads(run, "reads", "carousel-test-port-io", {"read", "interrupted", "analysis"},
                           preload);
    external_program latest(run, "latest", "carousel-test-port-io", {"latest", "interrupted", "camera"},
                            preload);
    external_program writes(run, "writes", "carousel-test-port-io", {"write", "interrupted", "camera"},
                            preload);
    const int code = run.wait();
    INFO(run.log());
    CHECK(code == 0);
    check_undamaged(run.report());
    CHECK(run.report()["frames"] == 300);
    for (external_program* p : {&reads, &latest, &writes}) {
        const int ended = p->wait(20);
        CAPTURE(p->output());
        CHECK(ended == 0);
    }
}
#endif
