#include "cli/complete.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/cli.hpp"
#include "run/parameter_message.hpp"
#include "runs/client.hpp"

namespace carousel::supervisor {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using words_t = std::vector<std::string>;
constexpr f64 patience_s = 0.5;  // somebody has pressed a key and waits

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
    return app.get_subcommands([](const CLI::App*) { return true; });
}

/// Options that --help shows.
std::vector<const CLI::Option*> options_of(const CLI::App& sub) {
    return sub.get_options([](const CLI::Option* o) { return !o->get_group().empty() && o->nonpositional(); });
}

/// The long name of the option that `word` is and that wants a value; "".
std::string option_with_value(const CLI::App& sub, const std::string& word) {
    for (const CLI::Option* o : options_of(sub))
        if (o->check_name(word) && o->get_items_expected_max() > 0) return o->get_lnames().empty() ? word : "--" + o->get_lnames().front();
    return "";
}

words_t option_names(const CLI::App& sub) {
    words_t names;
    for (const CLI::Option* o : options_of(sub))
        for (const std::string& name : o->get_lnames()) names.push_back("--" + name);
    return names;
}

/// Entries that begin with `partial`: folders with a slash, files whose name ends in one of `endings`.
words_t files(const std::string& partial, const words_t& endings) {
    const auto slash = partial.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : partial.substr(0, slash + 1);
    words_t all;
    std::error_code failed;
    for (fs::directory_iterator at(folder.empty() ? "." : folder, failed), end; !failed && at != end; at.increment(failed)) {
        const std::string name = at->path().filename().string();
        std::error_code ignored;
        if (name.starts_with('.') && !partial.substr(folder.size()).starts_with('.')) continue;
        if (at->is_directory(ignored))
            all.push_back(folder + name + "/");
        else if (std::any_of(endings.begin(), endings.end(), [&](const std::string& ending) { return name.ends_with(ending); }))
            all.push_back(folder + name);
    }
    return all;
}

words_t running_pipelines() {
    words_t names;
    for (const run::record& r : run::living_runs()) names.push_back(r.name);
    return names;
}

/// The pipeline that -p names in `words`, else the only one that runs.
std::optional<run::record> meant_run(const words_t& words) {
    std::string wanted;
    for (std::size_t k = 0; k + 1 < words.size(); ++k)
        if (words[k] == "-p" || words[k] == "--name") wanted = words[words[k + 1] == "=" && k + 2 < words.size() ? k + 2 : k + 1];
    const std::vector<run::record> runs = run::living_runs();
    for (const run::record& r : runs)
        if (wanted.empty() ? runs.size() == 1 : r.name == wanted) return r;
    return std::nullopt;
}

/// Its stages; with several instances each of them, too.
words_t running_stages(const words_t& words) {
    words_t names;
    const std::optional<run::record> run = meant_run(words);
    if (!run) return names;
    const json reply = ask_pipeline(*run, {{"command", "ps"}}, 0, patience_s);
    std::map<std::string, u32> instances;
    for (const json& s : reply.at("stages")) ++instances[s.at("name").get<std::string>()];
    for (const auto& [name, count] : instances) {
        names.push_back(name);
        for (u32 k = 0; count > 1 && k < count; ++k) names.push_back(fmt::format("{}.{}", name, k));
    }
    return names;
}

/// Its parameters as `carousel set` takes them: "exposure=", and of a choice or a flag each value.
words_t running_parameters(const words_t& words) {
    words_t out;
    const std::optional<run::record> run = meant_run(words);
    if (!run) return out;
    for (const ring::parameter& p :
         run::parameters_from(ask_pipeline(*run, run::ask_parameters(), 0, patience_s)).schema.fields) {
        words_t values = p.choices;
        if (p.kind == ring::parameter_kind::flag) values = {"true", "false"};
        if (values.empty()) values = {""};
        for (const std::string& value : values) out.push_back(p.name + "=" + value);
    }
    return out;
}

