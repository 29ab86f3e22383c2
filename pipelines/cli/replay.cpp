// `carousel replay`: runs a stage again on one frame that it has abandoned (dead_letters/dead_letter.hpp).

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "cli/complete.hpp"
#include "cli/options.hpp"
#include "core/user_input.hpp"
#include "dead_letters/dead_letter.hpp"
#include "os/table.hpp"
#include "run/directory.hpp"
#include "spec/programs.hpp"

namespace carousel::supervisor {
namespace {

namespace fs = std::filesystem;

struct replay_arguments {
    std::string pipeline, stage, prefix, program, ring_sequence;
};

struct found_dead_letter {
    std::string pipeline;
    run::dead_letter record;
};

/// Searches living and ended runs. `pipeline`: "" for all.
std::vector<found_dead_letter> find_dead_letters(const std::string& pipeline) {
    std::vector<found_dead_letter> all;
    std::error_code failed;
    for (fs::directory_iterator at(run::runs_folder(), failed), end; !failed && at != end;
         at.increment(failed)) {
        const std::string name = at->path().filename().string();
        if (!pipeline.empty() && name != pipeline) continue;
        for (run::dead_letter& l : run::dead_letters_in(at->path().string()))
            all.push_back({name, std::move(l)});
    }
    return all;
}

std::string dead_letters_table(const std::vector<found_dead_letter>& all) {
    if (all.empty()) return "there are no dead letters: no frame that was given up has been saved\n";
    table t({"PIPELINE", "FRAME", "STAGE", "PROGRAM", "FOLDER"});
    for (const found_dead_letter& f : all)
        t.add({f.pipeline, std::to_string(f.record.facts.ring_sequence), f.record.stage,
               fs::path(f.record.program).filename().string(), f.record.path});
    return t.text();
}

run::dead_letter choose(const replay_arguments& a, u64 ring_sequence) {
    std::vector<found_dead_letter> all = find_dead_letters(a.pipeline);
    const std::string kept = dead_letters_table(all);
    std::erase_if(all, [&](const found_dead_letter& f) {
        return f.record.facts.ring_sequence != ring_sequence ||
               (!a.stage.empty() && f.record.stage != a.stage);
    });
    if (all.size() == 1) return all.front().record;
    const std::string of = a.stage.empty() ? "" : " of stage " + a.stage;
    if (all.empty())
        throw config_error(fmt::format("no saved frame {}{}{}; saved frames:\n{}", ring_sequence, of,
                                       a.pipeline.empty() ? "" : " of " + a.pipeline, kept));
    throw config_error(
        fmt::format("frame {}{} is saved {} times: choose one with -p NAME and --stage NAME\n{}",
                    ring_sequence, of, all.size(), dead_letters_table(all)));
}

u64 sequence_from(const std::string& text) {
    if (text.empty() || text.size() > 19 || text.find_first_not_of("0123456789") != std::string::npos)
        throw config_error(fmt::format("--dead-letter {}: expected the number of a frame", text));
    return std::stoull(text);
}

/// This process is replaced by the stage's program, so that a debugger has the terminal and the caller sees
/// how the stage ends.
int replay(const replay_arguments& a, const cli_environment& env) {
    if (a.ring_sequence.empty()) {
        env.out << dead_letters_table(find_dead_letters(a.pipeline));
        return exit_code::ok;
    }
    const run::dead_letter l = choose(a, sequence_from(a.ring_sequence));
    std::string missing;
    std::vector<std::string> words = shell_words(a.prefix, missing);
    if (!missing.empty()) throw config_error(fmt::format("--prefix {}: expected {}", a.prefix, missing));
    const std::string program = a.program.empty() ? l.program : absolute_path(a.program).string();
    const std::string file(python_file(program));
    if (::access(file.c_str(), is_python(program) ? R_OK : X_OK) != 0)
        throw config_error(
            fmt::format("{} can't be started: {}: rebuild it, or name the stage's program with --program",
                        file, errno_text(errno)));
    if (is_python(program) && !l.python.empty() && ::access(l.python.c_str(), X_OK) != 0)
        throw config_error(
            fmt::format("stage {}: its interpreter {} can't be started: {}; install the interpreter again",
                        l.stage, l.python, errno_text(errno)));
    for (std::string& word : command_of(program, l.python)) words.push_back(std::move(word));
    words.insert(words.end(), {"--replay", l.path});
    exec_program(std::move(words), env.out);
}

std::vector<std::string> dead_letter_frames(const completion_request&) {
    std::vector<std::string> words;
    for (const found_dead_letter& f : find_dead_letters(""))
        words.push_back(std::to_string(f.record.facts.ring_sequence));
    return words;
}

std::vector<std::string> pipelines_with_dead_letters(const completion_request&) {
    std::vector<std::string> words;
    for (const found_dead_letter& f : find_dead_letters(""))
        if (words.empty() || words.back() != f.pipeline) words.push_back(f.pipeline);
    return words;
}

command_action add_replay_command(const command_parts& p) {
    const auto a = std::make_shared<replay_arguments>();
    p.offers[p.app
                 .add_option("--dead-letter", a->ring_sequence,
                             "Number of the frame that was given up [list all saved frames]")
                 ->type_name("N")] = dead_letter_frames;
    p.offers[p.app.add_option("-p,--name", a->pipeline, "Name of the run, which may have ended")
                 ->type_name("NAME")] = pipelines_with_dead_letters;
    p.app.add_option("--stage", a->stage, "The stage, if several stages have given this frame up")
        ->type_name("NAME");
    p.offers[p.app.add_option("--prefix", a->prefix, "Run the stage under a tool, e.g. \"valgrind -q\"")
                 ->type_name("TOOL")] =
        offer({"valgrind", "compute-sanitizer", "gdb --args", "cuda-gdb --args"});
    p.offers[p.app
                 .add_option("--program", a->program,
                             "Another build of the stage's program, e.g. a sanitized one")
                 ->type_name("PATH")] = offer_files({""});
    p.app.footer(
        "\n"
        "A frame that ends its stage's process max_attempts times is saved in the run's runtime directory: "
        "its inputs, parameters\n"
        "and settings. The folder stays until the next run of that name, or `carousel clean`. The stage runs "
        "on this frame\n"
        "only, without a supervisor and without deadlines; its exit code is the exit code of this command.\n"
        "\n"
        "Examples:\n"
        "  carousel replay\n"
        "  carousel replay --dead-letter 17 --prefix compute-sanitizer\n"
        "  carousel replay --dead-letter 17 --program build/asan/carousel-fragment\n"
        "  carousel replay --dead-letter 17 --prefix 'gdb --args'");
    return [a](const common_words&, const cli_environment& env) { return replay(*a, env); };
}

}  // namespace

extern const command replay_command{
    "replay", "Run a stage again on a frame that was given up, e.g. under valgrind", add_replay_command};

}  // namespace carousel::supervisor
