#include "runs/client.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "core/clock.hpp"
#include "core/did_you_mean.hpp"
#include "core/errors.hpp"
#include "os/table.hpp"
#include "runs/orphaned_run.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;
constexpr u32 look_again_us = 20'000;
constexpr u64 successor_patience_ns = 2 * ns_per_s;
constexpr std::size_t max_request = 60 * 1024;

u64 deadline_after(f64 seconds) { return now_ns() + static_cast<u64>(std::max(0.0, seconds) * static_cast<f64>(ns_per_s)); }

std::string list_of(const std::vector<run::record>& runs) {
    std::string text;
    for (const run::record& r : runs)
        text += fmt::format("\n  {}  (pid {}{})", r.name, r.supervisor.pid, r.file.empty() ? "" : ", " + r.file);
    return text;
}

std::string waited(f64 wait_s) { return wait_s > 0 ? fmt::format(" after {:.3g} s", wait_s) : ""; }

/// Runs that go on without a supervisor.
std::vector<run::record> orphans() {
    std::vector<run::record> runs = run::recorded_runs();
    std::erase_if(runs, [](const run::record& r) { return is_alive(r) || living_stages(r.run_id) == 0; });
    return runs;
}

std::string orphans_text() {
    std::string text;
    for (const run::record& r : orphans())
        text += fmt::format("\n  {}: its supervisor (pid {}) was killed, {} of its stages go on: `carousel run {}` with the same settings takes "
                            "it over",
                            r.name, r.supervisor.pid, living_stages(r.run_id), r.file);
    return text;
}

[[noreturn]] void refuse_choice(const std::string& name, const std::vector<run::record>& runs, f64 wait_s) {
    if (runs.empty())
        throw config_error(fmt::format("{} is running{}; start one with `carousel run FILE` (looked in {}){}",
                                       name.empty() ? "no pipeline" : fmt::format("no pipeline \"{}\"", name), waited(wait_s),
                                       run::runs_folder(), orphans_text()));
    if (name.empty()) throw config_error("several pipelines are running; choose one with -p NAME:" + list_of(runs) + orphans_text());
    std::vector<std::string> names;
    for (const run::record& r : runs) names.push_back(r.name);
    throw config_error(fmt::format("no pipeline \"{}\" is running{}{}; these are:{}{}", name, waited(wait_s),
                                   did_you_mean_clause(name, names), list_of(runs), orphans_text()));
}

std::string text_or(const json& j, const char* key, const std::string& otherwise = "-") {
    const auto at = j.find(key);
    return at != j.end() && at->is_string() ? at->get<std::string>() : otherwise;
}

std::string number_or(const json& j, const char* key, std::string (*as_text)(f64)) {
    const auto at = j.find(key);
    return at != j.end() && at->is_number() ? as_text(at->get<f64>()) : "-";
}

std::string whole(f64 v) { return fmt::format("{:.0f}", v); }
std::string percent(f64 v) { return fmt::format("{:.0f}%", v); }
std::string bytes(f64 v) { return human_bytes(v > 0 ? static_cast<u64>(v) : 0); }

}  // namespace

namespace {

// A run whose supervisor was killed is still the user's: beside it, the only one with a supervisor isn't taken without being named.
run::record choose(const std::string& name, f64 wait_s, bool lost_too) {
    const u64 deadline = deadline_after(wait_s);
    for (;;) {
        const std::vector<run::record> runs = run::living_runs(), lost = orphans();
        std::vector<run::record> candidates = runs;
        if (lost_too) candidates.insert(candidates.end(), lost.begin(), lost.end());
        const auto named = std::find_if(candidates.begin(), candidates.end(), [&](const run::record& r) { return r.name == name; });
        if (named != candidates.end()) return *named;
        const std::size_t all = runs.size() + lost.size();
        if (name.empty() && all == 1 && candidates.size() == 1) return candidates.front();
        if ((name.empty() && !candidates.empty() && all > 1) || now_ns() >= deadline) refuse_choice(name, runs, wait_s);
        ::usleep(look_again_us);
    }
}

}  // namespace

run::record choose_pipeline(const std::string& name, f64 wait_s) { return choose(name, wait_s, false); }
run::record choose_watched(const std::string& name, f64 wait_s) { return choose(name, wait_s, true); }

json ask_pipeline(const run::record& run, const json& request, f64 wait_s, f64 timeout_s) {
    const std::string who = fmt::format("pipeline \"{}\" (pid {})", run.name, run.supervisor.pid);
    const std::string path = run::run_folder(run.name) + "/control.sock";
    json meant = request;
    meant["run_id"] = run.run_id;  // a run that has taken the name meanwhile refuses
    const std::string text = meant.dump(-1, ' ', false, json::error_handler_t::replace);
    if (text.size() > max_request) throw config_error("the request is longer than 60 KB");
    const u64 deadline = deadline_after(wait_s);
    shm::unique_fd socket = shm::connect_to(path);
    while (!socket) {
        const int code = errno;
        if (now_ns() >= deadline)
            throw shm_error(fmt::format("{}: nobody listens at {} ({}){}; it is starting (--wait S waits for it) or ending", who,
                                        path, errno_text(code), waited(wait_s)));
        ::usleep(look_again_us);
        socket = shm::connect_to(path);
    }
    if (!shm::send_message(socket.get(), text)) throw shm_error(fmt::format("{}: asking: {}", who, errno_text(errno)));
    shm::message reply;
    const auto got = shm::receive_message(socket.get(), reply, static_cast<u64>(timeout_s * static_cast<f64>(ns_per_s)));
    if (got == shm::receive_status::would_block)
        throw shm_error(fmt::format("{} has not answered within {:.3g} s; is its supervisor stopped?", who, timeout_s));
    if (got != shm::receive_status::ok) throw shm_error(fmt::format("{} ended before it answered", who));
    json answer = json::parse(reply.text, nullptr, false);
    if (!answer.is_object())
        throw shm_error(fmt::format("{} answered with something other than a JSON object; is it of another version?", who));
    return answer;
}

