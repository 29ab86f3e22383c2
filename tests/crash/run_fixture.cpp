#include "tests/crash/run_fixture.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "core/clock.hpp"
#include "core/io.hpp"
#include "shm/fd_socket.hpp"
#include "shm/process_id.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/seed.hpp"

namespace carousel::test {

namespace fs = std::filesystem;
using nlohmann::json;

std::string programs() { return CAROUSEL_PROGRAMS; }
void sleep_s(f64 seconds) { std::this_thread::sleep_for(std::chrono::duration<f64>(seconds)); }
f64 seconds_now() { return static_cast<f64>(now_ns()) / 1e9; }

u64 test_seed() {
    const u64 seed = seed_or(now_ns() % 1'000'000);
    std::printf("seed %llu (CAROUSEL_TEST_SEED repeats it)\n", static_cast<unsigned long long>(seed));
    return seed;
}

namespace {
std::vector<std::string> shared_objects() {
    std::vector<std::string> out;
    for (const std::string& name : scratch_folder::names_in("/dev/shm"))
        if (name.starts_with("carousel-")) out.push_back(name);
    return out;
}

std::string read_all(const fs::path& path) { return read_file(path.string()).value_or(""); }
}  // namespace

run_fixture::run_fixture(std::string program)
    : program_(std::move(program)), objects_before_(shared_objects()) {
    fs::create_directories(folder_.path / "runtime");
}

run_fixture::~run_fixture() {
    if (!ended_) {
        signal(SIGKILL);
        wait(5);
    }
    if (run_id_.empty()) return;
    for (const auto& s : fs::directory_iterator("/proc")) {  // stages of a killed supervisor
        const int pid = std::atoi(s.path().filename().c_str());
        if (pid > 0 && read_all(s.path() / "environ").find(folder_.path.string()) != std::string::npos)
            ::kill(pid, SIGKILL);
    }
    ::unlink(("/dev/shm/carousel-" + run_id_).c_str());
}

void run_fixture::start(const std::string& file, const std::vector<std::string>& args,
                        const std::vector<std::string>& environment) {
    REQUIRE(ended_);
    name_ = fs::path(file).stem();
    supervisor::spawn_request r;
    r.argv = {"/bin/sh",
              "-c",
              "cd \"$1\" && shift && exec \"$@\" 2>run.log >run.out",
              "sh",
              folder_.path.string(),
              programs() + "/" + program_,
              "run",
              file,
              "--report",
              path("report.json")};
    r.argv.insert(r.argv.end(), args.begin(), args.end());
    r.environment = environment;
    r.environment.push_back("XDG_RUNTIME_DIR=" + path("runtime"));
    process_ = supervisor::spawn(r);
    ended_ = false;
    code_ = -1000;
}

int run_fixture::wait(f64 timeout_s) {
    if (ended_) return code_;
    pollfd p{process_.pidfd.get(), POLLIN, 0};
    if (::poll(&p, 1, static_cast<int>(timeout_s * 1000)) == 0) {
        std::printf("the run did not end in time; its log:\n%s\n", log().c_str());
        signal(SIGKILL);
        ::poll(&p, 1, 5000);
        (void)supervisor::reap(process_.pidfd.get());
        ended_ = true;
        return code_ = -1000;
    }
    const supervisor::exit_status s = supervisor::reap(process_.pidfd.get());
    ended_ = true;
    return code_ = s.signal != 0 ? -s.signal : s.exit_code;
}

bool run_fixture::running() { return !ended_ && !supervisor::has_ended(process_.pidfd.get()); }
void run_fixture::signal(int number) const { shm::signal_pidfd(process_.pidfd.get(), number); }

int run_fixture::command(const std::vector<std::string>& args, std::string& out) {
    supervisor::spawn_request r;
    r.argv = {"/bin/sh",
              "-c",
              "cd \"$1\" && shift && exec \"$@\" >command.out 2>&1",
              "sh",
              folder_.path.string(),
              programs() + "/carousel"};
    r.argv.insert(r.argv.end(), args.begin(), args.end());
    r.environment = {"XDG_RUNTIME_DIR=" + path("runtime")};
    const supervisor::spawned p = supervisor::spawn(r);
    pollfd ready{p.pidfd.get(), POLLIN, 0};
    ::poll(&ready, 1, 30'000);
    const supervisor::exit_status s = supervisor::reap(p.pidfd.get());
    out = read_all(folder_.path / "command.out");
    return s.known ? (s.signal != 0 ? -s.signal : s.exit_code) : -1000;
}

json run_fixture::ask(const json& request) {
    const shm::unique_fd socket =
        shm::connect_to(fmt::format("{}/carousel/{}/control.sock", path("runtime"), name_));
    shm::message m;
    if (!socket || !shm::send_message(socket.get(), request.dump())) return json::object();
    if (shm::receive_message(socket.get(), m, 5 * ns_per_s) != shm::receive_status::ok) return json::object();
    json answer = json::parse(m.text, nullptr, false);
    if (!answer.is_object()) return json::object();
    if (answer.contains("pipeline")) run_id_ = answer["pipeline"].value("run_id", run_id_);
    return answer;
}

std::vector<json> run_fixture::stages() {
    const json answer = ask({{"type", "ps"}});
    return answer.contains("stages") ? answer["stages"].get<std::vector<json>>() : std::vector<json>{};
}

json run_fixture::stage(const std::string& name) {
    for (const json& s : stages())
        if (s.value("name", "") == name ||
            fmt::format("{}.{}", s.value("name", ""), s.value("instance", 0)) == name)
            return s;
    return json::object();
}

i32 run_fixture::pid_of(const std::string& name) {
    const json s = stage(name);
    return s.contains("pid") && s["pid"].is_number() ? s["pid"].get<i32>() : 0;
}

bool run_fixture::wait_running(f64 timeout_s) {
    const bool seen = wait_until(
        [&] {
            const std::vector<json> all = stages();
            // A stage is still listed as "running" until its death is detected: the process itself is
            // checked, too.
            const bool every = !all.empty() && std::all_of(all.begin(), all.end(), [](const json& s) {
                const i32 pid = s["pid"].is_number() ? s["pid"].get<i32>() : 0;
                return s["state"] == "running" && shm::is_alive({pid, shm::start_time_of(pid)});
            });
            return every || !running();
        },
        timeout_s);
    if (seen && running()) return true;
    std::printf("the run %s; its log:\n%s\n",
                seen ? "has ended before all its stages were seen running" : "does not run in time",
                log().c_str());
    return false;
}

std::size_t run_fixture::descriptors() const {
    std::error_code gone;
    std::size_t count = 0;
    for (fs::directory_iterator at(fmt::format("/proc/{}/fd", process_.pid), gone), end; !gone && at != end;
         at.increment(gone))
        ++count;
    return count;
}

void run_fixture::hit(const std::string& name, int number) {
    const i32 target = pid_of(name);
    if (target > 0) ::kill(target, number);
}

json run_fixture::report() const {
    const json r = json::parse(read_all(folder_.path / "report.json"), nullptr, false);
    return r.is_object() ? r : json::object();
}

std::string run_fixture::log() const {
    return read_all(folder_.path / "run.log") + read_all(folder_.path / "run.out");
}

std::string run_fixture::leftovers() const {
    std::string found;
    for (const std::string& name : shared_objects())
        if (std::find(objects_before_.begin(), objects_before_.end(), name) == objects_before_.end() &&
            name == "carousel-" + run_id_)
            found += "/dev/shm/" + name + " ";
    if (fs::exists(folder_.path / "runtime" / "carousel"))
        for (const std::string& name : scratch_folder::names_in(folder_.path / "runtime" / "carousel"))
            // abandoned frames stay on purpose
            if (const auto below = scratch_folder::names_in(folder_.path / "runtime" / "carousel" / name);
                below.size() != 1 || below.front() != "dead-letters")
                found += "runtime directory " + name + " ";
    for (const auto& s : fs::directory_iterator("/proc")) {
        const int number = std::atoi(s.path().filename().c_str());
        if (number <= 0 || number == ::getpid()) continue;
        if (read_all(s.path() / "environ").find(folder_.path.string()) != std::string::npos)
            found += fmt::format("process {} ", number);
    }
    return found;
}

void check_undamaged(const json& report) {
    REQUIRE(report.contains("lost"));
    CHECK(report["lost"] == 0);
    CHECK(report["repeated"] == 0);
    CHECK(report["torn"] == 0);
}

std::string picture_pipeline(const std::string& name, const std::string& more) {
    return fmt::format(R"([pipeline]
name = "{}"
device = "cpu"
size = [160, 90]
{}
[[stage]]
name = "geometry"
run = "carousel-geometry"
triangles = 500
[[stage]]
name = "vertex"
run = "carousel-vertex"
inputs = ["geometry"]
[[stage]]
name = "fragment"
run = "carousel-fragment"
inputs = ["vertex"]
[[stage]]
name = "display"
run = "carousel-display"
inputs = ["fragment"]
out = ""
)",
                       name, more);
}

std::string number_pipeline(const std::string& name, const std::string& pipeline_keys,
                            const std::string& middle, const std::string& source, const std::string& sink) {
    return fmt::format(R"([pipeline]
name = "{0}"
device = "cpu"
size = [16, 16]
{2}
[[stage]]
name = "numbers"
run = "{1}/carousel-test-number"
{4}
[[stage]]
name = "middle"
run = "{1}/carousel-test-number"
inputs = ["numbers"]
{3}
[[stage]]
name = "sink"
run = "{1}/carousel-test-number"
inputs = ["middle"]
sink = true
{5}
)",
                       name, programs(), pipeline_keys, middle, source, sink);
}

}  // namespace carousel::test
