// `carousel lab`: lessons that measure on this machine.

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <optional>

#include "cli/command.hpp"
#include "cli/complete.hpp"
#include "cli/start.hpp"
#include "core/output_file.hpp"
#include "lab/lesson_report.hpp"
#include "spec/programs.hpp"

namespace carousel::supervisor {
namespace {

struct lab_arguments {
    std::vector<std::string> lessons;
    bool all = false, no_prediction = false;
    std::string report, figures;  ///< figures: folder for one file per lesson
};

/// Prompts until a valid answer is typed; nullopt: an empty line, or end of input.
std::optional<int> ask_prediction(const lab::lesson& l, const cli_environment& env) {
    for (std::string typed;;) {
        env.out << fmt::format("Your prediction (a to {}, Enter for none)? ",
                               static_cast<char>('a' + l.answers.size() - 1));
        env.out.flush();
        if (!std::getline(std::cin, typed) || typed.empty()) return std::nullopt;
        if (const auto answer = lab::answer_from(typed, l.answers.size())) return answer;
    }
}

lab::lesson_result teach(const lab::lesson& l, bool interactive, const cli_environment& env) {
    const std::size_t columns = columns_of(env);
    env.out << lab::question_text(l, columns);
    const std::optional<int> predicted = interactive ? ask_prediction(l, env) : std::nullopt;
    env.out.flush();
    lab::lesson_result r = lab::run_lesson(l, {executable_folder()}, [&](const std::string& what) {
        if (env.err_is_terminal) env.err << what << "\n";
    });
    env.out << lab::result_text(r, predicted, columns) << "\n";
    env.out.flush();
    return r;
}

/// Writes one file per lesson, in the form of lessons/NN_name/recorded.txt: the machine, then the
/// measurements.
void write_figures(const std::string& folder, const lab::lesson_result& r, const lab::lab_machine& machine) {
    output_file(fmt::format("{}/{:02}_{}.txt", folder, r.about->number, r.about->name))
        .write(fmt::format("{}, {}, {}\n{}", machine.processor, machine.system, machine.when,
                           lab::figures_text(r.measured)));
}

int run_lab(const lab_arguments& a, const cli_environment& env) {
    if (a.all && !a.lessons.empty())
        throw config_error("lab: --all runs every lesson; remove --all or the lesson's name");
    if (!a.all && a.lessons.empty()) {
        if (!a.report.empty() || !a.figures.empty())
            throw config_error(
                "lab: --report and --figures write the results of lessons, so name a lesson or use --all");
        env.out << lab::list_text(columns_of(env));
        return exit_code::ok;
    }
    std::vector<const lab::lesson*> chosen;
    for (const std::string& word : a.lessons) chosen.push_back(&lab::lesson_from(word));
    if (a.all) chosen.assign(lab::all_lessons().begin(), lab::all_lessons().end());
    // Opened before the lessons run, so that a report that can't be written is an error at once.
    std::optional<output_file> page;
    if (!a.report.empty()) page.emplace(a.report);
    if (!a.figures.empty() && !std::filesystem::is_directory(a.figures))
        throw output_error(fmt::format("writing figures to {}: not a folder", a.figures));
    const bool interactive = !a.no_prediction && ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
    if (!a.no_prediction && !interactive)
        env.err << "no terminal: skipping the prediction (as with --no-prediction)\n";
    std::vector<lab::lesson_result> results;
    results.reserve(chosen.size());
    for (const lab::lesson* l : chosen) {
        results.push_back(teach(*l, interactive, env));
        if (!a.figures.empty()) write_figures(a.figures, results.back(), lab::this_machine());
    }
    if (page) page->write(lab::html_report(results, lab::this_machine()));
    env.err << lab::failures_text(results);
    return lab::failures_text(results).empty() ? exit_code::ok : exit_code::stage_failed;
}

command_action add_lab_command(const command_parts& p) {
    const auto a = std::make_shared<lab_arguments>();
    CLI::Option* lesson = p.app.add_option("LESSON", a->lessons, "Its number or its name [list them]");
    std::vector<std::string> names;
    for (const lab::lesson* l : lab::all_lessons()) names.emplace_back(l->name);
    p.offers[lesson] = offer(std::move(names));
    p.app.add_flag("--all", a->all, "Every lesson");
    p.app.add_flag("--no-prediction", a->no_prediction, "Do not ask for a prediction");
    p.offers[p.app.add_option("--report", a->report, "Write the results as one HTML page")
                 ->type_name("FILE")] = offer_files({".html"});
    p.offers[p.app
                 .add_option("--figures", a->figures,
                             "Write the figures of each lesson to FOLDER/NN_NAME.txt")
                 ->type_name("FOLDER")] = offer_folders();
    p.app.footer(
        "\n"
        "A lesson asks for a prediction, measures on this machine, explains the measured figures, and kills\n"
        "a process. If there is no GPU, no second GPU or no MPS, recorded figures are shown for the parts\n"
        "that need it. The exit code is 1 if no explanation of a lesson fits the measured figures.\n"
        "\n"
        "Examples:\n"
        "  carousel lab\n"
        "  carousel lab 5\n"
        "  carousel lab --all --no-prediction --report lab.html");
    return [a](const common_words&, const cli_environment& env) { return run_lab(*a, env); };
}

}  // namespace

extern const command lab_command{"lab", "Lessons on IPC: predict, measure here, understand, break it",
                                 add_lab_command};

}  // namespace carousel::supervisor