words_t values_of(const std::string& option, const std::string& partial) {
    if (option == "--name") return running_pipelines();
    if (option == "--device") return {"auto", "cpu", "cuda:0"};
    if (option == "--scene") return {"bumpy-sphere", "fractal-terrain", "long-slivers", "quad-stack", "quad-stack-front-first", "torus-knots", "triangle-soup"};
    if (option == "--peer") return {"opengl"};
    if (option == "--simd") return {"avx2", "avx512", "baseline"};
    if (option == "--plot") return files(partial, {".svg"});
    if (option == "--json" || option == "--picture" || option == "--log") return files(partial, {""});
    if (option == "--format") return {"dot", "mermaid"};
    if (option == "--fault") return {"hang", "gpu-fault", "exit", "abort"};
    if (option == "--signal") return {"KILL", "TERM", "INT", "ABRT", "SEGV", "STOP", "CONT", "HUP", "QUIT"};
    if (option == "--profile") return {"nsys", "ncu:"};
    if (option == "--against") return files(partial, {});
    if (option == "--modes") return {"mps", "process", "process,mps"};
    if (option == "--size" || option == "--sizes") return {"640x480", "1280x720", "1920x1080", "3840x2160"};
    if (option == "--mesh") return files(partial, {".obj", ".gltf", ".glb"});
    if (option == "--report" || option == "--out") return files(partial, {""});
    return {};
}

words_t positionals_of(const std::string& command, const words_t& words, const std::string& partial) {
    if (command == "run" || command == "validate" || command == "graph" || command == "chaos" || command == "pipeline") return files(partial, {".toml"});
    if (command == "completion") return {"bash", "zsh", "fish"};
    if (command == "set") return running_parameters(words);
    if (command == "stage") return words.size() < 3 ? words_t{} : files(partial, {});  // new stage NAME FOLDER
    const words_t told = {"kill", "inject", "stop", "cont", "restart", "down", "up", "logs"};
    if (std::find(told.begin(), told.end(), command) == told.end()) return {};
    words_t names = running_stages(words);
    names.erase(std::remove_if(names.begin(), names.end(),
                               [&](const std::string& n) { return std::find(words.begin(), words.end(), n) != words.end(); }),
                names.end());
    if (command == "logs") names.emplace_back("carousel");
    if (command == "up")
        for (std::string& file : files(partial, {".toml"})) names.push_back(std::move(file));
    return names;
}

/// What may follow the whole words of a command line: of `app` itself, or of the command in it that they name.
words_t candidates_in(const CLI::App& app, const words_t& words, const std::string& partial) {
    const auto below = commands_of(app);
    if (words.empty() && !below.empty()) {
        words_t names;
        if (partial.starts_with('-')) names = app.get_parent() == nullptr ? words_t{"--help", "--version"} : words_t{"--help"};
        for (const CLI::App* sub : below) names.push_back(sub->get_name());
        return names;
    }
    for (const CLI::App* sub : below) {
        if (sub->get_name() != words.front()) continue;
        if (!commands_of(*sub).empty()) return candidates_in(*sub, {words.begin() + 1, words.end()}, partial);
        const std::string option = words.size() > 1 ? option_with_value(*sub, words.back()) : "";
        if (!option.empty()) return values_of(option, partial);
        if (partial.starts_with('-')) return option_names(*sub);
        return positionals_of(sub->get_name(), words, partial);
    }
    return {};
}

words_t candidates(const CLI::App& app, words_t words) {
    std::string partial = words.empty() ? "" : words.back();
    if (!words.empty()) words.pop_back();
    if (partial == "=") partial.clear();  // bash takes --name=demo apart
    if (!words.empty() && words.back() == "=") words.pop_back();
    return candidates_in(app, words, partial);
}

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
# Completion of carousel for zsh: source <(carousel completion zsh), behind compinit
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

constexpr const char* fish_script = R"(# Completion of carousel for fish: carousel completion fish > ~/.config/fish/completions/carousel.fish
function __carousel_complete
    set -l before (commandline -opc)
    $before[1] __complete $before[2..-1] (commandline -ct) 2>/dev/null
end
complete -c carousel -f -a '(__carousel_complete)'
)";

}  // namespace

std::vector<std::string> completions(const CLI::App& app, const std::vector<std::string>& words) noexcept {
    try {
        std::string partial = words.empty() || words.back() == "=" ? "" : words.back();
        words_t all = candidates(app, words);
        all.erase(std::remove_if(all.begin(), all.end(), [&](const std::string& c) { return !c.starts_with(partial); }), all.end());
        std::sort(all.begin(), all.end());
        all.erase(std::unique(all.begin(), all.end()), all.end());
        return all;
    } catch (const std::exception&) {  // a prompt is no place for messages
        return {};
    }
}

int cli_completion(const cli_arguments& a, const cli_environment& env) {
    env.out << (a.shell == "zsh" ? zsh_script : a.shell == "fish" ? fish_script : bash_script);
    return exit_code::ok;
}

}  // namespace carousel::supervisor
