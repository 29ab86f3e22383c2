#include "supervisor/plan/output_directory.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <optional>

#include "core/errors.hpp"
#include "core/user_input.hpp"

namespace carousel::supervisor {
namespace {

namespace fs = std::filesystem;
constexpr const char* default_pattern = "frame_%05d.png";

void make_writable(const fs::path& folder, const char* what) {
    std::error_code failed;
    fs::create_directories(folder, failed);
    const int why = failed ? failed.value() : (::access(folder.c_str(), W_OK | X_OK) != 0 ? errno : 0);
    if (why != 0)
        throw output_error(fmt::format(
            "{} can't be written to {}: {}; choose another place with --out PATTERN, or none with --out ''",
            what, folder.string(), errno_text(why)));
}

bool writes_pictures(const stage_setup& s) {
    return !s.has_output() && fs::path(s.program).filename() == "carousel-display";
}

}  // namespace

std::string now_stamp() {
    const std::time_t now = std::time(nullptr);
    std::tm t{};
    localtime_r(&now, &t);
    char text[32];
    std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &t);
    return text;
}

void prepare_outputs(run_setup& s, const std::string& stamp) {
    // The stage that writes files creates the directory. If there is no working directory, that stage reports
    // the error.
    std::error_code failed;
    if (const fs::path here = fs::current_path(failed); !failed)
        s.output_directory = (here / "runs" / fmt::format("{}-{}", s.name, stamp)).string();
    const auto displays = std::count_if(s.stages.begin(), s.stages.end(), writes_pictures);
    for (stage_setup& st : s.stages) {
        if (!writes_pictures(st)) continue;
        const nlohmann::json given = st.spec.settings.value("out", nlohmann::json(default_pattern));
        if (!given.is_string()) continue;  // the stage itself refuses the value with its own message
        const std::string pattern = given;
        if (pattern.empty() || pattern == "none") continue;
        fs::path whole = pattern;
        if (whole.is_relative()) {
            if (s.output_directory.empty())
                (void)working_directory();  // throws the reason why it cannot be
                                            // read
            whole = as_pattern(s.output_directory);
            if (displays > 1) whole /= st.spec.name;
            whole = (whole / pattern).lexically_normal();
        }
        const std::optional<std::string> literal = literal_text(whole.parent_path().string());
        const fs::path folder = literal ? fs::path(*literal) : whole.parent_path();
        if (literal)
            make_writable(folder, "pictures");  // otherwise the folder has a placeholder, and
                                                // the stage refuses the pattern
        st.spec.settings["out"] = whole.string();
        const bool film = whole.extension() == ".mp4";
        if (film && s.fps > 0 && !st.spec.settings.contains("film_fps")) st.spec.settings["film_fps"] = s.fps;
        if (film && s.pictures.empty()) s.pictures = literal_text(whole.string()).value_or(whole.string());
        if (s.pictures.empty())
            s.pictures = displays > 1 && fs::path(pattern).is_relative() ? folder.parent_path().string()
                                                                         : folder.string();
    }
}

std::string created_output_directory(const run_setup& s) {
    std::error_code ignored;
    return fs::is_directory(s.output_directory, ignored) ? s.output_directory : "";
}

void make_log_folder(const std::string& directory) { make_writable(fs::path(directory) / "logs", "logs"); }

}  // namespace carousel::supervisor
