// far_host: how its part ends. Who gives the end, and who is told what the part came to.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/json_text.hpp"
#include "core/poll_until.hpp"
#include "core/read_file.hpp"
#include "os/console.hpp"
#include "os/pending_signal.hpp"
#include "run/directory.hpp"
#include "runs/run_lock.hpp"
#include "supervisor/hosts/far_host.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;
constexpr std::size_t longest_report = 8U << 20U;
constexpr int look_every_ms = 10;

std::size_t length_of(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace).size(); }

/// How a part has ended must get through, whatever its report has: the list of recoveries is left out, then
/// what is longest, until it does. `left_out` names it.
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

bool far_host::ask_for_end(bool at_once) {
    if (near_is_there()) near_->send({{"interrupted", at_once ? "at once" : "drain"}});
    if (at_once) return true;
    end_asked_ = true;
    alone_ = nobody_gives_the_end(now_ns());
    waits_for_end_ = !alone_;
    return alone_;
}

// A near host that is away may come back, and is told then. One that is away for long doesn't, and where it
// is not known whose frames are here none is let in.
bool far_host::nobody_gives_the_end(u64 now) const {
    return near_run_.empty() || (!near_is_there() && now > lost_ns_ + plan_.patience_ns(""));
}

void far_host::add_to(run::ps_answer& a) const {
    const u64 now = now_ns();
    if (tell_until_ns_ == 0) return;
    a.pipeline.frames_per_second = 0;  // nobody has counted since
    for (run::ps_stage& s : a.stages) s.frames_per_second = 0;
    a.pipeline.state_text = fmt::format(
        "{} ({}, {} s more at most)", a.pipeline.state.value_or("done"),
        near_is_there() ? "the near host is told how this part has ended; waits for its answer"
                        : "waits for the near host, which is away, to tell it how this part has ended",
        now < tell_until_ns_ ? (tell_until_ns_ - now) / ns_per_s : 0);
}

// For a near host that is away, and a supervisor of this one that dies meanwhile.
void far_host::keep_outcome(const json& ended) {
    try {
        run::write_whole_file(outcome_file(), json{{"near_run", near_run_}, {"ended", ended}}.dump(
                                                  -1, ' ', false, json::error_handler_t::replace));
    } catch (const error& e) {
        answers_->say(fmt::format(
            "warning: {}: a supervisor after this one would not know how this part has ended", e.what()));
    }
}

std::string far_host::outcome_file() const { return run::run_folder(part_name()) + "/ended.json"; }

void far_host::tell_outcome(int code, const json& report, const std::string& line) {
    host_orders* const here = std::exchange(orders_, nullptr);
    if (superseded_) return;
    answers_ = here;
    const json ended{{"code", code}, {"report", fitting(report)}, {"line", line}, {"alone", alone_}};
    keep_outcome(ended);
    lines_ns_ = 0;
    send_lines(now_ns());
    tell(ended, now_ns() + plan_.patience_ns(""));
    answers_ = nullptr;
}

/// Until the near host has said `bye` or begun another run, or somebody asks for the end.
void far_host::tell(const json& ended, u64 until) {
    tell_until_ns_ = until;
    for (bye_ = told_ = false; !bye_ && !superseded_ && now_ns() < until && pending_signal() == 0;) {
        look(now_ns());
        if (near_is_there() && !told_) {
            told_ = true;
            near_->send({{"ended", ended}});
        }
        if (answers_ != nullptr)
            answers_->answer_for(look_every_ms);
        else
            (void)poll_until(nullptr, 0, now_ns() + look_every_ms * ns_per_ms);
    }
    tell_until_ns_ = 0;
}

std::optional<int> far_host::tell_kept_outcome(const run_options& o) {
    const auto kept = [this] { return read_json_file(outcome_file()); };
    if (o.fresh || !kept().is_object()) return std::nullopt;
    const signals_kept signals;
    run_lock lock(part_name(), o.wait_s);
    lock.leave_folder(true);
    if (o.keep_logs) lock.keep_logs();
    const json found = kept();  // nobody else has it in hand now
    const json ended = found.is_object() ? found.value("ended", json()) : json();
    near_run_ = found.is_object() ? found.value("near_run", "") : "";
    if (!ended.is_object() || near_run_.empty()) return std::nullopt;
    console out(STDERR_FILENO, o.color, understands_escapes(STDERR_FILENO));
    out.line(fmt::format(
        "{}: its part of a run is done, and the supervisor that told the near host so was killed; "
        "waits for that host ({} port {})",
        part_name(), self_.address, self_.port));
    out.flush();
    out_ = &out;
    begun_ = true;
    tell(ended, launched_ ? now_ns() + launch_patience_ns : ~u64{0});
    out_ = nullptr;
    if (superseded_) {
        begun_ = superseded_ = false;
        near_run_.clear();
        return std::nullopt;
    }
    out.line(ended.value("line", ""));
    out.flush();
    lock.end_leftovers();
    lock.leave_folder(false);
    return ended.value("code", exit_code::stage_failed);
}

}  // namespace carousel::supervisor
