#include "viewer/watch/control.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "run/parameter_message.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::viewer {
namespace {
using nlohmann::json;
constexpr u64 answer_timeout_ns = 5 * ns_per_s;
constexpr u64 ps_every_ns = 500 * ns_per_ms, parameters_every_ns = ns_per_s;
constexpr std::chrono::milliseconds look_every{100};

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

json request_of(const command& c) {
    if (c.verb == "set" && !c.reset) return run::set_parameters(json::parse(c.values));
    if (c.verb == "set") return run::reset_parameters();
    json request{{"command", c.verb}};
    if (!c.stage.empty()) request["stage"] = c.stage;
    if (c.signal != 0) request["signal"] = c.signal;
    if (!c.fault.empty()) request["fault"] = c.fault;
    return request;
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
    forget_parameters();
    told_problem_.clear();
    next_ps_ns_ = 0;
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

std::optional<run::parameter_state> control_client::parameters() {
    const std::lock_guard lock(mutex_);
    return parameters_ ? std::optional(*parameters_) : std::nullopt;
}

void control_client::ask_parameters_again() {
    const std::lock_guard lock(mutex_);
    forget_parameters();
    wake_.notify_all();
}

void control_client::forget_parameters() {
    parameters_.reset();
    next_parameters_ns_ = 0;
    ++question_;
}

reply control_client::ask(const std::string& path, const std::string& run_id, const command& c) {
    reply r{c, false, "", false};
    try {
        json request = request_of(c);
        request["run_id"] = run_id;
        const std::optional<json> answer = talk(path, request, r.message);
        if (!answer) return r;
        r.ok = answer->value("ok", false);
        r.message = answer->value("message", r.ok ? "done" : "refused without a reason");
        r.later = answer->value("later", false);
    } catch (const json::exception& e) {
        r.message = fmt::format("what was asked, or its answer, can't be read: {}", e.what());
    }
    return r;
}

// An answer that nobody can read is told once; silence is told by what else needs the supervisor.
void control_client::ask_parameters(const target& to, u64 question) {
    json request = run::ask_parameters();
    request["run_id"] = to.run_id;
    std::unique_ptr<run::parameter_state> found;
    std::string why, problem;
    try {
        if (const std::optional<json> answer = talk(to.path, request, why)) {
            if (!answer->value("ok", false)) throw config_error(answer->value("message", "the supervisor knows no parameters"));
            found = std::make_unique<run::parameter_state>(run::parameters_from(*answer));
            if (found->schema) found->schema.check();
        }
    } catch (const std::exception& e) {
        found.reset();
        problem = e.what();
    }
    const std::lock_guard lock(mutex_);
    if (aim_ != to || question_ != question) return;
    parameters_ = std::move(found);
    next_parameters_ns_ = now_ns() + parameters_every_ns;
    if (!problem.empty() && std::exchange(told_problem_, problem) != problem)
        replies_.push_back({{"parameters", "", 0}, false, problem, false});
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
    next_ps_ns_ = now_ns() + ps_every_ns;
}

control_client::turn control_client::next_turn() const {
    if (!waiting_.empty()) return turn::errand;
    if (aim_.path.empty()) return turn::none;
    const u64 now = now_ns();
    if (!parameters_ && now >= next_parameters_ns_) return turn::parameters;
    return now >= next_ps_ns_ ? turn::ps : turn::none;
}

void control_client::loop() {
    const gpu_memory gpus;
    std::unique_lock lock(mutex_);
    while (!stop_) {
        wake_.wait_for(lock, look_every, [this] { return stop_ || next_turn() != turn::none; });
        const turn what = stop_ ? turn::none : next_turn();
        if (what == turn::none) continue;
        const target to = aim_;
        const u64 question = question_;
        errand e;
        if (what == turn::errand) {
            e = std::move(waiting_.front());
            waiting_.pop_front();
        }
        busy_ = true;
        lock.unlock();
        std::optional<reply> r;
        if (what == turn::errand) r = ask(e.to.path, e.to.run_id, e.what);
        if (what == turn::parameters) ask_parameters(to, question);
        if (what == turn::ps) ask_ps(to, gpus);
        lock.lock();
        busy_ = false;
        if (r && r->asked.verb != "set") next_ps_ns_ = 0;  // what it did to a stage is seen at once
        if (r) replies_.push_back(std::move(*r));
        idle_.notify_all();
    }
}

}  // namespace carousel::viewer
