#include "stages/recording/tape.hpp"

#include <fmt/format.h>
#include <time.h>

#include <filesystem>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/json.hpp"
#include "core/json_text.hpp"
#include "core/log.hpp"
#include "run/directory.hpp"
#include "shm/runtime_folder.hpp"

namespace carousel::stages {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;
/// long enough: a predecessor with a GPU context takes only a tenth of a second to end
constexpr double lock_patience_s = 10;

i64 wall_offset() {
    timespec wall{};
    ::clock_gettime(CLOCK_REALTIME, &wall);
    return static_cast<i64>(wall.tv_sec) * 1'000'000'000 + wall.tv_nsec - static_cast<i64>(now_ns());
}

}  // namespace

// The note is written first, so that after a crash the next incarnation finds either its own file or no file.
tape::tape(std::string path, std::string compression, recording about, const std::string& note)
    : path_(std::move(path)), compression_(std::move(compression)), about_(std::move(about)) {
    messages_.resize(about_.rings.size());
    jpegs_.resize(about_.rings.size());
    rings_.resize(about_.rings.size());
    const json j = read_json_file(note);
    if (read_member(j, "id", about_.id) && read_member(j, "offset_ns", about_.offset_ns)) return;
    std::error_code failed;
    if (fs::exists(path_, failed))
        throw config_error(fmt::format("{} already exists: remove it, or record into another file", path_));
    fs::create_directories(fs::path(path_).parent_path(), failed);
    about_.offset_ns = wall_offset();
    about_.id = fmt::format("{:x}", static_cast<u64>(about_.offset_ns) + now_ns());
    // the path is for observers of the run (its metrics), which report the size of the file
    const std::string absolute = fs::absolute(path_, failed).string();
    shm::write_whole_file(
        note, json{{"id", about_.id}, {"offset_ns", about_.offset_ns}, {"path", absolute}}.dump());
}

void tape::open() {
    file_ = std::make_unique<mcap::writer>(path_, preamble_of(about_), compression_, lock_patience_s);
    for (std::size_t k = 0; k < about_.rings.size(); ++k) {
        const auto channel = static_cast<u16>(k + 1);
        for (const mcap::message& m : mcap::read_messages(file_->last_records(channel)))
            if (m.channel == channel)
                rings_[k] = {true, take_frame(m.data, about_.rings[k].format, nullptr).frame_number};
    }
    for (const std::string& damage : file_->damage()) log::warning("{}: {}", path_, damage);
    if (file_->units() > 0 || file_->cut() > 0)
        log::info("continuing {}: {} frames are in it; {} bytes of an incomplete frame are removed", path_,
                  file_->units(), file_->cut());
}

void tape::append(std::span<const taped_frame> frames, std::size_t first_ring) {
    if (!file_) open();
    const frame_facts& first = frames.front().facts;
    const u64 wall = static_cast<u64>(static_cast<i64>(first.born_ns) + about_.offset_ns);
    std::vector<mcap::message> unit;
    for (std::size_t n = 0; n < frames.size(); ++n) {
        const std::size_t k = first_ring + n;
        const recorded_ring& r = about_.rings[k];
        messages_[k].clear();
        put_frame(messages_[k], r.format, r.stage, frames[n].facts, wall, frames[n].slot);
        unit.push_back({static_cast<u16>(k + 1), static_cast<u32>(first.frame_number), wall, messages_[k]});
    }
    u16 channel = static_cast<u16>(about_.rings.size());
    for (std::size_t k = 0; about_.jpeg_width != 0 && k < about_.rings.size(); ++k) {
        const recorded_ring& r = about_.rings[k];
        if (!has_picture(r.format)) continue;
        ++channel;
        if (k < first_ring || k >= first_ring + frames.size()) continue;
        const taped_frame& f = frames[k - first_ring];
        jpegs_[k].clear();
        jpeg_.put(jpegs_[k], r.format, r.stage, f.facts, wall, f.slot, about_.jpeg_width);
        if (!jpegs_[k].empty())
            unit.push_back({channel, static_cast<u32>(first.frame_number), wall, jpegs_[k]});
    }
    file_->append(unit);
    for (std::size_t n = 0; n < frames.size(); ++n) rings_[first_ring + n] = {true, first.frame_number};
}

void tape::finish() noexcept try {
    if (!file_) return;
    const auto file = std::move(file_);
    try {
        file->finish();
        log::info("{}: {} frames, {} MiB", path_, file->units(), file->bytes() >> 20U);
    } catch (const error& e) {
        log::warning("{} has no index: {}. Its {} frames are complete, and `carousel-replay` plays them",
                     path_, e.what(), file->units());
    }
} catch (const std::exception&) {  // the process is out of memory, so the file has no end, as after a kill
}

}  // namespace carousel::stages