bool goes_on(run::record& r, u64& gone_since_ns) {
    if (is_alive(r)) {
        gone_since_ns = 0;
        return true;
    }
    auto record = run::read_record(run::run_folder(r.name));
    if (!record || record->run_id != r.run_id) return false;
    if (is_alive(*record)) {
        record->name = r.name;
        r = std::move(*record);
        gone_since_ns = 0;
        return true;
    }
    if (gone_since_ns == 0 || living_stages(r.run_id) > 0) gone_since_ns = now_ns();
    return now_ns() - gone_since_ns < successor_patience_ns;
}

std::string ps_table(const json& reply) {
    const json none = json::object();
    const json& p = reply.contains("pipeline") && reply["pipeline"].is_object() ? reply["pipeline"] : none;
    std::string out = printable(fmt::format("{}: {}, pid {}, device {}, up {}, {} frames, {} frames/s, {}", text_or(p, "name"),
                                            text_or(p, p.contains("state_text") ? "state_text" : "state"), number_or(p, "pid", whole), text_or(p, "device"),
                                            number_or(p, "uptime_s", human_seconds), number_or(p, "frames", whole),
                                            number_or(p, "frames_per_second", human_rate), text_or(p, "file"))) +
                      "\n";
    if (p.contains("bottleneck") && p["bottleneck"].is_object())
        if (const std::string limit = text_or(p["bottleneck"], "text", ""); !limit.empty()) out += printable(limit) + "\n";
    const json rows = reply.contains("stages") && reply["stages"].is_array() ? reply["stages"] : json::array();
    const auto of_name = [&](const std::string& name) {
        return std::count_if(rows.begin(), rows.end(),
                             [&](const json& r) { return r.is_object() && text_or(r, "name") == name; });
    };
    table t({"STAGE", ">PID", "STATE", ">AGE", ">RESTARTS", "LAST EXIT", ">FRAMES/S", ">FRAMES", ">BUSY", ">CPU", ">MEMORY", "DEVICE"});
    for (const json& r : rows) {
        if (!r.is_object()) continue;
        std::string name = text_or(r, "name");
        if (of_name(name) > 1) name.append(1, '.').append(number_or(r, "instance", whole));
        const std::string pid = r.value("pid", json()).is_number() && r["pid"] > 0 ? number_or(r, "pid", whole) : "-";
        const bool waits = r.contains("waits_for") && r["waits_for"].is_string();
        t.add({name, pid, waits ? "waiting: " + text_or(r, "waits_for") : text_or(r, "state"), number_or(r, "age_s", human_seconds), number_or(r, "restarts", whole),
               text_or(r, "last_exit"), number_or(r, "frames_per_second", human_rate), number_or(r, "frames", whole),
               number_or(r, "busy", [](f64 v) { return percent(v * 100); }), number_or(r, "cpu_percent", percent), number_or(r, "memory_bytes", bytes), text_or(r, "device")});
    }
    out += t.text();
    if (reply.contains("problems") && reply["problems"].is_array())
        for (const json& each : reply["problems"])
            if (each.is_string()) out += "! " + printable(each.get<std::string>()) + "\n";
    return out;
}

void end_pipeline(const run::record& run, f64 timeout_s) {
    const shm::unique_fd supervisor(shm::open_pidfd(run.supervisor));
    if (!supervisor) {
        if (errno == ESRCH) return;  // ended meanwhile
        throw shm_error(
            fmt::format("pipeline \"{}\": opening its supervisor (pid {}): {}", run.name, run.supervisor.pid, errno_text(errno)));
    }
    if (const int failed = shm::signal_pidfd(supervisor.get(), SIGINT); failed != 0 && failed != ESRCH)
        throw shm_error(fmt::format("pipeline \"{}\": signalling its supervisor (pid {}): {}", run.name, run.supervisor.pid,
                                    errno_text(failed)));
    const u64 deadline = deadline_after(timeout_s);
    for (u64 now = now_ns(); now < deadline; now = now_ns()) {
        pollfd ended{supervisor.get(), POLLIN, 0};
        if (::poll(&ended, 1, static_cast<int>(std::min<u64>((deadline - now) / ns_per_ms + 1, 60'000))) > 0) return;
    }
    throw shm_error(fmt::format("pipeline \"{}\" (pid {}) has been told to end and has not within {:.3g} s; again speeds it up",
                                run.name, run.supervisor.pid, timeout_s));
}

}  // namespace carousel::supervisor
