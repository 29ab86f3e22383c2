#include "viewer/control.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::viewer {
namespace {
using nlohmann::json;
constexpr u64 answer_timeout_ns = 5 * ns_per_s;

std::optional<json> talk(const std::string& path, const json& request, std::string& why) {
    try {
        const shm::unique_fd socket = shm::connect_to(path);
        if (!socket) {
            why = fmt::format("no supervisor at {}: {}", path, errno_text(errno));
            return std::nullopt;
        }
        if (!shm::send_message(socket.get(), request.dump())) {
            why = fmt::format("asking the supervisor: {}", errno_text(errno));
            return std::nullopt;
        }
        shm::message m;
        if (shm::receive_message(socket.get(), m, answer_timeout_ns) != shm::receive_status::ok) {
            why = "the supervisor didn't answer within 5 s: is it stopped? (`carousel ps`)";
            return std::nullopt;
        }
        json answer = json::parse(m.text, nullptr, false);
        if (answer.is_object()) return answer;
        why = "the supervisor's answer can't be read: are both programs of one version?";
    } catch (const std::exception& e) {
        why = e.what();
    }
    return std::nullopt;
}

}  // namespace

control_client::control_client() : thread_([this] { loop(); }) {}

control_client::~control_client() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
}

void control_client::aim(const std::string& socket_path, const std::string& run_id) {
    const std::lock_guard lock(mutex_);
    target next{socket_path, run_id};
    if (aim_ == next) return;
    aim_ = std::move(next);
    report_.clear();
    wake_.notify_all();
}

void control_client::send(command c) {
    const std::lock_guard lock(mutex_);
    if (aim_.path.empty()) {
        replies_.push_back({std::move(c), false, "no pipeline is running"});
        return;
    }
    waiting_.push_back({aim_, std::move(c)});
    wake_.notify_all();
}

std::vector<reply> control_client::take_replies() {
    const std::lock_guard lock(mutex_);
    return std::exchange(replies_, {});
}

std::vector<seat_report> control_client::report() {
    const std::lock_guard lock(mutex_);
    return report_;
}

void control_client::flush(f64 seconds) {
    std::unique_lock lock(mutex_);
    idle_.wait_for(lock, std::chrono::duration<f64>(seconds), [this] { return waiting_.empty() && !busy_; });
}

reply control_client::ask(const std::string& path, const std::string& run_id, const command& c) {
    json request{{"command", c.verb}, {"run_id", run_id}};
    if (!c.stage.empty()) request["stage"] = c.stage;
    if (c.signal != 0) request["signal"] = c.signal;
    if (!c.fault.empty()) request["fault"] = c.fault;
    reply r{c, false, ""};
    const std::optional<json> answer = talk(path, request, r.message);
    if (!answer) return r;
    r.ok = answer->value("ok", false);
    r.message = answer->value("message", r.ok ? "done" : "refused without a reason");
    return r;
}

void control_client::ask_ps(const target& to, const gpu_memory& gpus) {
    std::string why;
    const std::optional<json> answer = talk(to.path, {{"command", "ps"}, {"run_id", to.run_id}}, why);
    std::vector<seat_report> seats;
    const std::map<u32, u64> on_gpu = gpus.by_pid();
    try {
        if (answer && answer->contains("stages"))
            for (const json& j : answer->at("stages")) {
                seat_report s;
                s.stage = j.value("name", "");
                s.instance = j.value("instance", 0U);
                s.state = j.value("state", "");
                s.restarts = j.value("restarts", 0U);
                s.cpu_percent = j.value("cpu_percent", 0.0);
                if (j.contains("last_exit") && j["last_exit"].is_string()) s.last_exit = j["last_exit"];
                if (j.contains("memory_bytes") && j["memory_bytes"].is_number()) s.memory_bytes = j["memory_bytes"];
                if (j.contains("pid") && j["pid"].is_number())
                    if (const auto at = on_gpu.find(j["pid"].get<u32>()); at != on_gpu.end()) s.gpu_bytes = at->second;
                seats.push_back(std::move(s));
            }
    } catch (const json::exception&) {
        seats.clear();  // of another version: the control block alone is shown
    }
    const std::lock_guard lock(mutex_);
    if (aim_ == to) report_ = std::move(seats);
}

void control_client::loop() {
    const gpu_memory gpus;
    std::unique_lock lock(mutex_);
    while (!stop_) {
        const bool asked = wake_.wait_for(lock, std::chrono::milliseconds(500), [this] { return stop_ || !waiting_.empty(); });
        if (stop_) break;
        const target to = aim_;
        if (to.path.empty() && !asked) continue;
        std::optional<errand> e;
        if (asked) {
            e = std::move(waiting_.front());
            waiting_.pop_front();
        }
        busy_ = true;
        lock.unlock();
        std::optional<reply> r;
        if (e) r = ask(e->to.path, e->to.run_id, e->what);
        if (!to.path.empty()) ask_ps(to, gpus);
        lock.lock();
        busy_ = false;
        if (r) replies_.push_back(std::move(*r));
        idle_.notify_all();
    }
}

}  // namespace carousel::viewer
