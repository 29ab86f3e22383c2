#include "cli/completers.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "control/client.hpp"
#include "control/ps_message.hpp"
#include "control/request_message.hpp"
#include "runs/client.hpp"
#include "runs/spaces.hpp"

namespace carousel::supervisor {
namespace {

namespace fs = std::filesystem;
using words_t = std::vector<std::string>;
constexpr f64 patience_s = 0.5;  // a user is waiting at the prompt

/// Entries that begin with `partial`: folders with a slash, files whose name ends with one of `endings`.
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

/// Returns the pipeline that -p names in `words`, or else the only running one.
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

}  // namespace

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

}  // namespace carousel::supervisor
