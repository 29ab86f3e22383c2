// `carousel validate`.

#include <nlohmann/json.hpp>

#include "cli/start.hpp"
#include "supervisor/plan/plan_text.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;

struct validate_arguments {
    std::string file;
    pipeline_options keys;
};

int validate(const validate_arguments& a, bool as_json, const cli_environment& env) {
    const pipeline p = read_as_asked(a.file, a.keys);
    const std::vector<stage_description> all = describe_stages(p);
    env.out << (as_json ? plan_json(p, all).dump(2, ' ', false, json::error_handler_t::replace) + "\n"
                        : plan_text(p, all, columns_of(env)));
    return exit_code::ok;
}

command_action add(const command_parts& p) {
    const auto a = std::make_shared<validate_arguments>();
    add_pipeline_file(p, a->file);
    add_keys(p, a->keys);
    add_json(p);
    p.app.footer("\nExample:\n  carousel validate pipelines/demo.toml --size 640x480");
    return [a](const common_words& c, const cli_environment& env) { return validate(*a, c.json, env); };
}

}  // namespace

const command validate_command{
    "validate", "Check a pipeline file, its stages' settings and their wiring; start nothing", add};

}  // namespace carousel::supervisor
