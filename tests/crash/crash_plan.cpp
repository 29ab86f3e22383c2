#include "tests/crash/crash_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

namespace carousel::test {
using enum crash_point;

std::vector<crash_point> set_up_points() {
    return {process_started, connected,  introduced,    memory_received, segment_mapped,
            entry_claimed,   configured, device_open,   links_mapped,    events_published,
            prepared,        live,       ready_reported};
}

std::vector<crash_point> standby_points() {
    return {process_started, connected,   introduced,   memory_received,  segment_mapped, entry_claimed,
            configured,      device_open, links_mapped, events_published, standing_by};
}

std::vector<crash_point> frame_points(role of) {
    std::vector<crash_point> out = {job_chosen, job_opened};
    out.push_back(of == role::source ? sequence_leased : input_leased);
    if (of != role::sink) out.push_back(slot_filled);
    // except for a frame that is made again: it has its set
    if (of == role::source) out.push_back(parameters_chosen);
    out.insert(out.end(), {header_written, clock_started, event_recorded, job_submitted, work_complete,
                           host_work_done, job_committed});
    if (of != role::sink) out.push_back(slot_ready);
    out.push_back(of == role::source ? number_done : input_done);
    out.push_back(job_idle);
    // A source frees only slots that its consumers have not freed already: it may or may not pass these
    // points.
    if (of != role::source) out.insert(out.end(), {tail_moved, latest_closed, slot_freed});
    return out;
}

std::vector<crash_point> ending_points() { return {end_seen, work_ended, run_over, leaving}; }

void crash_plan::add(const std::string& stage, crash_point point, const std::string& how, u64 nth) {
    text_.push_back(fmt::format("{} {} {} {}", stage, name_of(point), how, nth));
}

void crash_plan::add_incarnations(const std::string& stage, role of, const std::string& how,
                                  const std::vector<crash_point>& set_up, u64 seed) {
    std::mt19937_64 random(seed);
    std::vector<crash_point> running = frame_points(of), starting = set_up;
    std::shuffle(running.begin(), running.end(), random);
    std::shuffle(starting.begin(), starting.end(), random);
    for (std::size_t k = 0; k < std::max(running.size(), starting.size()); ++k) {
        if (k < running.size()) add(stage, running[k], how, 8 + random() % 16);
        if (k < starting.size()) add(stage, starting[k], how, 1);
    }
}

void crash_plan::write() const {
    std::ofstream out(path_);
    for (const std::string& line : text_) out << line << "\n";
}

std::string crash_plan::pending_lines() const {
    std::string out;
    for (std::size_t k = 0; k < text_.size(); ++k)
        if (!std::filesystem::exists(fmt::format("{}.{}", path_, k + 1))) out += text_[k] + "\n";
    return out;
}

}  // namespace carousel::test
