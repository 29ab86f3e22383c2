#include "stages/runner/attach.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/clock.hpp"
#include "core/crash_point.hpp"
#include "core/errors.hpp"
#include "run/memory_message.hpp"

namespace carousel::stages {
namespace {
using nlohmann::json;

constexpr int first_high_fd = 900;

shm::unique_fd connect_within(const std::string& path, double wait_s) {
    const u64 until = now_ns() + static_cast<u64>(wait_s * 1e9);
    for (;;) {
        shm::unique_fd s = shm::connect_to(path);
        if (s) return s;
        const int why = errno;
        if (now_ns() >= until)
            throw shm_error(
                fmt::format("no supervisor at {}: {}{}: start the pipeline (`carousel run FILE`), or choose "
                            "it with -p NAME",
                            path, errno_text(why), wait_s > 0 ? fmt::format(" after {} s", wait_s) : ""));
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
}

std::vector<attached_block> blocks_of(const json& list, const char* index,
                                      const std::vector<shm::unique_fd>& fds) {
    std::vector<attached_block> out;
    for (const json& j : list) out.push_back({j.at(index), j.value("name", ""), run::read_memory(j, fds)});
    return out;
}

// What is not told is as the control block has it: nothing is chosen.
depth_rule depth_of(const json& j) {
    depth_rule r;
    if (!j.is_object()) return r;
    const std::string latency = j.value("latency", ""), sharing = j.value("sharing", "");
    r.latency = latency == "low"          ? latency_wish::low
                : latency == "throughput" ? latency_wish::throughput
                                          : latency_wish::balanced;
    r.sharing = sharing == "turns"     ? device_sharing::turns
                : sharing == "overlap" ? device_sharing::overlap
                : sharing == "alone"   ? device_sharing::alone
                                       : device_sharing::cpu;
    r.lanes_given = j.value("lanes_given", true);
    r.window_given = j.value("window_given", true);
    r.contexts = j.value("contexts", 1U);
    r.beside = j.value("beside", std::vector<u32>());
    return r;
}

void read_attachment(const json& j, attachment& a) {
    a.run_id = j.at("run_id");
    a.run_directory = j.at("run_directory");
    a.stage = j.at("stage");
    a.who = {j.at("seat"), j.at("entry"), j.at("epoch")};
    if (a.who.seat >= shm::max_seats || a.who.entry >= shm::max_incarnations)
        throw shm_error("the supervisor's answer names a seat out of range");
    a.standby = j.value("standby", false);
    a.width = j.at("width");
    a.height = j.at("height");
    a.cpu_threads = j.value("cpu_threads", 0U);
    const char* grace = std::getenv("CAROUSEL_SUPERVISOR_GRACE_S");
    a.supervisor_grace_s =
        grace != nullptr ? std::strtod(grace, nullptr) : j.value("supervisor_grace_s", a.supervisor_grace_s);
    a.kept_json = j.value("kept", json::array()).dump();
    a.settings_json = j.value("settings", json::object()).dump();
    a.asked_device = j.value("asked_device", a.asked_device);
    a.folder = j.value("folder", "");
    const json& d = j.at("device");
    a.device.kind = d.at("kind") == "cuda" ? device::device_kind::cuda : device::device_kind::cpu;
    a.device.uuid = d.value("uuid", "");
    a.device.ordinal = d.value("ordinal", 0);
    for (const json& i : j.at("inputs"))
        a.inputs.push_back({i.at("stage"), ring::frame_format::from_json(i.at("format").dump())});
    if (j.contains("format") && !j.at("format").is_null())
        a.output = ring::frame_format::from_json(j.at("format").dump());
    if (const json p = j.value("parameters", json()); !p.is_null())
        a.parameters = ring::parameter_schema::from_json(p);
    a.depth = depth_of(j.value("depth", json()));
    a.links = blocks_of(j.at("links"), "link", a.fds);
    a.assets = blocks_of(j.value("assets", json::array()), "index", a.fds);
}

}  // namespace

void move_above_driver(shm::unique_fd& socket) {
    const int high = ::fcntl(socket.get(), F_DUPFD_CLOEXEC, first_high_fd);
    if (high >= 0) socket.reset(high);  // refused (a low RLIMIT_NOFILE): deaths are seen later, by the pidfd
}

attachment attach(const attach_request& request) {
    attachment a;
    a.socket = connect_within(request.directory + "/control.sock", request.wait_s);
    move_above_driver(a.socket);
    crash_here(crash_point::connected);
    json hello{{"stage", request.stage}, {"pid", getpid()}};
    if (request.who)
        hello.update(
            {{"seat", request.who.seat}, {"entry", request.who.entry}, {"epoch", request.who.epoch}});
    if (!shm::send_message(a.socket.get(), json{{"hello", hello}}.dump()))
        throw shm_error(
            fmt::format("introducing stage {} to the supervisor: {}", request.stage, errno_text(errno)));
    crash_here(crash_point::introduced);
    shm::message m;
    const shm::receive_status got = shm::receive_message(a.socket.get(), m, 30 * ns_per_s);
    if (got != shm::receive_status::ok)
        throw shm_error(fmt::format(
            "stage {} got no answer from the supervisor at {} ({}): is it still alive? (`carousel ps`)",
            request.stage, request.directory,
            got == shm::receive_status::closed ? "it closed the connection" : "30 s passed"));
    a.fds = std::move(m.fds);
    crash_here(crash_point::memory_received);
    try {
        const json answer = json::parse(m.text);
        if (answer.contains("refused")) throw config_error(answer.at("refused").get<std::string>());
        read_attachment(answer.at("attach"), a);
    } catch (const json::exception& e) {
        throw shm_error(
            fmt::format("stage {} can't read the supervisor's answer: {}: are both of one version?",
                        request.stage, e.what()));
    } catch (const std::logic_error& e) {  // of std::stoul: a memory handle that is no hexadecimal number
        throw shm_error(
            fmt::format("stage {} can't read the supervisor's answer: {}: are both of one version?",
                        request.stage, e.what()));
    }
    return a;
}

}  // namespace carousel::stages
