#include "viewer/watch/control.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include "control/client.hpp"
#include "control/ps_message.hpp"
#include "control/request_message.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"
#include "core/json_text.hpp"

namespace carousel::viewer {
namespace {

using nlohmann::json;
constexpr f64 answer_patience_s = 5;
constexpr u64 ps_every_ns = 500 * ns_per_ms, parameters_every_ns = ns_per_s;
constexpr std::chrono::milliseconds poll_every{100};

/// Returns the reply of that run. If there is no reply, returns nullopt and sets `why` to the reason.
std::optional<json> talk(const std::string& path, const std::string& run_id, const run::request& request,
                         std::string& why) {
    try {
        return run::client(path, run_id).ask(request, 0, answer_patience_s);
    } catch (const std::exception& e) {
        why = e.what();
        return std::nullopt;
    }
}

using telemetry::event_kind;

/// Returns the stages whose names begin with `prefix`; if `prefix` is "", returns the stages of this host.
std::vector<seat_report> seats_of(const run::ps_answer& a, const std::string& prefix) {
    std::vector<seat_report> out;
    for (const run::ps_stage& row : a.stages) {
        const std::string name = row.name.value_or("?");
        if (prefix.empty() ? name.find('/') != std::string::npos : !name.starts_with(prefix)) continue;
        const bool several = std::count_if(a.stages.begin(), a.stages.end(),
                                           [&](const auto& each) { return each.name == row.name; }) > 1;
        out.push_back({row, several ? fmt::format("{}.{}", name, row.instance.value_or(0)) : name});
    }
    return out;
}

template <typename T, typename Same>
const T* first_of(const std::vector<T>& in, Same same) {
    const auto at = std::find_if(in.begin(), in.end(), same);
    return at == in.end() ? nullptr : &*at;
}

// Version 2 of a structure of NVML's stable C interface; the functions with the suffixes _v2 and _v3 fill it.
struct process_info {
    unsigned pid;
    unsigned long long bytes;  // all ones: not available
    unsigned gpu_instance, compute_instance;
};
constexpr int ok = 0;
using plain_call = int (*)();
using count_call = int (*)(unsigned*);
using device_call = int (*)(unsigned, void**);
using processes_call = int (*)(void*, unsigned*, process_info*);

template <typename F>
F find(void* library, const char* name) {
    return reinterpret_cast<F>(::dlsym(library, name));
}

}  // namespace

std::string describe(const command& c) {
    return std::visit(
        [&]<typename R>(const R& request) {
            std::string text = run::command_of(c.what);
            if constexpr (std::is_same_v<R, run::inject_request>) text = shm::name_of(request.fault);
            if constexpr (requires { request.stage; })
                if (!request.stage.empty()) text += " " + request.stage;
            return text;
        },
        c.what);
}

bool only_reads(const run::request& r) noexcept {
    return std::holds_alternative<run::ps_request>(r) || std::holds_alternative<run::parameters_request>(r);
}

control_client::control_client(client_access a) : access_(a), thread_([this] { loop(); }) {}

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
    if (aim_.run_id != next.run_id) last_known_.reset();
    aim_ = std::move(next);
    report_.clear();
    run_state_ = {};
    hosts_.clear();
    ring_names_.clear();
    forget_parameters();
    reported_problem_.clear();
    next_ps_ns_ = 0;
    wake_.notify_all();
}

void control_client::send(command c) {
    const std::lock_guard lock(mutex_);
    if (access_ == client_access::read_only && !only_reads(c.what)) {
        replies_.push_back({std::move(c), false, read_only_text});
        return;
    }
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

run_report control_client::run_state() {
    const std::lock_guard lock(mutex_);
    return run_state_;
}

std::optional<last_report> control_client::last_known() {
    const std::lock_guard lock(mutex_);
    return last_known_;
}

std::map<std::string, std::string> control_client::other_ring_names() {
    const std::lock_guard lock(mutex_);
    return ring_names_;
}

std::vector<host_report> control_client::hosts() {
    const std::lock_guard lock(mutex_);
    return hosts_;
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
        const std::optional<json> answer = talk(path, run_id, c.what, r.message);
        if (!answer) return r;
        const run::verdict v = run::read_verdict(*answer);
        r.ok = v.ok;
        r.message = v.message.value_or(v.ok ? "done" : "refused without a reason");
        r.later = v.later;
    } catch (const std::exception& e) {
        r.message = fmt::format("the request can't be sent: {}", e.what());
    }
    return r;
}

