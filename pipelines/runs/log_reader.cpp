#include "runs/log_reader.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <sstream>

#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/json.hpp"
#include "core/json_text.hpp"

namespace carousel::supervisor {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
constexpr const char* ending = ".jsonl";
constexpr std::size_t most_alone_bytes = std::size_t{8} << 20U;
constexpr std::size_t longest_record = 1U << 16U;  // this is enough, because log lines of stages are cut at 8
                                                   // KiB

void add_record(const std::string& text, std::vector<log_record>& out) {
    const json j = parse_json_or_discard(text, json_channel::document);
    if (!j.is_object()) return;
    try {
        out.push_back({j.at("time").get<f64>(), j.at("stage").get<std::string>(),
                       j.at("line").get<std::string>(), j.value("pid", 0), j.value("color", 0U)});
    } catch (const json::exception&) {  // of another version
    }
}

shm::unique_fd open_log(const std::string& path) {
    return shm::unique_fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
}

/// Returns the paths of the files that exist, sorted.
std::vector<std::string> present_files(const std::string& folder) {
    std::vector<std::string> paths;
    std::error_code failed;
    for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
        if (at->path().extension() == ending) paths.push_back(at->path().string());
    std::sort(paths.begin(), paths.end());
    return paths;
}

bool same_file(int fd, const std::string& path) {
    struct stat open {
    }, there{};
    return ::fstat(fd, &open) == 0 && ::stat(path.c_str(), &there) == 0 && open.st_ino == there.st_ino &&
           open.st_dev == there.st_dev;
}

}  // namespace

void log_reader::read_on(file& f, std::vector<log_record>& out) const {
    char bytes[65536];
    for (ssize_t n; (n = carousel::read_whole(f.fd.get(), bytes, sizeof bytes)) > 0;) {
        for (ssize_t k = 0; k < n; ++k) {
            if (bytes[k] != '\n') {
                if (f.partial.size() < longest_record) f.partial += bytes[k];
                continue;
            }
            add_record(f.partial, out);
            f.partial.clear();
        }
    }
}

void log_reader::read_whole(const std::string& path, std::vector<log_record>& out) const {
    file f{open_log(path), ""};
    if (f.fd) read_on(f, out);
}

void log_reader::follow(const std::string& path, std::vector<log_record>& out) {
    file& f = files_[path];
    const std::string older = path + ".1";
    if (f.fd) {
        read_on(f, out);
        std::error_code failed;
        if (!fs::exists(path, failed) || same_file(f.fd.get(), path)) return;
        read_on(f, out);  // the file was renamed in the meantime, so it does not grow any more
        if (!same_file(f.fd.get(), older)) read_whole(older, out);
        f.partial.clear();
    } else {
        read_whole(older, out);
    }
    f.fd = open_log(path);
    if (f.fd) read_on(f, out);
}

std::vector<log_record> log_reader::take() {
    std::vector<log_record> out;
    for (const std::string& path : present_files(folder_)) files_.try_emplace(path);
    for (auto& [path, ignored] : files_) follow(path, out);
    std::stable_sort(out.begin(), out.end(),
                     [](const log_record& a, const log_record& b) { return a.time < b.time; });
    return out;
}

std::vector<std::string> log_reader::labels() const {
    std::vector<std::string> names;
    for (const std::string& path : present_files(folder_)) {
        std::string name = fs::path(path).stem().string();
        if (name.starts_with('@')) name.erase(0, 1);
        std::replace(name.begin(), name.end(), '@', '/');  // "b@sink": a stage on host b
        names.push_back(std::move(name));
    }
    return names;
}

void add_lines_alone(const std::string& logs, std::vector<log_record>& lines) {
    std::error_code failed;
    for (fs::directory_iterator at(logs, failed), end; !failed && at != end; at.increment(failed)) {
        if (at->path().extension() != ".alone") continue;
        const std::string name = at->path().stem().string();  // STAGE.SEAT.PID
        const std::size_t pid = name.rfind('.'),
                          seat = pid == std::string::npos ? pid : name.rfind('.', pid - 1);
        if (pid == std::string::npos || seat == std::string::npos) continue;
        struct stat info {};
        if (::stat(at->path().c_str(), &info) != 0) continue;
        log_record r{static_cast<f64>(info.st_mtim.tv_sec) + static_cast<f64>(info.st_mtim.tv_nsec) / 1e9,
                     name.substr(0, seat), "", std::atoi(name.c_str() + pid + 1), 0};
        std::istringstream text(read_file(at->path().string(), most_alone_bytes).value_or(""));
        while (std::getline(text, r.line)) lines.push_back(r);
    }
    std::stable_sort(lines.begin(), lines.end(),
                     [](const log_record& a, const log_record& b) { return a.time < b.time; });
}

f64 since_from(const std::string& text, f64 now) {
    f64 number = 0;
    char unit = 0, rest = 0;
    if (std::sscanf(text.c_str(), "%lf%c%c", &number, &unit, &rest) == 2 && std::isfinite(number) &&
        number >= 0) {
        const f64 seconds = unit == 's' ? 1 : unit == 'm' ? 60 : unit == 'h' ? 3600 : unit == 'd' ? 86400 : 0;
        if (seconds > 0) return now - number * seconds;
    }
    std::tm t{};
    f64 second = 0;
    int used = 0;
    if (std::sscanf(text.c_str(), "%4d-%2d-%2d%*1[Tt ]%2d:%2d:%lf%n", &t.tm_year, &t.tm_mon, &t.tm_mday,
                    &t.tm_hour, &t.tm_min, &second, &used) == 6 &&
        used > 0 && t.tm_mon >= 1 && t.tm_mon <= 12 && t.tm_mday >= 1 && t.tm_mday <= 31 && t.tm_hour < 24 &&
        t.tm_min < 60 && second >= 0 && second < 61) {
        t.tm_year -= 1900;
        t.tm_mon -= 1;
        t.tm_isdst = -1;
        const std::string zone = text.substr(static_cast<std::size_t>(used));
        if (zone.empty()) return static_cast<f64>(std::mktime(&t)) + second;
        if (zone == "Z" || zone == "z") return static_cast<f64>(::timegm(&t)) + second;
        int hours = 0, minutes = 0;
        char sign = 0;
        if (zone.size() == 6 && std::sscanf(zone.c_str(), "%c%2d:%2d", &sign, &hours, &minutes) == 3 &&
            (sign == '+' || sign == '-'))
            return static_cast<f64>(::timegm(&t)) + second -
                   (sign == '-' ? -1 : 1) * (hours * 3600.0 + minutes * 60.0);
    }
    throw config_error(fmt::format(
        "--since {}: expected a span such as 10s, 5m, 2h or 1d, or a time such as 2026-01-31T12:00:00Z",
        text));
}

std::string timestamp_text(f64 time) {
    const auto ms = static_cast<i64>(std::floor(time * 1000));
    const std::time_t whole = ms / 1000;
    std::tm t{};
    gmtime_r(&whole, &t);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &t);
    return fmt::format("{}.{:03}Z", text, ms % 1000);
}

}  // namespace carousel::supervisor
