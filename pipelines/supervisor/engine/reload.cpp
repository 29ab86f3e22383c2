#include "supervisor/engine/reload.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "core/crash_point.hpp"
#include "core/errors.hpp"
#include "supervisor/plan/depth_plan.hpp"

namespace carousel::supervisor {
using nlohmann::json;
namespace {

std::string label_of(const json& row, const json& rows) {
    const std::string name = row.value("name", "");
    const auto instances =
        std::count_if(rows.begin(), rows.end(), [&](const json& r) { return r.value("name", "") == name; });
    return instances > 1 ? fmt::format("{}.{}", name, row.value("instance", 0)) : name;
}

i32 pid_of(const json& row) {
    const json pid = row.value("pid", json());
    return pid.is_number_integer() ? pid.get<i32>() : 0;
}

/// Returns the labels of the seats of `stages`, or of all stages. Seats of ports are left out, because no
/// process of the run occupies them.
std::vector<std::string> labels_of(const run_setup& s, const std::set<std::string>& stages, bool all) {
    std::vector<std::string> out;
    for (const stage_setup& st : s.stages) {
        if (st.spec.is_port() || (!all && !stages.contains(st.spec.name))) continue;
        for (u32 k = 0; k < st.spec.instances; ++k)
            out.push_back(st.spec.instances > 1 ? fmt::format("{}.{}", st.spec.name, k) : st.spec.name);
    }
    return out;
}

void require_program(const std::string& path) {
    if (::access(path.c_str(), X_OK) != 0)
        throw config_error(
            fmt::format("{} can't be started where the supervisor runs: {}", path, errno_text(errno)));
}

std::string digest_of_source(const plan_source& source) { return digest_of(json(source)); }

[[noreturn]] void refuse_changes(const run_setup& s, const std::vector<plan_change>& changes) {
    std::string text =
        fmt::format("{}: nothing was changed, because these keys can't change while the run lasts:", s.file);
    for (const plan_change& c : changes)
        if (c.kind == change_kind::refused) text += "\n  " + c.text();
    throw config_error(
        fmt::format("{}\n`carousel upgrade -p {} --drain` delivers the frames in flight, and continues with "
                    "the changed file "
                    "at the next frame",
                    text, s.name));
}

}  // namespace

void reload_extension::attach(run_access& run) {
    run_ = &run;
    if (!work_) return;
    if (work_->plan != digest_of_source(target_.source)) {
        run.log_line(
            "a reload that the previous supervisor had begun was not carried out, so the plan is unchanged");
        work_.reset();
    } else {
        run.log_line("the reload that the previous supervisor had begun is completed");
    }
    ++steps_;
}

void reload_extension::save(json& run) const {
    if (work_) run["reload"] = *work_;
    if (!successor_after_end_.empty()) run["successor"] = successor_after_end_;
}

void reload_extension::restore(saved_run& run) {
    json saved;
    run.read("reload", saved);
    run.read("successor", successor_after_end_);
    if (saved.is_object()) read_known_fields(saved, work_.emplace());
}

bool reload_extension::take_end_request(const std::string& /*why*/, bool /*leaving*/, bool /*may_wait*/) {
    if (!successor_after_end_.empty()) {
        run_->log_line(
            fmt::format("{} does not continue the run, because its end was requested", successor_after_end_));
        successor_after_end_.clear();
        ++steps_;
    }
    return false;
}

u64 reload_extension::fingerprint() const noexcept { return steps_ << 28U; }

request_route reload_extension::take_request(const json& request) {
    const std::string type =
        request.contains("type") && request["type"].is_string() ? request["type"].get<std::string>() : "";
    if (run_ == nullptr || (type != run::reload_request::type && type != run::continue_request::type))
        return {};
    if (request.value("run_id", json(run_->run_id())) != run_->run_id()) return {};  // the engine refuses it
    try {
        const run::request r = run::read_request(request);
        if (target_.source.text.empty())
            throw config_error(fmt::format(
                "{} runs on several hosts and can't be reloaded or upgraded: end it and start it again",
                target_.setup->name));
        if (const auto* const continuation = std::get_if<run::continue_request>(&r)) {
            begin_continuation(*continuation);
            return {true, 0,
                    run::to_json(run::carried_out(
                        fmt::format("{} delivers the frames in flight and then continues as a new run",
                                    target_.setup->name)))};
        }
        if (const auto& reload = std::get<run::reload_request>(r); !reload.text.empty()) begin(reload);
        waiting_.push_back(++last_request_);
        return {true, last_request_, nullptr};
    } catch (const run::refused_for_now& e) {
        return {true, 0, run::to_json(run::verdict{false, e.what(), e.code(), true})};
    } catch (const error& e) {
        return {true, 0, run::to_json(run::refused(e.code(), e.what()))};
    } catch (const json::exception& e) {
        return {true, 0, run::to_json(run::refused(exit_code::usage, run::unreadable_request(e)))};
    }
}

void reload_extension::begin(const run::reload_request& r) {
    run_setup& s = *target_.setup;
    if (is_reloading()) throw run::refused_for_now(fmt::format("{} is being reloaded: try again", s.name));
    if (run_->summary().ending) throw run::refused_for_now(fmt::format("{} is ending", s.name));
    if (!r.successor.empty()) require_program(r.successor);
    plan_source source = target_.source;
    source.text = r.text;
    if (!r.programs.empty()) source.programs = r.programs;
    const pipeline p = pipeline_from(source, s.file);
    if (p.is_spread())
        throw config_error(s.file + ": the stages of a running pipeline can't move to other hosts");
    run_setup next = target_.plan(p, describe_stages_from(p, r.replies));
    const auto stored = read_identity(s.directory);
    if (!stored) throw shm_error(fmt::format("{}/pipeline.json can't be read", s.directory));
    const json identity = identity_of(next);
    const std::vector<plan_change> changes =
        changes_between(values_of_plan(stored->identity, s), values_of_plan(identity, next));
    if (std::any_of(changes.begin(), changes.end(),
                    [](const auto& c) { return c.kind == change_kind::refused; }))
        refuse_changes(s, changes);
    restore_depths(stored->depths, next);
    next.output_directory = s.output_directory;
    prepare_outputs(next, now_stamp());

    unfinished_reload work;
    work.plan = digest_of_source(source);
    work.successor = r.successor;
    std::set<std::string> restarts;
    for (const plan_change& c : changes) {
        work.answer.keys.push_back({c.stage, c.key, c.from, c.to, c.kind == change_kind::live});
        if (c.kind == change_kind::restart) restarts.insert(c.stage);
        constexpr std::string_view parameter = "parameters.";
        if (c.key.starts_with(parameter)) work.parameters[c.key.substr(parameter.size())] = c.to;
    }
    work.stages = labels_of(next, restarts, r.restart_all);
    work_ = std::move(work);
    ++steps_;
    run_->save_state();
    crash_here(crash_point::reload_intended);
    try {
        commit(identity, next, source);
    } catch (const error&) {
        work_.reset();
        ++steps_;
        throw;
    }
    crash_here(crash_point::plan_replaced);
    for (const plan_change& c : changes) run_->log_line("reload: " + c.text());
}

void reload_extension::commit(const json& identity, run_setup& next, const plan_source& source) {
    write_identity(target_.setup->directory, identity, next, source);
    take_over(*target_.setup, next);
    target_.setup->pictures = next.pictures;
    target_.source = source;
    run_->plan_changed();
}

void reload_extension::begin_continuation(const run::continue_request& r) {
    const run_setup& s = *target_.setup;
    if (is_reloading()) throw run::refused_for_now(fmt::format("{} is being reloaded: try again", s.name));
    if (run_->summary().ending) throw run::refused_for_now(fmt::format("{} is ending", s.name));
    require_program(r.successor);
    successor_after_end_ = r.successor;
    ++steps_;
    run_->save_state();
    run_->drain(
        fmt::format("`carousel upgrade`: {} continues the run when the frames in flight have been delivered",
                    r.successor));
}

void reload_extension::tick(u64 /*now*/) {
    if (run_ == nullptr) return;
    if (work_ && !advance()) return;
    if (work_ || !waiting_.empty()) finish();
}

bool reload_extension::advance() {
    if (run_->summary().ending) {
        work_->answer.pending = work_->stages;
        return true;
    }
    return set_parameters() && restart_next();
}

// A change that finds no room, because no frame moves, is tried again.
bool reload_extension::set_parameters() {
    if (work_->parameters.empty()) return true;
    const json reply = run_->carry_out(run::to_json(run::set_request{work_->parameters, false}));
    if (const run::verdict v = run::read_verdict(reply); !v.ok) {
        if (v.later) return false;
        // The changed file's plan was checked, so only a stage whose process disagrees with it can refuse.
        run_->log_line(fmt::format("warning: reload: the changed parameters do not apply: {}",
                                   v.message.value_or("no reason is given")));
    }
    work_->parameters = json::object();
    ++steps_;
    return true;
}

bool reload_extension::restart_next() {
    if (work_->stages.empty()) return true;
    const std::string label = work_->stages.front();
    const json ps = run_->carry_out(run::to_json(run::ps_request{}));
    const json rows = ps.value("stages", json::array());
    const auto row =
        std::find_if(rows.begin(), rows.end(), [&](const json& r) { return label_of(r, rows) == label; });
    const std::string state = row == rows.end() ? "down" : row->value("state", "");
    const i32 pid = row == rows.end() ? 0 : pid_of(*row);
    const auto done = [&](bool ready) {
        work_->answer.restarted.push_back({label, old_pid_.value_or(0), pid, state, ready});
        work_->stages.erase(work_->stages.begin());
        if (!ready) work_->answer.pending = std::exchange(work_->stages, {});
        old_pid_.reset();
        ++steps_;
        return work_->stages.empty();
    };
    const bool has_ended = state == "failed" || state == "backoff";
    if (old_pid_) {
        if (has_ended) return done(false);
        const bool is_new = pid != 0 && pid != *old_pid_;
        return (is_new && (state == "running" || state == "stopped")) || state == "down" || state == "done"
                   ? done(true)
                   : false;
    }
    // A stage without a process gets the new settings and program when it starts. In any other state, a death
    // or a rebuild replaces its process at the moment, perhaps by a standby with the old program.
    if (pid == 0 && (state == "down" || state == "done" || state == "failed")) return done(true);
    const run::verdict v =
        run::read_verdict(run_->carry_out(run::to_json(run::seat_request{run::seat_order::restart, label})));
    if (v.ok)
        old_pid_ = pid;  // a refusal means that the run is being rebuilt or taken over; the next tick tries
                         // again
    return false;
}

void reload_extension::finish() {
    run::reload_answer reply;
    if (work_) reply = work_->answer;
    const std::string successor = work_ ? work_->successor : "";
    const bool complete = reply.pending.empty() && std::all_of(reply.restarted.begin(), reply.restarted.end(),
                                                               [](const auto& r) { return r.ready; });
    if (work_) {
        reply.message =
            fmt::format("{} of {}: {} keys taken over, {} of {} stages restarted",
                        successor.empty() ? "reload" : "upgrade", target_.setup->name, reply.keys.size(),
                        reply.restarted.size(), reply.restarted.size() + reply.pending.size());
        if (!complete)
            reply.message += "; a stage did not become ready with the new plan: see `carousel logs`";
        run_->log_line(reply.message);
    }
    work_.reset();
    ++steps_;
    run_->save_state();
    for (const u64 id : std::exchange(waiting_, {})) run_->answer(id, reply);
    if (successor.empty() || !complete) return;
    run_->log_line(fmt::format("{} replaces this supervisor, and adopts the run", successor));
    try {
        target_.become(successor);
    } catch (const error& e) {
        run_->log_line(fmt::format("warning: this supervisor stays: {}", e.what()));
    }
}

}  // namespace carousel::supervisor
