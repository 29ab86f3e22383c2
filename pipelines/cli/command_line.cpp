// The parser, built from the table of commands, and its error messages.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "cli/command.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"
#include "core/user_input.hpp"
#include "os/table.hpp"
#include "spec/programs.hpp"

namespace carousel::supervisor {
namespace {

constexpr const char* main_footer = R"(
Examples:
  carousel run pipelines/demo.toml                  frames flow; Ctrl-C ends it
  carousel run pipelines/demo.toml --frames 300 --size 640x480 --out 'frame_%05d.png'
  carousel ps                                       in another terminal: stages and their rates
  carousel kill fragment                            it is restarted; no frame is lost
  carousel up pipelines/demo.toml -d                in the background; `carousel down` ends it
  carousel logs -f fragment                         follow its log
  carousel top                                      stages, rings and rates, live
  carousel graph pipelines/demo.toml | dot -Tsvg    a drawing (Graphviz), or --format mermaid
  source <(carousel completion bash)                Tab completes commands, stages, names
{}
`carousel COMMAND --help` has the details.
Exit codes: 0 success; 1 a required stage failed, or a frame was lost, repeated or torn; 2 usage or pipeline file; 3 no device; 4 all frames
were delivered, but some were given up and have no picture; 70-75 see pipelines/README.md; 128+N signal N.)";

/// State of one parse.
struct command_line {
    explicit command_line(common_words& c) : common(c) {}
    common_words& common;
    completers offers;
    CLI::App app{"Carousel: crash-isolated, GPU-resident streaming pipelines", "carousel"};
    std::vector<command_action> actions;  ///< the actions of all commands, in the order of all_commands()
};

void build(command_line& line) {
    line.app.set_version_flag("--version", "carousel " CAROUSEL_VERSION);
    line.app.require_subcommand(1);
    std::string examples;
    for (const command* c : all_commands()) {
        examples += c->examples;
        line.actions.push_back(
            c->add({*line.app.add_subcommand(c->name, c->text), line.common, line.offers}));
    }
    line.app.footer(fmt::format(main_footer, examples));
}

std::vector<std::string> option_names(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::Option* o : app.get_options([](const CLI::Option*) { return true; }))
        for (const std::string& name : o->get_lnames()) names.push_back(fmt::format("--{}", name));
    return names;
}

/// Returns the selected command, and its full name in `words`: "bench raster" is a subcommand of "bench".
const CLI::App& chosen_in(const CLI::App& app, std::string& words) {
    words += (words.empty() ? "" : " ") + app.get_name();
    const auto below = app.get_subcommands();
    return below.empty() ? app : chosen_in(*below.front(), words);
}

/// Returns the message for a command line that can't be parsed.
std::string usage_sentence(const CLI::App& app, const CLI::ParseError& e) {
    std::string command;
    const CLI::App& where = chosen_in(app, command);
    std::string text = fmt::format("{}: {}", command, e.what());
    if (dynamic_cast<const CLI::ExtrasError*>(&e) != nullptr) {
        const std::vector<std::string> rest = where.remaining(true);
        const std::string first = rest.empty() ? "" : rest.front().substr(0, rest.front().find('='));
        text = first.starts_with('-') ? fmt::format("{}: unknown option \"{}\"{}", command, first,
                                                    did_you_mean_clause(first, option_names(where)))
                                      : fmt::format("{}: unexpected argument \"{}\"", command, first);
    }
    return fmt::format("{} (see `{} --help`)", text, command);
}

/// Returns the command's index in all_commands(), or the number of commands for --help and --version. Throws
/// config_error if there is no command or an unknown one.
std::size_t position_of_command(const CLI::App& app, const std::vector<std::string>& words) {
    if (words.empty()) throw config_error("no command given\n" + app.help());
    const auto all = all_commands();
    const std::string& first = words.front();
    const auto at = std::find_if(all.begin(), all.end(), [&](const command* c) { return first == c->name; });
    if (at != all.end() || first == "--help" || first == "-h" || first == "--version")
        return static_cast<std::size_t>(at - all.begin());
    if (first.starts_with('-'))
        throw config_error(fmt::format(
            "\"{0}\" is an option of a command, e.g. `carousel run FILE {0}`; see `carousel --help`", first));
    for (const char* absent : absent_commands())
        if (first == absent)
            throw config_error(fmt::format("this build has no `carousel {}`: {}", first, how_to_get_extras));
    std::vector<std::string> names;
    for (const command* c : all) names.emplace_back(c->name);
    throw config_error(fmt::format("unknown command \"{}\"; the commands are {}{}", first,
                                   fmt::join(names, ", "), did_you_mean_clause(first, names)));
}

/// Parses the command line, stores the values in the variables that the commands have bound to their options,
/// and returns the action to run. Throws CLI::ParseError, config_error.
const command_action& parse(command_line& line, const std::vector<std::string>& words) {
    const std::size_t at = position_of_command(line.app, words);
    const auto all = all_commands();
    if (at < all.size() && all[at]->preparse != nullptr) all[at]->preparse({words.begin() + 1, words.end()});
    std::vector<std::string> reversed(words.rbegin(), words.rend());
    line.app.parse(reversed);  // also throws for --help and --version
    return line.actions.at(at);
}

int complain(const cli_environment& env, bool json, int code, const std::string& message) {
    if (json)
        env.out << nlohmann::json{{"ok", false}, {"message", message}, {"code", code}}.dump(
                       2, ' ', false, nlohmann::json::error_handler_t::replace)
                << "\n";
    else
        env.err << "error: " << printable(message, "\n\t") << "\n";
    return code;
}

int run_command_line(command_line& line, const std::vector<std::string>& words, const cli_environment& env) {
    const command_action* action = nullptr;
    try {
        action = &parse(line, words);
    } catch (const CLI::CallForHelp&) {
        std::string command;
        env.out << chosen_in(line.app, command).help();
        return exit_code::ok;
    } catch (const CLI::CallForVersion& e) {
        env.out << e.what() << "\n";
        return exit_code::ok;
    } catch (const CLI::ParseError& e) {
        return complain(env, line.common.json, exit_code::usage, usage_sentence(line.app, e));
    }
    return (*action)(line.common, env);
}

}  // namespace

bool wants_color(bool terminal, bool no_color) noexcept {
    const char* never = std::getenv("NO_COLOR");
    return terminal && !no_color && (never == nullptr || *never == 0);
}

int cli_main(const std::vector<std::string>& words, const cli_environment& env) noexcept {
    common_words common;
    try {
        common.words = words;
        command_line line(common);
        build(line);
        // The shell calls this command, so it must never report an error.
        if (!words.empty() && words.front() == complete_command) {
            for (const std::string& each :
                 completions(line.app, line.offers, {words.begin() + 1, words.end()}))
                env.out << each << "\n";
            return exit_code::ok;
        }
        return run_command_line(line, words, env);
    } catch (const error& e) {
        return complain(env, common.json, e.code(), e.what());
    } catch (const std::exception& e) {
        return complain(env, common.json, exit_code::stage_failed, unexpected_text(e));
    }
}

}  // namespace carousel::supervisor
