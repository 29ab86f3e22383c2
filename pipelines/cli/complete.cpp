#include "cli/complete.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

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

/// Returns the option named `word` if it takes a value, else null.
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

/// Returns candidates for the next word after the complete words of a command line: of `app` itself, or of
/// the subcommand that the words name.
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
    } catch (const std::exception&) {  // no messages at a prompt
        return {};
    }
}

}  // namespace carousel::supervisor
