#include "core/crash_point.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/errors.hpp"

namespace carousel {
namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(crash_point::count_)> names = {
    "process_started",  "connected",
    "introduced",       "memory_received",
    "segment_mapped",   "entry_claimed",
    "configured",       "device_open",
    "links_mapped",     "events_published",
    "asset_loading",    "asset_loaded",
    "prepared",         "live",
    "ready_reported",   "standing_by",
    "took_over",        "start_over_requested",
    "detached",         "detach_reported",
    "job_chosen",       "job_opened",
    "sequence_leased",  "input_leased",
    "slot_filled",      "parameters_chosen",
    "header_written",   "clock_started",
    "event_recorded",   "job_submitted",
    "work_complete",    "host_work_done",
    "job_committed",    "slot_ready",
    "number_done",      "input_done",
    "job_idle",         "end_claimed",
    "end_known",        "tail_moved",
    "latest_closed",    "slot_freed",
    "help_committed",   "help_ready",
    "latest_leased",    "latest_read",
    "latest_released",  "end_seen",
    "work_ended",       "run_over",
    "leaving",          "entry_prepared",
    "entry_appointed",  "stage_spawned",
    "stage_reattached", "entry_doomed",
    "words_revoked",    "words_requeued",
    "death_judged",     "entry_fenced",
    "words_reclaimed",  "run_taken_over",
    "stage_returned",   "parameters_filled",
    "end_kept",         "seat_named",
    "account_written",  "account_saved",
    "reload_intended",  "plan_replaced",
    "rebuild_begun",    "rebuild_fenced",
    "devices_chosen",   "memory_remade",
    "ledgers_ended",    "block_removed",
    "block_filled",     "block_rebuilt"};

constexpr std::array<std::string_view, 5> ways = {"kill", "stop", "abort", "exit", "throw"};

struct planned {
    u32 line = 0;
    crash_point point{};
    std::string how;
    u64 nth = 1;
    std::string marker;  ///< path of the file that is created when the line fires
    /// how often this process has passed the point since the line became active
    std::atomic<u64> passages{0};
};

std::vector<std::unique_ptr<planned>> plan;  // contains only the lines of this role, in the order of the file
std::atomic<std::size_t> turn{0};
std::function<void(crash_point)> hook;  // set by a test

crash_point point_named(const std::string& name, const std::string& where) {
    for (std::size_t k = 0; k < names.size(); ++k)
        if (names[k] == name) return static_cast<crash_point>(k);
    throw config_error(fmt::format("{}: unknown crash point \"{}\"", where, name));
}

// For `kill` this function must not return, because the process is between two steps and the second step must
// not run.
void die_as(const std::string& how, crash_point point) {
    const std::string text = fmt::format("crash point {}: {}\n", name_of(point), how);
    [[maybe_unused]] const auto ignored = ::write(STDERR_FILENO, text.data(), text.size());
    if (how == "stop") {
        ::raise(SIGSTOP);  // returns when the process receives SIGCONT
        return;
    }
    if (how == "abort") std::abort();
    if (how == "exit") std::exit(0);
    if (how == "throw") throw std::runtime_error(fmt::format("crash point {}", name_of(point)));
    ::kill(::getpid(), SIGKILL);
    for (;;) ::pause();
}

}  // namespace

std::string_view name_of(crash_point point) noexcept {
    const auto k = static_cast<std::size_t>(point);
    return k < names.size() ? names[k] : "?";
}

namespace detail {

bool crash_points_armed = false;

void reach(crash_point point) {
    if (hook) hook(point);
    for (std::size_t k = turn.load(); k < plan.size(); k = turn.load()) {
        planned& p = *plan[k];
        if (::access(p.marker.c_str(), F_OK) == 0) {  // the line has fired in another incarnation or another
                                                      // instance
            turn.compare_exchange_strong(k, k + 1);
            continue;
        }
        if (p.point != point || p.passages.fetch_add(1) + 1 != p.nth) return;
        const int fd = ::open(p.marker.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
        if (fd < 0) return;  // another instance created the marker first
        ::close(fd);
        turn.compare_exchange_strong(k, k + 1);
        die_as(p.how, point);
        return;
    }
}

}  // namespace detail

void set_crash_hook(std::function<void(crash_point)> at_each) {
    hook = std::move(at_each);
    detail::crash_points_armed = hook || !plan.empty();
}

void arm_crash_points(std::string_view role) {
    const char* path = std::getenv("CAROUSEL_CRASH_PLAN");
    if (path == nullptr || *path == '\0') return;
#ifdef CAROUSEL_NO_CRASH_POINTS
    throw config_error(
        "CAROUSEL_CRASH_PLAN is set, but this build has no crash points (-DCAROUSEL_CRASH_POINTS=OFF)");
#endif
    std::ifstream in(path);
    if (!in) throw config_error(fmt::format("CAROUSEL_CRASH_PLAN={} can't be read", path));
    std::string text;
    for (u32 line = 1; std::getline(in, text); ++line) {
        std::istringstream words(text);
        std::string plan_role, point;
        auto p = std::make_unique<planned>();
        const std::string where = fmt::format("{}:{}", path, line);
        if (!(words >> plan_role >> point >> p->how >> p->nth) || p->nth == 0)
            throw config_error(fmt::format("{}: expected ROLE POINT HOW NTH", where));
        if (std::find(ways.begin(), ways.end(), p->how) == ways.end())
            throw config_error(fmt::format("{}: unknown action \"{}\"; expected one of {}", where, p->how,
                                           fmt::join(ways, ", ")));
        p->line = line;
        p->point = point_named(point, where);
        p->marker = fmt::format("{}.{}", path, line);
        if (plan_role == role) plan.push_back(std::move(p));
    }
    detail::crash_points_armed = !plan.empty();
}

}  // namespace carousel
