#include "ledger/frame_claims.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/resource_limit.hpp"
#include "ledger/ledger.hpp"

namespace carousel::telemetry {
namespace {

constexpr const char* suspended_mark = "-";

bool read_number(const std::string& text, u64& out) {
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out);
    return failed == std::errc{} && end == text.data() + text.size();
}

[[noreturn]] void refuse_claims(const std::string& path, const std::string& line) {
    throw output_error(
        fmt::format("{}: \"{}\" is not a range of frames: it is unknown which frames this sink counts for; "
                    "end the run and start it again (--fresh)",
                    path, line));
}

}  // namespace

std::string claims_path(const std::string& ledger) { return ledger + ".unclaimed"; }

frame_claims frame_claims::load(const std::string& ledger) {
    frame_claims claims;
    const std::optional<std::string> text = read_file(claims_path(ledger));
    if (!text && errno != ENOENT)
        throw output_error(fmt::format("can't read {}: {}", claims_path(ledger), errno_text(errno)));
    std::istringstream lines(text.value_or(""));
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string first, end;
        words >> first >> end;
        range r{0, no_frame};
        const u64 before = claims.unclaimed_.empty() ? 0 : claims.unclaimed_.back().end;
        if (!read_number(first, r.first) || (end != suspended_mark && !read_number(end, r.end)) ||
            r.first < before || r.end < r.first)
            refuse_claims(claims_path(ledger), line);
        claims.unclaimed_.push_back(r);
    }
    return claims;
}

void frame_claims::save(const std::string& ledger) const {
    const std::string path = claims_path(ledger), aside = path + ".tmp";
    if (unclaimed_.empty() && (std::remove(path.c_str()) == 0 || errno == ENOENT)) return;
    std::ofstream out(aside, std::ios::trunc);
    for (const range& r : unclaimed_)
        out << r.first << ' ' << (r.end == no_frame ? suspended_mark : std::to_string(r.end)) << '\n';
    out.close();
    if (!out || std::rename(aside.c_str(), path.c_str()) != 0)
        throw output_error(
            fmt::format("can't write {}: {}", path, no_room_text(errno, "check the write permission")));
}

u64 frame_claims::first_from(u64 frame) const noexcept {
    for (const range& r : unclaimed_)
        if (frame >= r.first && frame < r.end) frame = r.end;
    return frame;
}

bool frame_claims::suspended() const noexcept {
    return !unclaimed_.empty() && unclaimed_.back().end == no_frame;
}

u64 frame_claims::unclaimed_below(u64 end) const noexcept {
    u64 count = 0;
    for (const range& r : unclaimed_) count += std::min(r.end, end) - std::min(r.first, end);
    return count;
}

void frame_claims::suspend(u64 first) {
    if (suspended()) return;
    if (!unclaimed_.empty() && first <= unclaimed_.back().end)
        unclaimed_.back().end = no_frame;
    else
        unclaimed_.push_back({first, no_frame});
}

void frame_claims::resume(u64 first) {
    if (suspended()) unclaimed_.back().end = std::max(first, unclaimed_.back().first);
}

void frame_claims::produced_again_from(u64 first) {
    for (range& r : unclaimed_) {
        r.first = std::min(r.first, first);
        if (r.end != no_frame) r.end = std::min(r.end, first);
    }
    std::erase_if(unclaimed_, [](const range& r) { return r.first == r.end; });
}

// A claim that was suspended when its ledger was read may have been resumed in the meantime, from a frame
// that the other sinks had not delivered when their ledgers were read; this matters only if those ledgers
// were read earlier. So the suspended claims are read once more after all others.
undelivered_frame find_undelivered(const std::string& runtime_directory,
                                   const std::vector<counted_sink>& sinks, u64 from) {
    for (;;) {
        undelivered_frame lowest;
        std::vector<std::string> suspended;
        for (const counted_sink& s : sinks) {
            const std::string path = ledger_path(runtime_directory, s.name);
            const auto ledger = ledger_reader::open(path);
            const u64 frame = ledger ? ledger->first_undelivered(from)
                                     : frame_claims::load(path).first_from(std::max(from, s.without_ledger));
            if (frame == no_frame) suspended.push_back(path);
            if (frame < lowest.frame) lowest = {frame, s.name};
        }
        if (std::all_of(suspended.begin(), suspended.end(),
                        [](const std::string& path) { return frame_claims::load(path).suspended(); }))
            return lowest;
    }
}

}  // namespace carousel::telemetry
