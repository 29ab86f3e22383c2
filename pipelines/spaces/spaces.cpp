#include "spaces/spaces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/json.hpp"
#include "ipc/holder.hpp"
#include "ipc/spaces.hpp"
#include "os/table.hpp"
#include "run/directory.hpp"
#include "run/liveness.hpp"
#include "runs/spaces.hpp"
#include "shm/process_id.hpp"
#include "shm/runtime_folder.hpp"
#include "spec/pipeline_file.hpp"
#include "supervisor/engine/run_extension.hpp"

namespace carousel::supervisor {
namespace {

using ipc::space_state;
using nlohmann::json;

std::string counted_text(u64 n, const char* one, const char* many) {
    return fmt::format("{} {}", n, n == 1 ? one : many);
}

std::string pids_text(const std::vector<i32>& pids) {
    std::string out;
    for (std::size_t k = 0; k < std::min<std::size_t>(pids.size(), 8); ++k)
        out += (k == 0 ? "" : ", ") + std::to_string(pids[k]);
    return pids.size() > 8 ? out + ", ..." : out;
}

std::string orphan_text(const ipc::found_space& s) {
    if (s.clients.empty())
        return fmt::format(
            "its holder (process {}) has ended, and processes in another pid namespace still use its memory: "
            "`carousel hold {}` there takes it over",
            s.holder, s.name);
    return fmt::format(
        "its holder (process {}) has ended, {} its memory ({}): `carousel hold {}` takes it over", s.holder,
        counted_text(s.clients.size(), "process still uses", "processes still use"), pids_text(s.clients),
        s.name);
}

std::string holds_text(const ipc::client_view& c) {
    std::string out;
    for (const ipc::holding& h : c.holds) {
        out += fmt::format("{}{}: {} {}", out.empty() ? "" : "; ", h.primitive, h.count, h.as);
        if (h.bytes > 0) out += fmt::format(" ({})", human_bytes(h.bytes));
    }
    return out.empty() ? "-" : out;
}

std::string figures_text(const ipc::primitive_view& p) {
    std::string out;
    for (const auto& [name, value] : p.figures) {
        const bool bytes = name.ends_with("_bytes");
        std::string what = bytes ? name.substr(0, name.size() - 6) : name;
        std::replace(what.begin(), what.end(), '_', ' ');
        if (what == "gpu") what = "on the GPU";
        out += fmt::format("{}{} {}", out.empty() ? "" : ", ",
                           bytes ? human_bytes(value) : std::to_string(value), what);
    }
    return out;
}

std::string view_text(const ipc::space_view& v) {
    const char* of = v.of_run ? "of the pipeline of that name" : "held by";
    std::string out =
        fmt::format("space {}: {}{}", v.name, of, v.of_run ? "" : " process " + std::to_string(v.holder));
    if (v.id.empty()) return out + ", not opened yet\n";
    out += fmt::format(", {} ({} free){}, {}{}\n", human_bytes(v.bytes), human_bytes(v.free_bytes),
                       v.gpu_bytes == 0 ? ""
                                        : fmt::format(", {} on the GPU ({} free)", human_bytes(v.gpu_bytes),
                                                      human_bytes(v.gpu_free_bytes)),
                       counted_text(v.clients.size(), "client", "clients"),
                       v.incarnations > 1
                           ? fmt::format(", taken over {}", counted_text(v.incarnations - 1, "time", "times"))
                           : "");
    if (!v.clients.empty()) {
        table t({">CLIENT", "COMMAND", "STATE", ">AGE", ">LAST SIGN", "HOLDS"});
        for (const ipc::client_view& c : v.clients)
            t.add({std::to_string(c.pid), c.command.empty() ? "-" : c.command, c.state,
                   human_seconds(c.age_s), human_seconds(c.silent_s),
                   v.truncated ? "(too many to list)" : holds_text(c)});
        out += t.text();
    }
    if (!v.primitives.empty()) {
        table t({"PRIMITIVE", "KIND", "CONTENTS"});
        for (const ipc::primitive_view& p : v.primitives) t.add({p.name, p.shape, figures_text(p)});
        out += t.text();
    }
    return out;
}

struct seen_space {
    ipc::found_space found;
    std::optional<ipc::space_view> view = {};  ///< set if the space is held
    std::string error_text = {};               ///< the reason why `view` is empty although the space is held
};

/// Returns the spaces that are held or still in use, by name; with `name`, only that space. A run's own space
/// is listed only if it has been opened; such a space exists slightly longer than the run.
std::vector<seen_space> see_spaces(const std::string& name) {
    std::vector<seen_space> all;
    for (ipc::found_space& f : ipc::spaces_here()) {
        if (f.state == space_state::dead || (!name.empty() && f.name != name)) continue;
        seen_space s{std::move(f)};
        try {
            if (s.found.state == space_state::held) s.view = ipc::inspect_space(s.found);
        } catch (const error& e) {
            s.error_text = e.what();
        }
        if (!(s.view && s.view->of_run && s.view->id.empty())) all.push_back(std::move(s));
    }
    return all;
}

std::string spaces_text(const std::vector<seen_space>& all) {
    std::string out;
    for (const seen_space& s : all) {
        if (!out.empty()) out += "\n";
        if (s.view)
            out += view_text(*s.view);
        else
            out += "! " +
                   (s.error_text.empty() ? fmt::format("space {}: {}", s.found.name, orphan_text(s.found))
                                         : s.error_text) +
                   "\n";
    }
    return out;
}

json spaces_json(const std::vector<seen_space>& all) {
    json out = json::array();
    for (const seen_space& s : all) {
        json one = s.view ? ipc::to_json(*s.view) : json{{"name", s.found.name}, {"holder", s.found.holder}};
        one["state"] = s.found.state == space_state::held ? "held" : "orphaned";
        if (!s.error_text.empty()) one["error"] = s.error_text;
        if (s.found.state == space_state::orphaned) one["processes"] = s.found.clients;
        out.push_back(std::move(one));
    }
    return out;
}

std::string end_space(const ipc::found_space& s, f64 timeout_s) {
    if (s.state != space_state::held)
        throw config_error(
            fmt::format("the space \"{}\": {}; or end those processes", s.name, orphan_text(s)));
    const shm::unique_fd socket = shm::connect_to(s.place.socket(), 1'000'000'000);
    const auto [id, process] = socket ? shm::peer_process_of(socket.get(), 0) : shm::peer_process{};
    const i32 pid = id.pid;
    if (!process) return fmt::format("the space \"{}\" has ended", s.name);
    if (const int failed = shm::signal_pidfd(process.get(), SIGTERM); failed != 0 && failed != ESRCH)
        throw shm_error(fmt::format("the space \"{}\": signalling its holder (process {}): {}", s.name, pid,
                                    errno_text(failed)));
    if (events_of(process.get(), POLLIN, now_ns() + nanoseconds_of(std::min(timeout_s, 1e6))) == 0)
        throw shm_error(
            fmt::format("the space \"{}\": its holder (process {}) has not ended within {:.3g} s: check "
                        "whether it is stopped",
                        s.name, pid, timeout_s));
    const std::optional<ipc::found_space> left = ipc::find_space(s.name);
    if (!left || left->state != space_state::orphaned)
        return fmt::format("the space \"{}\" has ended", s.name);
    if (left->clients.empty())
        return fmt::format(
            "the holder of the space \"{}\" has ended; processes in another pid namespace still use its "
            "memory",
            s.name);
    return fmt::format("the holder of the space \"{}\" has ended; {} its memory ({})", s.name,
                       counted_text(left->clients.size(), "process still uses", "processes still use"),
                       pids_text(left->clients));
}

// A running pipeline is also a space (a shared-memory segment, shared/ipc): programs open it by name and
// share primitives while the pipeline runs. The pipeline's supervisor is the holder, with the same code as
// `carousel hold`. Until the first client connects, the space consists of a lock, a listening socket and a
// folder; the memory is allocated for the first client.

class run_space final : public run_extension {
public:
    /// Throws config_error if another process holds a space of the run's name. Prints a warning if this
    /// machine cannot provide a space; the run continues without it.
    void prepare(const pipeline& p, console& out) override {
        try {
            holder_ =
                std::make_unique<ipc::holder>(p.name, u64{p.space_mib} << 20U, ipc::memory_when::on_demand);
        } catch (const config_error& e) {
            throw config_error(fmt::format(
                "{} (a running pipeline is also a space; choose another name with -p NAME)", e.what()));
        } catch (const error& e) {
            out.line(fmt::format("warning: programs can't open this run as a space: {}", e.what()));
        }
    }
    void attach(run_access& run) override {
        if (!holder_) return;
        loop_ = &run.loop();
        loop_->watch(holder_->events(), EPOLLIN, [this](u32) { holder_->run_once(0); });
    }
    void tick(u64) override {
        if (holder_) holder_->run_once(0);  // the holder may have paused accepting connections
    }
    void close() noexcept override {
        if (loop_ != nullptr && holder_) loop_->forget(holder_->events());
        loop_ = nullptr;
        holder_.reset();
    }

private:
    std::unique_ptr<ipc::holder> holder_;  ///< null: no space
    event_loop* loop_ = nullptr;           ///< null: not attached
};

}  // namespace

spaces_report report_spaces(const std::string& name) {
    const std::vector<seen_space> all = see_spaces(name);
    return {spaces_text(all), spaces_json(all)};
}

std::vector<std::string> space_names() {
    std::vector<std::string> names;
    for (const seen_space& s : see_spaces("")) names.push_back(s.found.name);
    return names;
}

bool is_space(const std::string& name) {
    const auto s = ipc::find_space(name);
    return s && s->state != space_state::dead;
}

std::string list_of_spaces() {
    std::string out;
    for (const ipc::found_space& s : ipc::spaces_here()) {
        if (s.state == space_state::dead ||
            (s.state == space_state::held && run::read_record(run::run_folder(s.name))))
            continue;
        out += fmt::format(
            "\n  {}  (a space, {})", s.name,
            s.state == space_state::held ? fmt::format("held by process {}", s.holder) : "without a holder");
    }
    return out;
}

std::optional<std::string> end_space(const std::string& name, f64 timeout_s) {
    const auto s = ipc::find_space(name);
    if (!s || s->state == space_state::dead) return std::nullopt;
    if (const auto of_run = run::read_record(run::run_folder(name)); of_run && run::is_alive(*of_run))
        return std::nullopt;
    return end_space(*s, timeout_s);
}

// The memory of a space is not in the file system, so a dead space leaves only its folder.
std::vector<leftover> dead_spaces() {
    std::vector<leftover> dead;
    for (const ipc::found_space& s : ipc::spaces_here()) {
        if (s.state != space_state::dead) continue;
        dead.push_back(
            {"space", s.place.folder, s.name, "", bytes_in(s.place.folder),
             s.holder == 0
                 ? "unused: no process holds it or maps its memory"
                 : fmt::format("its holder (process {}) has ended, and no process maps its memory", s.holder),
             ""});
    }
    return dead;
}

std::string remove_dead_space(const std::string& name) {
    const auto s = ipc::find_space(name);
    return s ? ipc::remove_dead(*s) : "";
}

void require_no_run(const std::string& name) {
    if (!shm::is_folder_name(name)) return;
    const std::optional<run::record> r = run::read_record(run::run_folder(name));
    if (!r) return;
    if (run::is_alive(*r))
        throw config_error(
            fmt::format("a pipeline \"{}\" is running (process {}), and its supervisor holds the space "
                        "of that name: open it, or choose another name",
                        name, r->supervisor.pid));
    if (const run::orphaned_stages stages = run::orphaned_stages_of(*r); stages.any)
        throw config_error(fmt::format(
            "a pipeline \"{}\" has the space of that name: its supervisor was killed, and {}its stages "
            "continue{}. `carousel run {}` takes it over{}, including its space; or choose another name",
            name, stages.count > 0 ? fmt::format("{} of ", stages.count) : "",
            run::is_of_here(*r) ? "" : " in another pid or time namespace", r->file,
            run::is_of_here(*r) ? "" : " there"));
}

std::shared_ptr<run_extension> space_of_run() { return std::make_shared<run_space>(); }

}  // namespace carousel::supervisor
