// `carousel doctor` and `carousel explain`.

#include "cli/command.hpp"
#include "cli/complete.hpp"
#include "cli/options.hpp"
#include "cli/start.hpp"
#include "core/json.hpp"
#include "doctor/doctor.hpp"
#include "doctor/explanations.hpp"
#include "spec/pipeline_keys.hpp"

namespace carousel::supervisor {
namespace {

// `carousel doctor`.

using nlohmann::json;

int report(bool as_json, bool no_color, const cli_environment& env) {
    const std::vector<finding> all = examine();
    env.out << (as_json ? doctor_json(all).dump(2, ' ', false, json::error_handler_t::replace) + "\n"
                        : doctor_text(all, wants_color(env.out_is_terminal, no_color)));
    return any_failed(all) ? exit_code::no_device : exit_code::ok;
}

command_action add_doctor_command(const command_parts& p) {
    const auto no_color = std::make_shared<bool>(false);
    p.app.add_flag("--json", p.common.json, "Print JSON");
    p.app.add_flag("--no-color", *no_color, "No ANSI colours");
    p.app.footer("\nExit code 3: Carousel can't run here at all.");
    return [no_color](const common_words& c, const cli_environment& env) {
        return report(c.json, *no_color, env);
    };
}

// `carousel explain`: the meaning of a word from a log, a report, `ps` or CUDA, and of the keys of a pipeline
// file.

int print_explanation(const std::vector<std::string>& words, bool as_json, const cli_environment& env) {
    if (words.empty()) {
        const auto all = all_explanations();
        env.out << (as_json ? explanation_json({all.begin(), all.end()})
                            : explanation_list(static_cast<int>(columns_of(env))));
        return exit_code::ok;
    }
    std::string one;
    for (const std::string& w : words) one += (one.empty() ? "" : " ") + w;
    const std::vector<explanation> found = explain(one);
    env.out << (as_json ? explanation_json(found)
                        : explanation_text(found, static_cast<int>(columns_of(env))));
    return exit_code::ok;
}

command_action add_explain_command(const command_parts& p) {
    const auto words = std::make_shared<std::vector<std::string>>();
    const auto keys = std::make_shared<bool>(false);
    CLI::Option* word =
        p.app.add_option("WORD", *words, "An exit code, a CUDA error, a state or a word of a log [all]");
    p.app.add_flag("--keys", *keys, "Print the reference of the keys of a pipeline file, as Markdown")
        ->excludes(word);
    std::vector<std::string> known;
    for (const explanation& e : all_explanations()) known.emplace_back(e.word);
    for (const cuda_error_name& e : all_cuda_errors()) known.emplace_back(e.word);
    p.offers[word] = offer(std::move(known));
    add_json(p);
    p.app.footer(
        "\nExamples:\n  carousel explain 71\n  carousel explain cudaErrorIllegalAddress\n  carousel explain "
        "400\n"
        "  carousel explain in_flight\n  carousel explain --keys");
    return [words, keys](const common_words& c, const cli_environment& env) {
        if (*keys) {
            env.out << key_reference();
            return static_cast<int>(exit_code::ok);
        }
        return print_explanation(*words, c.json, env);
    };
}

}  // namespace

extern const command doctor_command{
    "doctor", "Check this machine: what Carousel needs, what was found, what to do", add_doctor_command,
    nullptr, "  carousel doctor                                   what this machine can do\n"};

extern const command explain_command{
    "explain", "Explain an exit code, a CUDA error, a state or a word of a log", add_explain_command};

}  // namespace carousel::supervisor
