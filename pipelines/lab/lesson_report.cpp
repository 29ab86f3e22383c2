#include "lab/lesson_report.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <cctype>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>

#include "os/table.hpp"
#include "plot/chart.hpp"

namespace carousel::lab {
namespace {

char letter(int answer) { return static_cast<char>('a' + answer); }

/// Wraps the text at `columns` columns.
std::string lines_of(const std::string& text, std::size_t columns, std::size_t indent) {
    return std::string(indent, ' ') + supervisor::wrapped(text, columns - indent, indent) + "\n";
}

std::string subject_lines(const claim_verdict& v, const std::string& explanation, std::size_t columns) {
    std::string text = fmt::format("{}{}\n", v.about->kill ? "the kill: " : "", v.about->name);
    if (*v.about->textbook != 0)
        text += lines_of(fmt::format("the texts: {}", v.about->textbook), columns, 2);
    return text + lines_of(supervisor::printable(explanation), columns, 2);
}

std::string verdict_lines(const claim_verdict& v, std::size_t columns) {
    return subject_lines(v, (v.what == outcome::unexplained ? "UNEXPLAINED: " : "") + v.text, columns);
}

/// Lists the claims that could not be measured here. The text first lists the reasons. Each reason is
/// followed by the names of those of its claims that have no recorded explanation. The recorded explanations
/// of the other claims come last.
std::string unavailable_text(const lesson_result& r, std::size_t columns) {
    std::string recorded;
    for (const claim_verdict& v : r.verdicts)
        if (!v.recorded.empty()) recorded += subject_lines(v, "recorded: " + v.recorded, columns);
    std::string text;
    for (const unavailable& n : unavailable_claims(r.verdicts)) {
        const std::string reason = supervisor::printable(n.reason);
        if (!n.names.empty()) text += lines_of(fmt::format("not here: {}: {}", reason, n.names), columns, 0);
        if (n.recorded > 0)
            text += lines_of(fmt::format("not here: {}: {} subjects, shown by figures recorded on {}", reason,
                                         n.recorded, r.recorded_on),
                             columns, 0);
    }
    if (!text.empty()) text = "\n" + text;
    return recorded.empty() ? text : text + "\n" + recorded;
}

std::string prediction_line(const lesson_result& r, std::optional<int> predicted) {
    const std::optional<int> right = right_answer(*r.about, r.verdicts);
    if (!right) return "The prediction can't be checked here.\n";
    const char* text = r.about->answers[static_cast<std::size_t>(*right)];
    if (!predicted) return fmt::format("The answer: {}) {}\n", letter(*right), text);
    if (*predicted == *right) return fmt::format("Your prediction was right: {}) {}\n", letter(*right), text);
    return fmt::format("You predicted {}); the answer is {}) {}\n", letter(*predicted), letter(*right), text);
}

using plot::escaped;

constexpr const char* style =
    "body{font:16px/1.45 sans-serif;color:#202020;background:#fff;max-width:60em;margin:2em auto;padding:0 "
    "1em}"
    "h2{border-top:1px solid #ccc;padding-top:1em;margin-top:2em}.page{background:#f5f5f5;"
    "padding:.1em 1em}svg{max-width:100%;height:auto}table{border-collapse:collapse;width:100%}"
    "td,th{border:1px solid #ccc;padding:.4em "
    ".6em;text-align:left;vertical-align:top}td:first-child{width:22%}td:nth-child(2){width:24%}"
    ".not{color:#666}.bad{background:#ffe3d6}.kill td:first-child::before{content:'the kill: ';"
    "font-weight:bold}li.right{font-weight:bold}"
    // On a narrow screen the cells of a row are stacked, and an empty cell of the second column ("the texts")
    // takes no space.
    "@media(max-width:44em){tr:first-child{display:none}table,tbody,tr,td{display:block}table "
    "tr td{width:auto!important;border:0;padding:.2em 0}.plot{overflow-x:auto}.plot "
    "svg{min-width:40em}td:first-child{font-weight:bold}td:nth-child(2){color:#666}"
    "td:nth-child(2):not(:empty)::before{content:'the texts: '}tr{border-top:1px solid #ccc;padding:.4em 0}}";

std::string answers_html(const lesson_result& r) {
    const std::optional<int> right = right_answer(*r.about, r.verdicts);
    std::string html = "<ol type=\"a\">\n";
    for (std::size_t k = 0; k < r.about->answers.size(); ++k)
        html += fmt::format("<li{}>{}</li>\n", right == static_cast<int>(k) ? " class=\"right\"" : "",
                            escaped(r.about->answers[k]));
    return html + "</ol>\n";
}

std::string table_of(const lesson_result& r) {
    std::string html = "<table>\n<tr><th>subject</th><th>the texts</th><th>this machine</th></tr>\n";
    for (const bool kill : {false, true})
        for (const claim_verdict& v : r.verdicts) {
            if (v.about->kill != kill || v.what == outcome::unavailable) continue;
            html += fmt::format("<tr class=\"{}{}\"><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                                kill ? "kill" : "", v.what == outcome::explained ? "" : " bad",
                                escaped(v.about->name), escaped(v.about->textbook), escaped(v.text));
        }
    return html + "</table>\n";
}

/// Lists what could not be measured here: one line per reason, and a table of the recorded explanations.
std::string unavailable_html(const lesson_result& r) {
    std::string html;
    u32 recorded = 0;
    for (const unavailable& n : unavailable_claims(r.verdicts)) {
        recorded += n.recorded;
        if (!n.names.empty())
            html +=
                fmt::format("<p class=\"not\">Not here ({}): {}.</p>\n", escaped(n.reason), escaped(n.names));
        if (n.recorded > 0)
            html += fmt::format("<p class=\"not\">Not here ({}): {} subjects, shown below as recorded.</p>\n",
                                escaped(n.reason), n.recorded);
    }
    if (recorded == 0) return html;
    html += fmt::format("<table>\n<tr><th>subject</th><th>the texts</th><th>recorded on {}</th></tr>\n",
                        escaped(r.recorded_on));
    for (const claim_verdict& v : r.verdicts)
        if (!v.recorded.empty())
            html += fmt::format("<tr class=\"not{}\"><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                                v.about->kill ? " kill" : "", escaped(v.about->name),
                                escaped(v.about->textbook), escaped(v.recorded));
    return html + "</table>\n";
}

/// Converts a page to HTML: empty lines separate paragraphs, backquotes mark code.
std::string paragraphs_of(const std::string& page) {
    std::string html = "<p>";
    bool typed = false;
    for (std::size_t at = 0; at < page.size(); ++at) {
        const bool gap = page.compare(at, 2, "\n\n") == 0 && at + 2 < page.size();
        typed ^= page[at] == '`';
        html += gap               ? "</p>\n<p>"
                : page[at] == '`' ? (typed ? "<code>" : "</code>")
                                  : escaped(page.substr(at, 1));
        at += gap ? 1 : 0;
    }
    return "<div class=\"page\">" + html + "</p></div>\n";
}

std::string section_of(const lesson_result& r) {
    const lesson& l = *r.about;
    std::string html = fmt::format("<h2 id=\"lesson{0}\">{0}. {1}</h2>\n{2}<p><b>{3}</b></p>\n", l.number,
                                   escaped(l.title), paragraphs_of(page_of(l)), escaped(l.question));
    html += answers_html(r);
    if (const auto c = curves_of(r))
        html += "<div class=\"plot\">" + plot::svg_of(*c) + "</div>\n";
    else if (const auto b = bars_of(r))
        html += "<div class=\"plot\">" + plot::svg_of(*b) + "</div>\n";
    html += table_of(r) + unavailable_html(r);
    for (const std::string& f : r.failures) html += fmt::format("<p class=\"bad\">{}</p>\n", escaped(f));
    return html;
}

std::string first_line_with(const char* file, const std::string& key) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);)
        if (line.starts_with(key))
            if (const std::size_t at = line.find(':'); at != std::string::npos && at + 2 <= line.size())
                return line.substr(at + 2);
    return "unknown";
}

