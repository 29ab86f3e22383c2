#include "core/user_input.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <utility>

#include "core/errors.hpp"

namespace carousel {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t longest_word = 256;  // a longer word is not considered a typing error

/// Words that were renamed in version 0.2.0, with their new names: keys of pipeline files and of the web UI,
/// and options (CHANGELOG.md).
constexpr std::pair<std::string_view, std::string_view> renamed[] = {{"latest", "sampled"},
                                                                     {"beside", "compare"},
                                                                     {"beside_plane", "compare_plane"},
                                                                     {"beside_range", "compare_range"},
                                                                     {"beside_colours", "compare_colours"},
                                                                     {"--near", "--coordinator"},
                                                                     {"--no-ask", "--no-prediction"},
                                                                     {"--beside", "--compare"}};

std::string lower(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return out;
}

}  // namespace

fs::path working_directory() {
    std::error_code failed;
    fs::path here = fs::current_path(failed);
    if (!failed) return here;
    throw config_error(fmt::format("the working directory can't be read: {}; {}", errno_text(failed.value()),
                                   failed.value() == ENOENT ? "it was deleted: change to a folder that exists"
                                                            : "change to a folder that this user may read"));
}

fs::path absolute_path(const fs::path& path) {
    return path.is_absolute() ? path : working_directory() / path;
}

std::string as_pattern(std::string_view text) {
    std::string out;
    for (const char c : text) out.append(c == '%' ? 2 : 1, c);
    return out;
}

std::optional<std::string> literal_text(std::string_view pattern) {
    std::string out;
    for (std::size_t at = 0; at < pattern.size(); ++at) {
        out += pattern[at];
        if (pattern[at] == '%' && (++at == pattern.size() || pattern[at] != '%')) return std::nullopt;
    }
    return out;
}

std::string absolute_pattern(const std::string& pattern) {
    const fs::path path(pattern);
    const fs::path whole =
        path.is_absolute() ? path : fs::path(as_pattern(working_directory().string())) / path;
    return whole.lexically_normal().string();
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before, above(b.size() + 1), row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = std::min(row[j], before[j - 2] + 1);
        }
        before = std::exchange(above, row);
    }
    return above[b.size()];
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
    if (word.empty() || word.size() > longest_word) return "";
    for (const auto& [before, now] : renamed)
        if (word == before && std::find(candidates.begin(), candidates.end(), now) != candidates.end())
            return std::string(now);
    const std::string wanted = lower(word);
    std::string best;
    std::size_t nearest = std::max<std::size_t>(1, word.size() / 3) + 1;
    for (const std::string& candidate : candidates) {
        if (candidate.size() > longest_word) continue;
        const std::size_t distance = edit_distance(wanted, lower(candidate));
        if (distance < nearest) {
            nearest = distance;
            best = candidate;
        }
    }
    if (!best.empty() || wanted.size() < 3) return best;
    const auto begun = std::find_if(candidates.begin(), candidates.end(),
                                    [&](const std::string& c) { return lower(c).starts_with(wanted); });
    return begun == candidates.end() ? "" : *begun;
}

std::string did_you_mean_clause(std::string_view word, const std::vector<std::string>& candidates) {
    const std::string closest = did_you_mean(word, candidates);
    return closest.empty() ? "" : "; did you mean \"" + closest + "\"?";
}

}  // namespace carousel
