// `carousel completion`: the shells' completion scripts (complete.hpp).

#include "cli/command.hpp"
#include "cli/completers.hpp"

namespace carousel::supervisor {
namespace {

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

extern const command completion_command{"completion", "Print the completion script of a shell",
                                        add_completion_command};

}  // namespace carousel::supervisor
