// The commands for pipelines with stages on several hosts: `carousel run`, which is the coordinator and runs
// its own host's part, and `carousel host`, which is the supervisor of another host's part.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <iostream>

#include "cli/complete.hpp"
#include "cli/start.hpp"
#include "core/resource_limit.hpp"
#include "core/secret.hpp"
#include "os/descriptors.hpp"
#include "spec/hosts.hpp"
#include "supervisor/hosts/coordinator.hpp"
#include "supervisor/hosts/hosts_extension.hpp"
#include "supervisor/hosts/remote_partition.hpp"
#include "supervisor/plan/plan_text.hpp"

namespace carousel::supervisor {
namespace {

constexpr const char* host_footer = R"(
Example, on the machine of [hosts.b]:
  carousel host --file fanout.toml --as b

It waits for `carousel run` of the same file on the coordinator, compares the two plans, and runs the stages with host = "b". The file, the
files that its stages read (meshes), the options that set keys, and Carousel's version must be equal on all hosts: differences are named. The
file NAME.token next to the pipeline file is the hosts' common secret: the coordinator creates it; copy it to this host (scp -p).
Exit codes: as `carousel run`.)";

struct host_arguments : start_arguments {
    std::string as;
    bool launched = false, stay = false;
};

/// Reads the token from stdin, if this host was started by a launcher, and writes it to `path`.
void take_token(const std::string& path) {
    std::string secret;
    std::getline(std::cin, secret);
    std::error_code failed;
    if (std::filesystem::exists(path, failed) &&
        read_secret(path, "the token of this pipeline's hosts") == secret)
        return;
    if (secret.size() < 32)
        throw config_error("--launched: no token was received on stdin; this option is for a launcher");
    write_secret(path, secret);
}

/// Continues in a child process, which listens; this process ends, so that the ssh process that has started
/// it returns. Requires that no process and no thread has been started.
void continue_without_coordinator(const host_arguments& a, const cli_environment& env) {
    const shm::unique_fd nowhere = open_null(O_RDWR);
    env.out << fmt::format("host {} listens\n", a.as);
    env.out.flush();
    const pid_t child = ::fork();
    if (child < 0) {
        const int why = errno;
        throw_system_error("starting a process for the background", why, no_thread_text(why));
    }
    if (child > 0) ::_exit(exit_code::ok);
    ::setsid();
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere.get(), fd);
}

const host_spec& section_of(const pipeline& p, const std::string& name) {
    std::string known;
    for (const host_spec* h : remote_hosts(p)) {
        if (h->name == name) return *h;
        known += (known.empty() ? "" : ", ") + h->name;
    }
    throw config_error(
        known.empty() ? fmt::format("{}: none of its stages runs on another host", p.file)
                      : fmt::format("{}: no stage is on a host \"{}\"; --as takes {}", p.file, name, known));
}

/// One host's part of a pipeline for several hosts.
struct host_part {
    hosts_plan plan;
    pipeline part;
    run_options options;
};

/// `host`: the name of the host's section in the file; "": the coordinator.
host_part part_of_host(const start_arguments& a, const cli_environment& env, const pipeline& whole,
                       const std::string& host) {
    const std::vector<stage_description> all = describe_stages(whole);
    host_part out{plan_hosts(whole, host, all), {}, options_of(a, whole, env)};
    out.part = part_of(whole, host, all, out.plan.token);
    out.options.parameters = out.plan.parameters;
    out.plan.first = out.options.first;
    return out;
}

int be_host(const host_arguments& a, const cli_environment& env) {
    const pipeline whole = read_with_overrides(a.file, a.keys);
    const host_spec self = section_of(whole, a.as);
    auto [plan, part, o] = part_of_host(a, env, whole, a.as);
    if (a.dry_run) {
        env.out << hosts_text(whole) << "\n";
        show_plan(env, part, std::move(o));
        return exit_code::ok;
    }
    if (a.launched) take_token(plan.token);
    const auto hosts = std::make_shared<remote_partition>(plan, self);
    o.extensions.push_back(std::make_shared<hosts_extension>(hosts));
    if (a.launched) hosts->was_launched();
    if (a.launched && !a.stay) {
        o.keep_logs = true;
        continue_without_coordinator(a, env);
    }
    if (const std::optional<int> code = hosts->report_saved_outcome(o)) return *code;
    for (;;) {
        const int code = env.run(part, o);
        if (!hosts->superseded()) return code;
        hosts->restart();
    }
}

command_action add_host_command(const command_parts& p) {
    const auto a = std::make_shared<host_arguments>();
    p.offers[p.app.add_option("--file", a->file, "The pipeline file, as on the coordinator")
                 ->required()
                 ->type_name("FILE")] = offer_files({".toml"});
    p.app.add_option("--as", a->as, "The name of this machine in the file")->required()->type_name("HOST");
    // the process was started by `carousel run`: the token is on stdin
    p.app.add_flag("--launched", a->launched)->group("");
    // the process was started by srun, so it does not move into the background
    p.app.add_flag("--stay", a->stay)->group("");
    add_keys(p, a->keys);
    add_start_options(p, *a);
    p.app.footer(host_footer);
    return [a](const common_words& c, const cli_environment& env) {
        read_times(*a);
        a->words = c.words;
        if (a->detach)
            throw config_error("host: -d: `carousel host` can't wait in the background; use e.g. nohup");
        return be_host(*a, env);
    };
}

}  // namespace

int run_over_hosts(const start_arguments& a, const cli_environment& env, const pipeline& whole) {
    auto [plan, part, o] = part_of_host(a, env, whole, "");
    plan.words = words_of(a.keys);
    if (a.dry_run) {
        env.out << hosts_text(whole) << "\n";
        show_plan(env, part, std::move(o));
        return exit_code::ok;
    }
    o.extensions.push_back(std::make_shared<hosts_extension>(std::make_shared<coordinator>(std::move(plan))));
    return env.run(part, o);
}

extern const command host_command{
    "host", "Run this host's part of a pipeline, for `carousel run` on the coordinator", add_host_command};

}  // namespace carousel::supervisor