// An unreadable answer is reported once. A missing reply is not reported here, because other requests to the
// supervisor report it.
void control_client::ask_parameters(const target& to, u64 question) {
    std::unique_ptr<run::parameter_state> found;
    std::string why, problem;
    try {
        if (const std::optional<json> answer = talk(to.path, to.run_id, run::parameters_request{}, why)) {
            if (const run::verdict v = run::read_verdict(*answer); !v.ok)
                throw config_error(v.message.value_or("the supervisor has no parameters"));
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
    if (!problem.empty() && std::exchange(reported_problem_, problem) != problem)
        replies_.push_back({{run::parameters_request{}}, false, problem, false});
}

void control_client::ask_ps(const target& to, const gpu_memory& gpus) {
    std::string why;
    const std::optional<json> answer = talk(to.path, to.run_id, run::ps_request{}, why);
    std::vector<seat_report> seats;
    run_report whole;
    std::optional<last_report> known;
    std::vector<host_report> hosts;
    std::map<std::string, std::string> names;
    const std::map<u32, u64> on_gpu = gpus.by_pid();
    if (answer) {
        const run::ps_answer status = run::read_ps(*answer);
        hosts = host_reports(status);
        const json& limit = status.pipeline.bottleneck;
        const auto text_in = [&](const char* key) {
            return limit.is_object() && limit.contains(key) && limit[key].is_string()
                       ? limit[key].get<std::string>()
                       : "";
        };
        whole = {status.pipeline.state.value_or(""),
                 status.pipeline.state_text.value_or(""),
                 status.problems,
                 status.pipeline.fallback.value_or(run::ps_fallback()),
                 text_in("kind"),
                 text_in("text")};
        seats = seat_reports(status);
        for (seat_report& s : seats)
            if (const auto at = on_gpu.find(static_cast<u32>(s.pid.value_or(0))); s.pid && at != on_gpu.end())
                s.gpu_bytes = at->second;
        if (status.ok) known = {status.pipeline, seats};
        for (const run::ps_link& l : status.links.value_or(std::vector<run::ps_link>()))
            if (!l.output.empty() && l.stage.find('.') == std::string::npos)
                names[l.stage + "." + l.output] = l.stage;
    }
    const std::lock_guard lock(mutex_);
    if (aim_ == to) {
        report_ = std::move(seats);
        run_state_ = std::move(whole);
        hosts_ = std::move(hosts);
        // If there is no reply, the old names are kept; they stay valid, because a run's rings do not change.
        if (answer) ring_names_ = std::move(names);
        if (known) last_known_ = std::move(known);
    }
    next_ps_ns_ = now_ns() + ps_every_ns;
}

control_client::task control_client::next_task() const {
    if (!waiting_.empty()) return task::queued_command;
    if (aim_.path.empty()) return task::none;
    const u64 now = now_ns();
    if (!parameters_ && now >= next_parameters_ns_) return task::parameters;
    return now >= next_ps_ns_ ? task::ps : task::none;
}

void control_client::loop() {
    const gpu_memory gpus;
    std::unique_lock lock(mutex_);
    while (!stop_) {
        wake_.wait_for(lock, poll_every, [this] { return stop_ || next_task() != task::none; });
        const task what = stop_ ? task::none : next_task();
        if (what == task::none) continue;
        const target to = aim_;
        const u64 question = question_;
        queued_command e;
        if (what == task::queued_command) {
            e = std::move(waiting_.front());
            waiting_.pop_front();
        }
        busy_ = true;
        lock.unlock();
        std::optional<reply> r;
        if (what == task::queued_command) r = ask(e.to.path, e.to.run_id, e.what);
        if (what == task::parameters) ask_parameters(to, question);
        if (what == task::ps) ask_ps(to, gpus);
        lock.lock();
        busy_ = false;
        // The next `ps` is sent immediately after a command, so that the report shows the command's effect.
        if (r && !std::holds_alternative<run::set_request>(r->asked.what)) next_ps_ns_ = 0;
        if (r) replies_.push_back(std::move(*r));
        idle_.notify_all();
    }
}

std::optional<telemetry::stage_shares> seat_report::shares() const noexcept {
    if (!busy) return std::nullopt;
    return telemetry::stage_shares{*busy, wait_input.value_or(0), wait_output.value_or(0),
                                   wait_own.value_or(0), wait_turn.value_or(0)};
}

std::vector<seat_report> seat_reports(const run::ps_answer& a) { return seats_of(a, ""); }

std::vector<host_report> host_reports(const run::ps_answer& a) {
    std::vector<host_report> out;
    for (const run::ps_host& h : a.hosts) out.push_back({h, run::describe(h), seats_of(a, h.name + "/")});
    return out;
}

const seat_report* report_of(const std::vector<seat_report>& all, const telemetry::snapshot& block,
                             u32 seat) noexcept {
    if (seat >= block.seats.size()) return nullptr;
    const telemetry::seat_view& s = block.seats[seat];
    return first_of(all, [&](const seat_report& r) {
        return r.name == block.stage_name(s.stage) && r.instance == s.instance;
    });
}

std::vector<telemetry::run_event> changes(const std::vector<host_report>& before,
                                          const std::vector<host_report>& after, u64 now) {
    std::vector<telemetry::run_event> out;
    const auto add = [&](event_kind kind, std::string text) {
        out.push_back({now, kind, shm::none, std::move(text)});
    };
    for (const host_report& h : after) {
        const host_report* was = first_of(before, [&](const host_report& b) { return b.name == h.name; });
        if (was == nullptr) continue;
        if (was->state != h.state)
            add(h.is_there()         ? event_kind::good
                : h.state == "ended" ? event_kind::info
                                     : event_kind::bad,
                fmt::format("host {}: {}, was {}", h.name, h.state, was->state));
        for (const seat_report& s : h.seats) {
            const seat_report* old =
                first_of(was->seats, [&](const seat_report& o) { return o.label == s.label; });
            if (old == nullptr || old->restarts >= s.restarts) continue;
            add(event_kind::warning,
                fmt::format("{} (pid {} there) was replaced{}", s.label, old->pid.value_or(0),
                            s.last_exit ? ": " + *s.last_exit : ""));
        }
    }
    return out;
}

gpu_memory::gpu_memory() {
    library_ = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) return;
    const auto init = find<plain_call>(library_, "nvmlInit_v2");
    if (init != nullptr && init() == ok) return;
    ::dlclose(library_);
    library_ = nullptr;
}

gpu_memory::~gpu_memory() {
    if (library_ == nullptr) return;
    if (const auto shutdown = find<plain_call>(library_, "nvmlShutdown"); shutdown != nullptr)
        (void)shutdown();
    ::dlclose(library_);
}

std::map<u32, u64> gpu_memory::by_pid() const {
    std::map<u32, u64> out;
    if (library_ == nullptr) return out;
    const auto count = find<count_call>(library_, "nvmlDeviceGetCount_v2");
    const auto device = find<device_call>(library_, "nvmlDeviceGetHandleByIndex_v2");
    auto processes = find<processes_call>(library_, "nvmlDeviceGetComputeRunningProcesses_v3");
    if (processes == nullptr)
        processes = find<processes_call>(library_, "nvmlDeviceGetComputeRunningProcesses_v2");
    unsigned devices = 0;
    if (count == nullptr || device == nullptr || processes == nullptr || count(&devices) != ok) return out;
    for (unsigned k = 0; k < devices && k < 64; ++k) {
        void* handle = nullptr;
        std::array<process_info, 256> found{};
        unsigned n = found.size();
        if (device(k, &handle) != ok || processes(handle, &n, found.data()) != ok) continue;
        for (unsigned i = 0; i < n && i < found.size(); ++i)
            if (found[i].bytes != ~0ULL) out[found[i].pid] += found[i].bytes;
    }
    return out;
}

}  // namespace carousel::viewer