/// Returns ", NVIDIA H200, NVIDIA H200": the GPUs that the driver lists in /proc. Does not load CUDA.
std::string gpus() {
    std::string names;
    std::error_code none;
    for (std::filesystem::directory_iterator at("/proc/driver/nvidia/gpus", none), end; !none && at != end;
         at.increment(none)) {
        std::string name = first_line_with((at->path() / "information").c_str(), "Model:");
        name.erase(0, name.find_first_not_of(" \t"));
        names += ", " + name;
    }
    return names;
}

}  // namespace

std::string list_text(std::size_t columns) {
    std::string text;
    for (const lesson* l : all_lessons())
        text +=
            supervisor::shortened(fmt::format("{:>3}  {:<12} {}", l->number, l->name, l->title), columns) +
            "\n";
    return text +
           "`carousel lab 1` starts the first lesson; `carousel lab --all --report lab.html` runs all and "
           "writes a report.\n";
}

std::string question_text(const lesson& l, std::size_t columns) {
    std::string text = fmt::format("Lesson {}: {}\n\n{}\n", l.number, l.title, page_of(l));
    text += lines_of(l.question, columns, 0);
    for (std::size_t k = 0; k < l.answers.size(); ++k)
        text += fmt::format("  {}) {}\n", letter(static_cast<int>(k)), l.answers[k]);
    return text;
}

