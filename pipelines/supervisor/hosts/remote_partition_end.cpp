// remote_partition: ends the partition, determines which host sends the end of stream, and reports the
// result.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/json_text.hpp"
#include "os/console.hpp"
#include "os/event_loop.hpp"
#include "run/directory.hpp"
#include "runs/run_lock.hpp"
#include "shm/runtime_folder.hpp"
#include "supervisor/hosts/remote_partition.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;
namespace msg = host_message;
constexpr std::size_t longest_report = 8U << 20U;
constexpr int poll_every_ms = 10;

std::size_t length_of(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace).size(); }

/// Shortens the report of a partition until it fits into a message: drops the list of recoveries first, and
/// then the longest entry, as often as needed. The member `left_out` names the dropped entries.
json fitting(json report) {
    std::size_t rest = length_of(report);
    if (rest <= longest_report) return report;
    if (!report.is_object()) return {{"left_out", {"all"}}};
    std::vector<std::pair<std::size_t, std::string>> parts;
    for (const auto& [key, value] : report.items())
        parts.emplace_back(key == "recoveries" ? rest : length_of(value), key);
    std::sort(parts.rbegin(), parts.rend());
    json left_out = json::array();
    for (const auto& [length, key] : parts) {
        if (rest <= longest_report) break;
        rest -= length_of(report[key]);
        report.erase(key);
        left_out.push_back(key);
    }
    report["left_out"] = left_out;
    return report;
}

}  // namespace

bool remote_partition::request_end(bool at_once) {
    if (coordinator_is_connected())
        send(msg::interrupted{at_once ? msg::end_kind::at_once : msg::end_kind::drain});
    if (at_once) return true;
    end_asked_ = true;
    alone_ = no_upstream_end(now_ns());
    waits_for_end_ = !alone_;
    return alone_;
}

// Returns true if no end of stream can be expected from upstream hosts. A disconnected coordinator may
// reconnect, and is notified when it does; after a long absence the coordinator is not expected to reconnect.
// If the id of the coordinator's run is unknown, no coordinator can be accepted.
bool remote_partition::no_upstream_end(u64 now) const {
    return coordinator_run_.empty() ||
           (!coordinator_is_connected() && now > lost_ns_ + plan_.patience_ns(""));
}

void remote_partition::add_to(run::ps_answer& a) const {
    const u64 now = now_ns();
    if (send_until_ns_ == 0) return;
    a.pipeline.frames_per_second = 0;  // not measured any more
    for (run::ps_stage& s : a.stages) s.frames_per_second = 0;
    a.pipeline.state_text =
        fmt::format("{} ({}, {} s more at most)", a.pipeline.state.value_or("done"),
                    coordinator_is_connected()
                        ? "reporting the result of this host to the coordinator; waiting for its answer"
                        : "waiting for the disconnected coordinator, to report the result of this host",
                    now < send_until_ns_ ? (send_until_ns_ - now) / ns_per_s : 0);
}

// Saves the result, because the coordinator may be disconnected, and this supervisor may die before the
// coordinator reconnects.
void remote_partition::save_outcome(const json& ended) {
    try {
        shm::write_whole_file(outcome_file(),
                              json{{"coordinator_run", coordinator_run_}, {"ended", ended}}.dump(
                                  -1, ' ', false, json::error_handler_t::replace));
    } catch (const error& e) {
        answers_->log_line(
            fmt::format("warning: {}: if another supervisor takes over on this host, it can't report the "
                        "result of this host",
                        e.what()));
    }
}

std::string remote_partition::outcome_file() const { return run::run_folder(part_name()) + "/ended.json"; }

void remote_partition::report_outcome(int code, const json& report, const std::string& line) {
    host_orders* const here = std::exchange(orders_, nullptr);
    if (superseded_) return;
    answers_ = here;
    const json ended{{"code", code}, {"report", fitting(report)}, {"line", line}, {"alone", alone_}};
    save_outcome(ended);
    lines_ns_ = 0;
    send_lines(now_ns());
    send_outcome(ended, now_ns() + plan_.patience_ns(""));
    answers_ = nullptr;
}

/// Runs until the coordinator sends `bye` or begins another run, or until a signal requests the end.
void remote_partition::send_outcome(const json& ended, u64 until) {
    send_until_ns_ = until;
    for (bye_ = outcome_sent_ = false; !bye_ && !superseded_ && now_ns() < until && pending_signal() == 0;) {
        poll(now_ns());
        if (coordinator_is_connected() && !outcome_sent_) {
            outcome_sent_ = true;
            send(msg::ended{ended});
        }
        if (answers_ != nullptr)
            answers_->serve_requests(poll_every_ms);
        else
            (void)poll_until(nullptr, 0, now_ns() + poll_every_ms * ns_per_ms);
    }
    send_until_ns_ = 0;
}

std::optional<int> remote_partition::report_saved_outcome(const run_options& o) {
    const auto kept = [this] { return read_json_file(outcome_file()); };
    if (o.fresh || !kept().is_object()) return std::nullopt;
    const run_signals_blocked signals;
    run_lock lock(part_name(), o.wait_s);
    lock.leave_folder(true);
    if (o.keep_logs) lock.keep_logs();
    const json found = kept();  // read while this process alone holds the lock
    const json ended = found.is_object() ? found.value("ended", json()) : json();
    coordinator_run_.clear();
    read_member(found, "coordinator_run", coordinator_run_);
    if (!ended.is_object() || coordinator_run_.empty()) return std::nullopt;
    console out(STDERR_FILENO, o.color, understands_escapes(STDERR_FILENO));
    out.line(
        fmt::format("{}: this host's part of a run has ended, and its supervisor was killed before the "
                    "coordinator confirmed the result; waiting for the coordinator ({} port {})",
                    part_name(), self_.address, self_.port));
    out.flush();
    out_ = &out;
    begun_ = true;
    send_outcome(ended, launched_ ? now_ns() + launch_patience_ns : ~u64{0});
    out_ = nullptr;
    if (superseded_) {
        begun_ = superseded_ = false;
        coordinator_run_.clear();
        return std::nullopt;
    }
    std::string line;
    int code = exit_code::stage_failed;
    read_member(ended, "line", line);
    read_member(ended, "code", code);
    out.line(line);
    out.flush();
    lock.end_leftovers();
    lock.leave_folder(false);
    return code;
}

}  // namespace carousel::supervisor
