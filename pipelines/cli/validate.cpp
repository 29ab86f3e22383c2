// `carousel validate`.

#include "cli/start.hpp"
#include "core/json.hpp"
#include "supervisor/plan/hosts_plan.hpp"
#include "supervisor/plan/plan_text.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;

struct validate_arguments {
    std::string file;
    pipeline_options keys;
};

int validate(const validate_arguments& a, bool as_json, const cli_environment& env) {
    const pipeline p = read_with_overrides(a.file, a.keys);
    const std::vector<stage_description> all = describe_stages(p);
    json plan = plan_json(p, all);
    std::string text = plan_text(p, all, columns_of(env));
    if (p.is_spread()) {
        std::vector<std::string> hosts{""};
        for (const host_spec* h : remote_hosts(p)) hosts.push_back(h->name);
        for (const std::string& host : hosts) (void)describe_stages(part_of(p, host, all, token_path(p)));
        plan["hosts"] = hosts_json(p);
        text += "\n" + hosts_text(p);
    }
    env.out << (as_json ? plan.dump(2, ' ', false, json::error_handler_t::replace) + "\n" : text);
    return exit_code::ok;
}

command_action add_validate_command(const command_parts& p) {
    const auto a = std::make_shared<validate_arguments>();
    add_pipeline_file(p, a->file);
    add_keys(p, a->keys);
    add_json(p);
    p.app.footer("\nExample:\n  carousel validate pipelines/demo.toml --size 640x480");
    return [a](const common_words& c, const cli_environment& env) { return validate(*a, c.json, env); };
}

}  // namespace

extern const command validate_command{
    "validate", "Check a pipeline file, its stages' settings and their wiring; start nothing",
    add_validate_command};

}  // namespace carousel::supervisor