std::string result_text(const lesson_result& r, std::optional<int> predicted, std::size_t columns) {
    std::string text = "\n";
    for (const std::string& line : r.measured.other_lines) text += supervisor::printable(line) + "\n";
    if (const auto c = curves_of(r))
        text += "\n" + plot::text_of(*c, columns);
    else if (const auto b = bars_of(r))
        text += "\n" + plot::text_of(*b, columns);
    text += "\n" + prediction_line(r, predicted) + "\n";
    for (const bool kill : {false, true})
        for (const claim_verdict& v : r.verdicts)
            if (v.about->kill == kill && v.what != outcome::unavailable) text += verdict_lines(v, columns);
    text += unavailable_text(r, columns);
    for (const std::string& f : r.failures)
        text += lines_of("FAILED: " + supervisor::printable(f), columns, 0);
    return text + fmt::format("\nlesson {}: {} in {:.1f} s\n", r.about->number,
                              r.passed() ? "explained" : "FAILED", r.seconds);
}

std::optional<int> answer_from(const std::string& typed, std::size_t answers) {
    std::string word;
    for (const char c : typed)
        if (std::isalnum(static_cast<unsigned char>(c)) != 0)
            word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (word.size() != 1 || word[0] < 'a' || word[0] >= letter(static_cast<int>(answers)))
        return std::nullopt;
    return word[0] - 'a';
}

std::string failures_text(const std::vector<lesson_result>& all) {
    std::string names;
    std::size_t failed = 0;
    for (const lesson_result& r : all) {
        if (r.passed()) continue;
        ++failed;
        names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", r.about->number, r.about->name);
    }
    return failed == 0 ? "" : fmt::format("{} of {} lessons failed: {}\n", failed, all.size(), names);
}

std::optional<plot::chart> curves_of(const lesson_result& r) {
    const lesson_plot& p = r.about->plot;
    if (!p.bars.empty() || r.measured.curves.empty()) return std::nullopt;
    plot::chart c{p.title, "", p.x_label, p.y_label, {}};
    for (const curve& one : r.measured.curves)
        c.curves.push_back({one.name, one.points, false, c.curves.size()});
    return c;
}

std::optional<plot::bar_chart> bars_of(const lesson_result& r) {
    const lesson_plot& p = r.about->plot;
    plot::bar_chart c{p.title, "", p.y_label, {}};
    for (const lesson_bar& b : p.bars)
        if (const auto at = r.measured.values.find(b.figure); at != r.measured.values.end())
            c.bars.push_back({b.name, at->second});
    if (c.bars.empty()) return std::nullopt;
    return c;
}

lab_machine this_machine() {
    utsname u{};
    const bool known = ::uname(&u) == 0;
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    char when[32] = "";
    ::gmtime_r(&now, &utc);
    (void)std::strftime(when, sizeof when, "%Y-%m-%d %H:%M UTC", &utc);
    return {fmt::format("{}, {} threads{}", first_line_with("/proc/cpuinfo", "model name"),
                        std::thread::hardware_concurrency(), gpus()),
            known ? fmt::format("{} {}", u.sysname, u.release) : "unknown", when};
}

std::string html_report(const std::vector<lesson_result>& all, const lab_machine& machine) {
    std::string html = fmt::format(
        "<!DOCTYPE html>\n"
        "<html lang=\"en\">\n"
        "<head>\n"
        "<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width\">\n"
        "<title>Carousel: the lab</title>\n"
        "<style>{}</style>\n"
        "</head>\n"
        "<body>\n"
        "<h1>The lab: what IPC does on this machine</h1>\n"
        "<p>{}, {}, {}. The figures just measured here selected every sentence below; recorded figures are "
        "marked.</p>\n",
        style, escaped(machine.processor), escaped(machine.system), escaped(machine.when));
    html += "<ol>\n";
    for (const lesson_result& r : all)
        html += fmt::format("<li value=\"{0}\"><a href=\"#lesson{0}\">{1}</a>{2}</li>\n", r.about->number,
                            escaped(r.about->title), r.passed() ? "" : " <b>failed</b>");
    html += "</ol>\n";
    for (const lesson_result& r : all) html += section_of(r);
    return html + "</body>\n</html>\n";
}

}  // namespace carousel::lab
