#include "supervisor/hosts/hosts_extension.hpp"

#include <algorithm>

#include "control/request_message.hpp"
#include "core/errors.hpp"
#include "ledger/ledger.hpp"
#include "ledger/ledger_fold.hpp"

namespace carousel::supervisor {
using nlohmann::json;
namespace {

constexpr std::size_t most_labels = 256;  // the number is limited, because each label has a log file

/// Returns the first frame that is not marked in the ledger at `path`. If the run started at a later frame
/// than 0, the frames below its first frame count as folded.
u64 first_unmarked(const std::string& path) {
    const auto ledger = telemetry::ledger_reader::open(path);
    return ledger ? ledger->first_undelivered(0) : telemetry::folded_end(path);
}

}  // namespace

// Resets the flag, because the host may run its partition again, as another run.
void hosts_extension::prepare(const pipeline&, console&) { others_end_run_ = false; }

void hosts_extension::attach(run_access& run) {
    run_ = &run;
    hosts_->attend(run.loop(), *this, run.run_id());
    if (others_end_run_)
        run.request_end("the previous supervisor was requested to end the run");
    else if (run.end_was_requested())
        (void)hosts_->request_end(false);
}

void hosts_extension::leave() noexcept {
    if (run_ != nullptr) hosts_->leave();
}

void hosts_extension::close() noexcept {
    remote_lines_.clear();
    run_ = nullptr;
}

// A partition that receives its frames from other hosts ends together with these hosts. If the partition set
// END itself, it would cut off frames that the other hosts have begun. A supervisor that takes this partition
// over sends the request to the other hosts again, because those hosts may have died before they carried the
// request out.
bool hosts_extension::take_end_request(const std::string& why, bool leaving, bool may_wait) {
    if (leaving) {  // all stages of this host are done, so only the other hosts must end
        (void)hosts_->request_end(false);
        run_->log_line(why + " (the other hosts are notified)");
        return true;
    }
    if (!may_wait || hosts_->request_end(false)) return false;
    others_end_run_ = true;
    run_->save_state();
    run_->log_line(why +
                   " (this host ends when it has received the frames that the other hosts still send; they "
                   "are notified)");
    return true;
}

// The reply arrives later; by then the client may have disconnected.
request_route hosts_extension::take_request(const json& request) {
    if (const auto meant = request.find("run_id"); meant != request.end() && *meant != run_->run_id())
        return {};  // the request is for another run, so the engine refuses it
    json there = request;
    std::string host;
    if (const auto named_host = request.find("host");
        named_host != request.end() && named_host->is_string()) {
        host = *named_host;
        there.erase("host");
    } else if (const auto stage = request.find("stage"); stage != request.end() && stage->is_string()) {
        const std::string name = *stage;
        const std::size_t slash = name.find('/');
        if (slash == std::string::npos) return {};
        host = name.substr(0, slash);
        there["stage"] = name.substr(slash + 1);
    } else {
        return {};
    }
    there.erase("run_id");  // not forwarded, because it is the run id of this host's partition
    std::string why;
    request_route route{true, hosts_->ask(host, there, why), {}};
    if (route.id == 0) route.refusal = run::to_json(run::refused(exit_code::stage_failed, why));
    return route;
}

void hosts_extension::line_of(const std::string& host, const std::string& stage, i32 pid,
                              const std::string& line) {
    const std::string label = host + "/" + stage;
    if (remote_lines_.size() >= most_labels && remote_lines_.count(label) == 0) return;
    std::unique_ptr<log_sink>& to = remote_lines_[label];
    if (!to) {
        const auto number = static_cast<u32>(run_->setup().stages.size() + remote_lines_.size());
        std::string file = stage;
        // no '/' may remain, because the name comes from another host
        std::replace(file.begin(), file.end(), '/', '_');
        to = std::make_unique<log_sink>(run_->out(), label, run_->label_width(), number,
                                        run_->setup().directory + "/logs/" + host + "@" + file + ".jsonl");
    }
    to->line(pid, line);
}

std::optional<u64> first_kept(const hosts_plan& plan, const std::string& folder, const std::string& from,
                              const std::string& to) {
    std::optional<u64> first;
    for (const crossing& c : plan.links)
        if (c.from == from && c.to == to)
            first = std::max(first.value_or(0), first_unmarked(telemetry::ledger_path(folder, c.send)));
    return first;
}

}  // namespace carousel::supervisor
