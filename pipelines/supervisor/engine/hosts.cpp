// engine: a pipeline on several hosts. Their requests, and ending the run together with them.
#include <fmt/format.h>

#include <algorithm>

#include "supervisor/engine/engine.hpp"

namespace carousel::supervisor {

using nlohmann::json;

namespace {
constexpr std::size_t most_labels = 256;  // each has a log file
}

void engine::work_with(other_hosts* hosts) {
    hosts_ = hosts;
    if (hosts_ == nullptr) return;
    hosts_->attend(loop_, *this, run_id_);
    if (other_hosts_end_run_)
        request_end("the previous supervisor was requested to end the run");
    else if (end_requested_)
        (void)hosts_->request_end(false);
}

// A partition that receives its frames from other hosts ends with theirs: an END of its own would cut off
// frames that they have begun. A supervisor that takes this partition over asks the other hosts again, since
// they may have died before they carried out the request.
void engine::request_end(const std::string& why) {
    if (hosts_ != nullptr && phase_ == phase::leaving) {  // all stages of this host are done
        (void)hosts_->request_end(false);
        return seats_->log_line(why + " (the other hosts are notified)");
    }
    const bool may_wait = phase_ == phase::running || phase_ == phase::rebuilding;
    if (hosts_ != nullptr && may_wait && !hosts_->request_end(false)) {
        other_hosts_end_run_ = true;
        save_state();
        return seats_->log_line(why +
                                " (this host ends after the frames of the other hosts, which are notified)");
    }
    begin_drain(why);
}

void engine::log_line(const std::string& text) { seats_->log_line(text); }
void engine::end_the_run(const std::string& why) {
    if (end_requested_by_.empty()) end_requested_by_ = why;
    begin_drain(why);
}

void engine::end_at_once(const std::string& why) {
    if (phase_ != phase::ending) end_now(why);
}

void engine::host_has_failed(const std::string& host, const std::string& what, int code) {
    seats_->fail("host " + host, what, code);
}

json engine::carry_out_for(const json& request) { return commands_->answer(request); }

// Supervision has ended; signals go to the function that waits.
void engine::serve_requests(int timeout_ms) {
    loop_.forget(timer_.get());
    loop_.forget(signals_.get());
    loop_.run_once(timeout_ms);
    console_->flush();
}

// "b/sink" is a stage of host b, and some requests name a host. The reply is asynchronous; the client waits
// for it or has disconnected.
bool engine::forward_to_host(connection& c, const json& request, json& refusal) {
    if (hosts_ == nullptr) return false;
    if (const auto meant = request.find("run_id"); meant != request.end() && *meant != run_id_)
        return false;  // of another run: it is refused here
    json there = request;
    std::string host;
    if (const auto named_host = request.find("host");
        named_host != request.end() && named_host->is_string()) {
        host = *named_host;
        there.erase("host");
    } else if (const auto stage = request.find("stage"); stage != request.end() && stage->is_string()) {
        const std::string name = *stage;
        const std::size_t slash = name.find('/');
        if (slash == std::string::npos) return false;
        host = name.substr(0, slash);
        there["stage"] = name.substr(slash + 1);
    } else {
        return false;
    }
    there.erase("run_id");  // the run id of this host's partition
    std::string why;
    c.request_id = hosts_->ask(host, there, why);
    if (c.request_id == 0) refusal = run::to_json(run::refused(exit_code::stage_failed, why));
    return true;
}

void engine::answered(u64 id, const json& reply) { socket_->answer_request(id, reply); }

void engine::line_of(const std::string& host, const std::string& stage, i32 pid, const std::string& line) {
    const std::string label = host + "/" + stage;
    if (remote_lines_.size() >= most_labels && remote_lines_.count(label) == 0) return;
    std::unique_ptr<log_sink>& to = remote_lines_[label];
    if (!to) {
        const auto number = static_cast<u32>(setup_->stages.size() + remote_lines_.size());
        std::string file = stage;
        std::replace(file.begin(), file.end(), '/', '_');  // the name comes from another host
        to = std::make_unique<log_sink>(*console_, label, seats_->label_width, number,
                                        setup_->directory + "/logs/" + host + "@" + file + ".jsonl");
    }
    to->line(pid, line);
}

// Called when this host's stages are gone. A run that is not complete ends the other hosts.
bool engine::other_hosts_done(u64 now) {
    std::optional<u64> end;
    if (phase_ == phase::leaving && !seats_->failure) end = end_;
    return hosts_ == nullptr || hosts_->may_leave(end, now);
}

}  // namespace carousel::supervisor
