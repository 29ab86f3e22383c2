#include "doctor/explanations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "core/errors.hpp"
#include "core/json.hpp"
#include "core/user_input.hpp"
#include "spec/pipeline_keys.hpp"

namespace carousel::supervisor {
namespace {

std::string lower(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
    return out;
}

/// Normalises a query: "Exit code 71" -> "71", "128 + 9" -> "137", "signal 9" and "signal 9 (SIGKILL),
/// injected" -> "137".
std::string plain(std::string_view query) {
    std::string word = lower(query);
    // removes what ps and the report print after the number: "signal 11 (SIGSEGV), injected"
    for (const char* suffix : {" (", ", injected"})
        if (const std::size_t at = word.find(suffix); at != std::string::npos) word.resize(at);
    std::string stem = word;
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
    return stem;
}

/// Returns "cudaerrorillegaladdress" for "illegaladdress" and the driver's "cuda_error_illegal_address"; the
/// driver has different names for a few errors.
std::string cuda_word(std::string word) {
    constexpr std::string_view driver = "cuda_error_", runtime = "cudaerror";
    if (word.starts_with(driver)) {
        word.erase(0, driver.size());
        std::erase(word, '_');
        constexpr std::pair<std::string_view, std::string_view> other_names[] = {
            {"outofmemory", "memoryallocation"},
            {"notinitialized", "initializationerror"},
            {"deinitialized", "cudartunloading"},
            {"invalidimage", "invalidkernelimage"},
            {"invalidcontext", "deviceuninitialized"},
            {"mapfailed", "mapbufferobjectfailed"},
            {"unmapfailed", "unmapbufferobjectfailed"},
            {"nobinaryforgpu", "nokernelimagefordevice"},
            {"contextalreadyinuse", "devicealreadyinuse"},
            {"invalidhandle", "invalidresourcehandle"},
            {"notfound", "symbolnotfound"},
            {"deviceunavailable", "devicesunavailable"},
            {"launchfailed", "launchfailure"}};
        for (const auto& [own, of_runtime] : other_names)
            if (word == own) word = of_runtime;
    }
    return word.starts_with(runtime) ? word : std::string(runtime) + word;
}

/// "cuda error 700", "error 700" and "700" -> 700; 0: not a number.
u32 cuda_number(std::string_view query) {
    std::string word = lower(query);
    for (const char* head : {"cuda ", "error ", "code "})
        if (word.starts_with(head)) word.erase(0, std::string_view(head).size());
    u32 number = 0;
    const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), number);
    return failed == std::errc{} && end == word.data() + word.size() ? number : 0;
}

/// Adds the errors that CUDA names; errors that are in the table get more text.
void add_cuda_errors(std::string_view query, const std::string& word, std::vector<explanation>& found) {
    const std::string name = cuda_word(word);
    const u32 number = cuda_number(query);
    for (const cuda_error_name& e : all_cuda_errors()) {
        if (lower(e.word) != name && e.number != number) continue;
        const auto all = all_explanations();
        const auto met = std::find_if(all.begin(), all.end(), [&](const explanation& one) {
            return std::string_view(one.word) == e.word;
        });
        found.push_back(
            met != all.end()
                ? *met
                : explanation{"CUDA error", e.word, e.means,
                              "Neither a run nor a lesson of Carousel is known to cause this error.",
                              "The message names the call that returned the error: see NVIDIA's "
                              "documentation of that call."});
        return;
    }
}

/// Returns the explanations of the keys of a pipeline file; a key that occurs in several sections has one
/// explanation.
const std::vector<explanation>& explained_keys() {
    struct texts {
        std::string key, means, here;
    };
    static const std::vector<texts> all = [] {
        std::vector<texts> out;
        for (const key_description& k : all_keys()) {
            const std::string unit =
                k.range != nullptr && k.range->unit[0] != 0 ? fmt::format(" ({})", k.range->unit) : "";
            const std::string accepts =
                fmt::format("In {}: {}{}; default: {}.", k.section, k.values, unit, k.default_value);
            const auto same =
                std::find_if(out.begin(), out.end(), [&](const texts& t) { return t.key == k.key; });
            if (same == out.end()) {
                out.push_back({k.key, k.meaning, accepts});
            } else {
                same->means += fmt::format(" In {}: {}", k.section, k.meaning);
                same->here += " " + accepts;
            }
        }
        return out;
    }();
    static const std::vector<explanation> explained = [] {
        std::vector<explanation> out;
        for (const texts& t : all)
            out.push_back({"key of a pipeline file", t.key.c_str(), t.means.c_str(), t.here.c_str(),
                           "`carousel validate FILE` checks the value without starting the pipeline."});
        return out;
    }();
    return explained;
}

/// Returns the words of `text` in lines of at most `columns` columns, each line after `indent`.
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

std::span<const explanation> all_explanations() noexcept {
    static const std::vector<explanation> all = [] {
        const std::span<const explanation> words = table_of_words();
        std::vector<explanation> out(words.begin(), words.end());
        out.insert(out.end(), explained_keys().begin(), explained_keys().end());
        return out;
    }();
    return all;
}

std::vector<explanation> explain(std::string_view word) {
    const std::string query = plain(word);
    std::vector<explanation> found;
    std::vector<std::string> known;
    for (const explanation& e : all_explanations()) {
        known.emplace_back(e.word);
        const std::string own = lower(e.word);
        if (own == query) found.push_back(e);
    }
    const bool is_cuda_word = std::any_of(found.begin(), found.end(), [](const explanation& e) {
        return std::string_view(e.kind) == "CUDA error";
    });
    if (!is_cuda_word) add_cuda_errors(word, query, found);
    for (const cuda_error_name& e : all_cuda_errors()) known.emplace_back(e.word);
    if (!found.empty()) return found;
    throw config_error(fmt::format("no entry for \"{}\"{}; `carousel explain` lists all entries", word,
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
    std::size_t used = 0;  // number of columns used in the line; a phrase of several words is never split
    for (const explanation& e : all_explanations()) {
        const bool first = kind != e.kind;
        if (first) text += fmt::format("{}{}:\n", kind.empty() ? "" : "\n", e.kind);
        const std::string_view word = e.word;
        const bool breaks = !first && used + 2 + word.size() + 1 > static_cast<std::size_t>(columns);
        text += fmt::format("{}{}", first ? "  " : breaks ? ",\n  " : ", ", word);
        used = (first || breaks ? 2 : used + 2) + word.size();
        kind = e.kind;
    }
    return text +
           "\n"
           "Every other error of CUDA 13.0 has an entry, by its name or its number.\n"
           "`carousel explain WORD` prints its meaning, its causes and what to do.\n";
}

}  // namespace carousel::supervisor
