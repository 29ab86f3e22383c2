// `carousel set`: shows or changes the parameters of a running pipeline.

#include <fmt/format.h>

#include "cli/complete.hpp"
#include "cli/options.hpp"
#include "control/client.hpp"
#include "control/request_message.hpp"
#include "os/table.hpp"
#include "runs/client.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;

json values_from(const std::vector<std::string>& words) {
    json values = json::object();
    for (const std::string& word : words) {
        const auto equals = word.find('=');
        if (equals == std::string::npos || equals == 0)
            throw config_error(fmt::format("set: \"{}\": expected KEY=VALUE, e.g. exposure=1.5", word));
        values[word.substr(0, equals)] = value_from(word.substr(equals + 1));
    }
    return values;
}

std::string text_of(const json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

std::string range_of(const ring::parameter& p) {
    if (p.kind == ring::parameter_kind::flag) return "true, false";
    if (p.kind == ring::parameter_kind::choice) return fmt::format("{}", fmt::join(p.choices, ", "));
    if (p.role == "direction") return "a direction";
    return fmt::format("{} to {}{}", p.low, p.high, p.unit.empty() ? "" : " " + p.unit);
}

std::string table_of(const run::parameter_state& s) {
    if (!s.schema) return "this pipeline has no parameters\n";
    table t({"KEY", "VALUE", "RANGE"});
    for (const ring::parameter& p : s.schema.fields)
        t.add({p.name, text_of(s.values.value(p.name, json())), range_of(p)});
    return t.text() + (s.number == 0 ? "all parameters have their initial values\n"
                                     : fmt::format("{} {} so far; the last applies from frame {} on\n",
                                                   s.number, s.number == 1 ? "change" : "changes", s.from));
}

struct set_arguments : client_arguments {
    std::vector<std::string> assignments;  ///< KEY=VALUE
    bool reset = false;
};

int set_or_show(const set_arguments& a, bool as_json, const cli_environment& env) {
    if (a.reset && !a.assignments.empty())
        throw config_error("set: --reset can't be combined with KEY=VALUE");
    run::request request = run::parameters_request{};
    if (a.reset || !a.assignments.empty()) request = run::set_request{values_from(a.assignments), a.reset};
    const run::record run = choose_pipeline(a.pipeline, a.wait_s);
    const json reply = run::client(run).ask(request, a.wait_s);
    require_well(reply, run.name);
    if (as_json)
        env.out << reply.dump(2, ' ', false, json::error_handler_t::replace) << "\n";
    else if (const run::verdict v = run::read_verdict(reply); v.message)
        env.out << printable(*v.message) << "\n";
    else
        env.out << table_of(run::parameters_from(reply));
    return exit_code::ok;
}

command_action add_set_command(const command_parts& p) {
    const auto a = std::make_shared<set_arguments>();
    add_client_options(p, *a);
    CLI::Option* o =
        p.app.add_option("KEY=VALUE", a->assignments, "E.g. exposure=1.5, shading=normals, 'eye=[0, 1, 3]'");
    p.offers[o] = running_parameters;
    p.app.add_flag("--reset", a->reset, "Reset all parameters to their initial values");
    add_json(p);
    p.app.footer(
        "\n"
        "A change applies from one frame on, which is printed; frames in progress keep their values.\n"
        "\n"
        "Examples:\n"
        "  carousel set\n"
        "  carousel set exposure=1.5 wireframe=true -p demo\n"
        "  carousel set --reset");
    return [a](const common_words& c, const cli_environment& env) {
        read_wait(*a);
        return set_or_show(*a, c.json, env);
    };
}

}  // namespace

extern const command set_command{
    "set", "Change parameters of a running pipeline; without KEY=VALUE: show them", add_set_command};

}  // namespace carousel::supervisor
