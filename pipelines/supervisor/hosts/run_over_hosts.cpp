// `carousel run` of a pipeline with stages on other hosts: this host's part, with the coordinator of all
// hosts.
#include "cli/start.hpp"
#include "spec/hosts.hpp"
#include "supervisor/hosts/coordinator.hpp"
#include "supervisor/plan/plan_text.hpp"

namespace carousel::supervisor {

int run_over_hosts(const start_arguments& a, const cli_environment& env, const pipeline& whole) {
    const std::vector<stage_description> all = describe_stages(whole);
    hosts_plan plan = plan_hosts(whole, "", all);
    const pipeline part = part_of(whole, "", all, plan.token);
    plan.words = words_of(a.keys);
    run_options o = options_of(a, whole, env);
    o.parameters = plan.parameters;
    plan.first = o.first;
    if (a.dry_run) {
        env.out << hosts_text(whole) << "\n";
        show_plan(env, part, std::move(o));
        return exit_code::ok;
    }
    o.hosts = std::make_shared<coordinator>(std::move(plan));
    return env.run(part, o);
}

}  // namespace carousel::supervisor
