#include "viewer/session/settings.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <span>

#include "core/io.hpp"
#include "core/output_file.hpp"

namespace carousel::viewer {
namespace fs = std::filesystem;
namespace {

using values = std::map<std::string, std::string>;

void take(const values& v, const char* key, f32 low, f32 high, f32& to) {
    const auto at = v.find(key);
    if (at == v.end()) return;
    char* end = nullptr;
    const f32 value = std::strtof(at->second.c_str(), &end);
    if (end != at->second.c_str() && std::isfinite(value)) to = std::clamp(value, low, high);
}

void take(const values& v, const char* key, i32 low, i32 high, i32& to) {
    f32 value = static_cast<f32>(to);
    take(v, key, static_cast<f32>(low), static_cast<f32>(high), value);
    to = static_cast<i32>(value);
}

}  // namespace

std::string settings_path() {
    const char* config = std::getenv("XDG_CONFIG_HOME");
    if (config != nullptr && *config == '/') return std::string(config) + "/carousel/viewer.ini";
    const char* home = std::getenv("HOME");
    return std::string(home != nullptr && *home != '\0' ? home : "/tmp") + "/.config/carousel/viewer.ini";
}

settings load_settings(const std::string& path) {
    values v;
    std::ifstream in(path);
    for (std::string line; v.size() < 100 && std::getline(in, line);) {
        const std::size_t at = line.find('=');
        if (at != std::string::npos && line[0] != '#') v[line.substr(0, at)] = line.substr(at + 1);
    }
    settings s;
    if (v.count("dark") != 0) s.dark = v["dark"] != "0";
    take(v, "scale", 0.0F, 4.0F, s.scale);
    take(v, "width", 320, 16384, s.width);
    take(v, "height", 240, 16384, s.height);
    take(v, "main_split", 0.15F, 0.85F, s.main_split);
    take(v, "left_split", 0.15F, 0.9F, s.left_split);
    take(v, "bottom_split", 0.1F, 0.9F, s.bottom_split);
    for (std::size_t k = 0; k < s.right_splits.size(); ++k)
        take(v, fmt::format("right_split_{}", k).c_str(), 0.05F, 0.97F, s.right_splits[k]);
    std::sort(s.right_splits.begin(), s.right_splits.end());
    take(v, "plot_span_s", 5.0F, 120.0F, s.plot_span_s);
    take(v, "timeline_ms", 0.1F, 60'000.0F, s.timeline_ms);
    return s;
}

namespace {

// Removes temporary files of viewers that were killed during a write: each file PATH.PID for which there is
// no process PID.
void sweep(const std::string& path) {
    const std::string begin = fs::path(path).filename().string() + ".";
    std::error_code failed;
    for (fs::directory_iterator at(fs::path(path).parent_path(), failed), end; !failed && at != end;
         at.increment(failed)) {
        const std::string name = at->path().filename().string();
        if (name.rfind(begin, 0) != 0) continue;
        const std::string pid = name.substr(begin.size());
        if (pid.empty() || pid.find_first_not_of("0123456789") != std::string::npos ||
            fs::exists("/proc/" + pid))
            continue;
        std::error_code gone;
        fs::remove(at->path(), gone);
    }
}

}  // namespace

std::string save_settings(const std::string& path, const settings& s) {
    std::string text = "# Carousel's viewer; written when it ends\n";
    text +=
        fmt::format("dark={}\nscale={}\nwidth={}\nheight={}\n", s.dark ? 1 : 0, s.scale, s.width, s.height);
    text += fmt::format("main_split={:.4f}\nleft_split={:.4f}\nbottom_split={:.4f}\n", s.main_split,
                        s.left_split, s.bottom_split);
    for (std::size_t k = 0; k < s.right_splits.size(); ++k)
        text += fmt::format("right_split_{}={:.4f}\n", k, s.right_splits[k]);
    text += fmt::format("plot_span_s={}\ntimeline_ms={}\n", s.plot_span_s, s.timeline_ms);
    std::error_code failed;
    fs::create_directories(fs::path(path).parent_path(), failed);
    const auto not_kept = [&](int why) {
        return fmt::format("keeping the layout in {}: {}", path, output_cause(why));
    };
    const std::optional<output_target> to = find_output(path);  // the link's target is written, so that a
                                                                // symbolic link is not replaced
    if (!to) return not_kept(errno);
    if (!to->replaced) {
        const int failed = write_output_file(path, {std::as_bytes(std::span(text.data(), text.size()))});
        return failed == 0 ? "" : not_kept(failed);
    }
    sweep(to->path);
    const std::string temporary = fmt::format("{}.{}", to->path, ::getpid());
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) return not_kept(errno);
    const bool written = write_whole(fd, text.data(), text.size()) && ::fsync(fd) == 0;
    const int why = errno;
    ::close(fd);
    if (written && ::rename(temporary.c_str(), to->path.c_str()) == 0) return "";
    const int reason = written ? errno : why;
    ::unlink(temporary.c_str());
    return not_kept(reason);
}

}  // namespace carousel::viewer
