#include "cli/complete.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "cli/command.hpp"
#include "control/client.hpp"
#include "control/ps_message.hpp"
#include "control/request_message.hpp"
#include "runs/client.hpp"
#include "runs/spaces.hpp"

namespace carousel::supervisor {
namespace {

using words_t = std::vector<std::string>;

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
    return app.get_subcommands([](const CLI::App*) { return true; });
}

/// Options that --help shows.
std::vector<const CLI::Option*> options_of(const CLI::App& sub) {
    return sub.get_options(
        [](const CLI::Option* o) { return !o->get_group().empty() && o->nonpositional(); });
}

/// Returns the option with the name `word` if it takes a value; otherwise null.
const CLI::Option* option_with_value(const CLI::App& sub, const std::string& word) {
    for (const CLI::Option* o : options_of(sub))
        if (o->check_name(word) && o->get_items_expected_max() > 0) return o;
    return nullptr;
}

words_t names_of_options(const CLI::App& sub) {
    words_t names;
    for (const CLI::Option* o : options_of(sub))
        for (const std::string& name : o->get_lnames()) names.push_back("--" + name);
    return names;
}

words_t values_of(const CLI::Option* option, const completers& offers, const completion_request& request) {
    const auto at = offers.find(option);
    return at == offers.end() ? words_t{} : at->second(request);
}

words_t positionals_of(const CLI::App& sub, const completers& offers, const completion_request& request) {
    words_t all;
    for (const CLI::Option* o :
         sub.get_options([](const CLI::Option* each) { return each->get_positional(); }))
        for (std::string& word : values_of(o, offers, request)) all.push_back(std::move(word));
    return all;
}

/// Returns candidates for the word that follows the complete words of a command line. They are candidates of
/// the subcommand that the words name, or of `app` if the words name none.
words_t candidates_in(const CLI::App& app, const completers& offers, const words_t& words,
                      const std::string& partial) {
    const auto below = commands_of(app);
    if (words.empty() && !below.empty()) {
        words_t names;
        if (partial.starts_with('-'))
            names = app.get_parent() == nullptr ? words_t{"--help", "--version"} : words_t{"--help"};
        for (const CLI::App* sub : below) names.push_back(sub->get_name());
        return names;
    }
    for (const CLI::App* sub : below) {
        if (sub->get_name() != words.front()) continue;
        if (!commands_of(*sub).empty())
            return candidates_in(*sub, offers, {words.begin() + 1, words.end()}, partial);
        const completion_request request{words, partial};
        if (const CLI::Option* option = words.size() > 1 ? option_with_value(*sub, words.back()) : nullptr;
            option != nullptr)
            return values_of(option, offers, request);
        return partial.starts_with('-') ? names_of_options(*sub) : positionals_of(*sub, offers, request);
    }
    return {};
}

words_t candidates(const CLI::App& app, const completers& offers, words_t words) {
    std::string partial = words.empty() ? "" : words.back();
    if (!words.empty()) words.pop_back();
    if (partial == "=") partial.clear();  // bash splits --name=demo into three words
    if (!words.empty() && words.back() == "=") words.pop_back();
    return candidates_in(app, offers, words, partial);
}

namespace fs = std::filesystem;
constexpr f64 patience_s = 0.5;  // a short time, because a user is waiting at the prompt

/// Returns the entries that begin with `partial`: folders, with a slash at the end, and files whose name ends
/// with one of `endings`.
words_t files(const std::string& partial, const words_t& endings) {
    const auto slash = partial.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : partial.substr(0, slash + 1);
    words_t all;
    std::error_code failed;
    for (fs::directory_iterator at(folder.empty() ? "." : folder, failed), end; !failed && at != end;
         at.increment(failed)) {
        const std::string name = at->path().filename().string();
        std::error_code ignored;
        if (name.starts_with('.') && !partial.substr(folder.size()).starts_with('.')) continue;
        if (at->is_directory(ignored))
            all.push_back(folder + name + "/");
        else if (std::any_of(endings.begin(), endings.end(),
                             [&](const std::string& ending) { return name.ends_with(ending); }))
            all.push_back(folder + name);
    }
    return all;
}

/// Returns the pipeline that -p names in `words`; without -p, the only running pipeline.
std::optional<run::record> meant_run(const words_t& words) {
    std::string wanted;
    for (std::size_t k = 0; k + 1 < words.size(); ++k)
        if (words[k] == "-p" || words[k] == "--name")
            wanted = words[words[k + 1] == "=" && k + 2 < words.size() ? k + 2 : k + 1];
    const std::vector<run::record> runs = run::living_runs();
    for (const run::record& r : runs)
        if (wanted.empty() ? runs.size() == 1 : r.name == wanted) return r;
    return std::nullopt;
}

// `carousel completion`: prints the completion script of a shell (complete.hpp).

constexpr const char* completion_footer = R"(
Examples:
  source <(carousel completion bash)                                    in ~/.bashrc
  source <(carousel completion zsh)                                     in ~/.zshrc, after compinit
  carousel completion fish > ~/.config/fish/completions/carousel.fish

Tab then completes commands, options, pipeline files, names of running pipelines and their stages.)";

