#include "doctor/explanations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>

#include "core/did_you_mean.hpp"
#include "core/errors.hpp"

namespace carousel::supervisor {
namespace {

std::string lower(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
    return out;
}

/// "Exit code 71" -> "71", "128 + 9" -> "137", "signal 9" and "signal 9 (SIGKILL), injected" -> "137".
std::string plain(std::string_view asked) {
    std::string word = lower(asked);
    // as ps and the report say it: "signal 11 (SIGSEGV), injected"
    for (const char* behind : {" (", ", injected"})
        if (const std::size_t at = word.find(behind); at != std::string::npos) word.resize(at);
    const std::string told = word;
    std::erase_if(word, [](char c) { return c == ' ' || c == '+'; });
    const auto after = [&](std::string_view head) {
        const bool digits = word.size() > head.size() && word.size() <= head.size() + 3 &&
                            word.starts_with(head) &&
                            std::all_of(word.begin() + static_cast<std::ptrdiff_t>(head.size()), word.end(),
                                        [](unsigned char c) { return std::isdigit(c) != 0; });
        return digits ? word.substr(head.size()) : std::string();
    };
    if (std::string code = after("exitcode"); !code.empty()) return code;
    for (const char* head : {"signal", "128"})
        if (const std::string number = after(head); !number.empty() && word.size() > 3)
            return std::to_string(128 + std::stoi(number));
    return told;
}

/// Words of `text` in lines of at most `columns`, each behind `indent`.
std::string wrapped(const std::string& text, int columns, const std::string& indent) {
    std::string out, line;
    const auto room = static_cast<std::size_t>(std::max(20, columns)) - indent.size();
    std::size_t from = 0;
    while (from < text.size()) {
        const std::size_t end = std::min(text.find(' ', from), text.size());
        const std::string word = text.substr(from, end - from);
        if (!line.empty() && line.size() + 1 + word.size() > room) {
            out += indent + line + "\n";
            line.clear();
        }
        line += (line.empty() ? "" : " ") + word;
        from = end + 1;
    }
    return out + indent + line + "\n";
}

}  // namespace

std::vector<explanation> explain(std::string_view word) {
    const std::string asked = plain(word);
    std::vector<explanation> found;
    std::vector<std::string> known;
    for (const explanation& e : all_explanations()) {
        known.emplace_back(e.word);
        const std::string own = lower(e.word);
        if (own == asked || own == "cudaerror" + asked) found.push_back(e);
    }
    if (!found.empty()) return found;
    throw config_error(
        fmt::format("{}: no word that Carousel has an explanation of{}; `carousel explain` lists them", word,
                    did_you_mean_clause(std::string(word), known)));
}

std::string explanation_text(const std::vector<explanation>& all, int columns) {
    std::string text;
    for (const explanation& e : all) {
        text += fmt::format("{}{} ({})\n", text.empty() ? "" : "\n", e.word, e.kind);
        text += wrapped(e.means, columns, "  ");
        text += wrapped(fmt::format("Here: {}", e.here), columns, "  ");
        text += wrapped(fmt::format("To do: {}", e.act), columns, "  ");
    }
    return text;
}

std::string explanation_json(const std::vector<explanation>& all) {
    nlohmann::ordered_json out = nlohmann::ordered_json::array();
    for (const explanation& e : all)
        out.push_back(
            {{"kind", e.kind}, {"word", e.word}, {"means", e.means}, {"here", e.here}, {"act", e.act}});
    return out.dump(2) + "\n";
}

std::string explanation_list(int columns) {
    std::string text;
    std::string_view kind;
    std::string words;
    const auto flush = [&] {
        if (!words.empty()) text += fmt::format("{}:\n{}", kind, wrapped(words, columns, "  "));
        words.clear();
    };
    for (const explanation& e : all_explanations()) {
        if (kind != e.kind) flush();
        kind = e.kind;
        words += (words.empty() ? "" : ", ") + std::string(e.word);
    }
    flush();
    return text + "`carousel explain WORD` tells what it means here, and what to do.\n";
}

}  // namespace carousel::supervisor
