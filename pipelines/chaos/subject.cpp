#include "chaos/subject.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <deque>
#include <filesystem>
#include <fstream>

#include "control/client.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/executable_path.hpp"
#include "core/io.hpp"
#include "run/directory.hpp"
#include "shm/block_guard.hpp"
#include "shm/process_id.hpp"

namespace carousel::supervisor::chaos {

using nlohmann::json;

subject::subject(std::vector<std::string> words, std::string name, std::string log_file)
    : words_(std::move(words)), name_(std::move(name)), log_file_(std::move(log_file)) {
    words_.insert(words_.begin(), executable_path());
}

subject::~subject() {
    if (!is_alive()) return;
    signal(SIGINT);  // it ends its stages
    if (wait(20)) return;
    signal(SIGKILL);
    (void)wait(5);
}

void subject::start() {
    const shm::unique_fd log(::open(log_file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (!log) throw output_error(fmt::format("{} can't be written: {}", log_file_, errno_text(errno)));
    spawn_request r;
    r.argv = words_;
    r.output = log.get();
    process_ = spawn(r);
    code_.reset();
}

bool subject::is_alive() const noexcept {
    return process_.pidfd && !code_ && !has_ended(process_.pidfd.get());
}
void subject::signal(int number) const noexcept {
    if (process_.pidfd) shm::signal_pidfd(process_.pidfd.get(), number);
}

void subject::kill_supervisor() noexcept {
    signal(SIGKILL);
    (void)wait(10);
}

std::optional<int> subject::wait(f64 timeout_s) {
    if (code_ || !process_.pidfd) return code_;
    if (events_of(process_.pidfd.get(), POLLIN, now_ns() + nanoseconds_of(timeout_s)) == 0) return code_;
    const exit_status s = reap(process_.pidfd.get());
    code_ = s.signal != 0 ? 128 + s.signal : s.exit_code;
    return code_;
}

json subject::reply_to(const run::request& request) const {
    try {
        const auto record = run::read_record(run::run_folder(name_));
        if (!record || record->supervisor.pid != process_.pid) return json::object();
        return run::client(*record).ask(request, 0, 5);
    } catch (const error&) {
        return json::object();
    }
}
run::verdict subject::ask(const run::request& request) const { return run::read_verdict(reply_to(request)); }
run::ps_answer subject::ps() const { return run::read_ps(reply_to(run::ps_request{})); }

std::string subject::last_lines() const {
    std::ifstream in(log_file_);
    std::deque<std::string> last;
    for (std::string line; std::getline(in, line);) {
        last.push_back("    " + line + "\n");
        if (last.size() > 15) last.pop_front();
    }
    std::string text;
    for (const std::string& line : last) text += line;
    return text;
}

std::string subject::last_line(const std::string& begin) const {
    std::ifstream in(log_file_);
    std::string last;
    for (std::string line; std::getline(in, line);)
        if (const auto at = line.find(begin); at != std::string::npos) last = line.substr(at);
    return last;
}

std::vector<victim> seats_of(const run::ps_answer& ps) {
    std::vector<victim> out;
    std::vector<std::string> stages;
    for (const run::ps_stage& s : ps.stages) {
        const std::string name = s.name.value_or("");
        if (stages.empty() || stages.back() != name) stages.push_back(name);
        const i32 pid = s.pid.value_or(0);
        const auto same = [&](const run::ps_stage& o) { return o.name.value_or("") == name; };
        const bool several = std::count_if(ps.stages.begin(), ps.stages.end(), same) > 1;
        out.push_back({several ? fmt::format("{}.{}", name, s.instance.value_or(0)) : name, pid,
                       static_cast<u32>(stages.size() - 1), pid > 0 && s.state == "running",
                       s.device.value_or("").starts_with("cuda"), name.find('/') != std::string::npos,
                       s.inputs_guarded.value_or(false), s.output_guarded.value_or(false),
                       s.block_guard.value_or("none") != "none"});
    }
    return out;
}

bool all_run(const run::ps_answer& ps) {
    const std::vector<victim> seats = seats_of(ps);
    const bool together = std::all_of(ps.hosts.begin(), ps.hosts.end(),
                                      [](const run::ps_host& h) { return h.state == "running"; });
    return together && !seats.empty() &&
           std::all_of(seats.begin(), seats.end(), [](const victim& v) { return v.running; });
}

}  // namespace carousel::supervisor::chaos