constexpr const char* bash_script = R"(# Completion of carousel for bash: source <(carousel completion bash)
_carousel() {
    local IFS=$'\n' k
    COMPREPLY=($("${COMP_WORDS[0]/#\~/$HOME}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
    if [ ${#COMPREPLY[@]} = 1 ] && [[ ${COMPREPLY[0]} == */ || ${COMPREPLY[0]} == *= ]]; then compopt -o nospace 2>/dev/null; fi
    for k in "${!COMPREPLY[@]}"; do printf -v "COMPREPLY[$k]" %q "${COMPREPLY[$k]}"; done
}
complete -F _carousel carousel
)";

constexpr const char* zsh_script = R"(#compdef carousel
# Completion of carousel for zsh: source <(carousel completion zsh), after compinit
_carousel() {
    local -a found folders rest
    found=("${(@f)$("${words[1]/#\~/$HOME}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    folders=(${(M)found:#*(/|=)})
    rest=(${found:#*(/|=)})
    (( ${#folders} )) && compadd -S '' -- $folders
    (( ${#rest} )) && compadd -- $rest
    (( ${#folders} + ${#rest} ))
}
compdef _carousel carousel
)";

constexpr const char* fish_script =
    R"(# Completion of carousel for fish: carousel completion fish > ~/.config/fish/completions/carousel.fish
function __carousel_complete
    set -l before (commandline -opc)
    $before[1] __complete $before[2..-1] (commandline -ct) 2>/dev/null
end
complete -c carousel -f -a '(__carousel_complete)'
)";

command_action add_completion_command(const command_parts& p) {
    const auto shell = std::make_shared<std::string>();
    const std::vector<std::string> shells{"bash", "zsh", "fish"};
    p.offers
        [p.app.add_option("SHELL", *shell, "bash | zsh | fish")->required()->check(CLI::IsMember(shells))] =
        offer(shells);
    p.app.footer(completion_footer);
    return [shell](const common_words&, const cli_environment& env) {
        env.out << (*shell == "zsh" ? zsh_script : *shell == "fish" ? fish_script : bash_script);
        return exit_code::ok;
    };
}

}  // namespace

std::vector<std::string> completions(const CLI::App& app, const completers& offers,
                                     const std::vector<std::string>& words) noexcept {
    try {
        std::string partial = words.empty() || words.back() == "=" ? "" : words.back();
        words_t all = candidates(app, offers, words);
        all.erase(std::remove_if(all.begin(), all.end(),
                                 [&](const std::string& c) { return !c.starts_with(partial); }),
                  all.end());
        std::sort(all.begin(), all.end());
        all.erase(std::unique(all.begin(), all.end()), all.end());
        return all;
    } catch (const std::exception&) {  // no message may appear at a prompt
        return {};
    }
}

completer offer(std::vector<std::string> words) {
    return [words = std::move(words)](const completion_request&) { return words; };
}

completer offer_files(std::vector<std::string> endings) {
    return [endings = std::move(endings)](const completion_request& request) {
        return files(request.partial, endings);
    };
}

completer offer_folders() { return offer_files({}); }

words_t running_pipelines(const completion_request&) {
    words_t names;
    for (const run::record& r : run::living_runs()) names.push_back(r.name);
    return names;
}

words_t pipelines_and_spaces(const completion_request& request) {
    words_t names = running_pipelines(request);
    for (std::string& name : space_names())
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
    return names;
}

words_t running_stages(const completion_request& request) {
    words_t names;
    const std::optional<run::record> run = meant_run(request.words);
    if (!run) return names;
    names = names_for_commands(run::read_ps(run::client(*run).ask(run::ps_request{}, 0, patience_s)));
    std::erase_if(names, [&](const std::string& n) {
        return std::find(request.words.begin(), request.words.end(), n) != request.words.end();
    });
    return names;
}

words_t running_parameters(const completion_request& request) {
    words_t out;
    const std::optional<run::record> run = meant_run(request.words);
    if (!run) return out;
    for (const ring::parameter& p :
         run::parameters_from(run::client(*run).ask(run::parameters_request{}, 0, patience_s))
             .schema.fields) {
        words_t values = p.choices;
        if (p.kind == ring::parameter_kind::flag) values = {"true", "false"};
        if (values.empty()) values = {""};
        for (const std::string& value : values) out.push_back(p.name + "=" + value);
    }
    return out;
}

extern const command completion_command{"completion", "Print the completion script of a shell",
                                        add_completion_command};

}  // namespace carousel::supervisor
