#include "stages/recording/recording.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>

#include "core/json.hpp"
#include "core/json_text.hpp"
#include "core/log.hpp"
#include "stages/recording/frame_message.hpp"
#include "stages/sdk/configuration.hpp"

namespace carousel::stages {
namespace {

using nlohmann::json;
constexpr const char* own_library = "carousel";
constexpr const char* about_name = "carousel.recording";
constexpr const char* recording_version = "1";
constexpr const char* format_key = "carousel.format";
constexpr const char* checksum_key = "checksum";

/// Returns a checksum of the data that a player takes from the preamble: the values and the channels, without
/// the checksum itself.
std::string checksum_of(const mcap::preamble& p) {
    mcap::preamble checked;
    checked.about = p.about;
    checked.about.values.erase(checksum_key);
    checked.channels = p.channels;
    return fmt::format("{:08x}", mcap::crc_of(mcap::encode(checked)));
}

/// Adds the file's name to a reader's error.
template <typename F>
auto naming(const std::string& path, F&& read) {
    try {
        return read();
    } catch (const mcap::format_error& e) {
        throw config_error(fmt::format("{} can't be played: {}", path, e.what()));
    }
}

bool is_missing(const mcap::chunk_entry& unit) { return !unit.damage.empty(); }

}  // namespace

mcap::preamble preamble_of(const recording& r) {
    mcap::preamble p;
    p.library = own_library;
    p.about.name = about_name;
    p.about.values = {{"version", recording_version},
                      {"id", r.id},
                      {"offset_ns", std::to_string(r.offset_ns)},
                      {"parameters", r.parameters ? r.parameters.to_json().dump() : ""}};
    for (const recorded_ring& ring : r.rings) {
        const auto id = static_cast<u16>(p.channels.size() + 1);
        p.schemas.push_back(schema_of(schema_name(ring.format), id));
        p.channels.push_back({id, id, ring.stage, "protobuf", {{format_key, ring.format.to_json()}}});
    }
    p.about.values[checksum_key] = checksum_of(p);
    return p;
}

recording recording_from(const mcap::preamble& p, const std::string& file) {
    const auto value = [&](const char* key) {
        const auto at = p.about.values.find(key);
        return at == p.about.values.end() ? std::string() : at->second;
    };
    if (p.about.name.empty() && (p.library.empty() || p.library == own_library))
        throw config_error(
            fmt::format("{} has no description of its contents: it is not a recording of Carousel, or its "
                        "recorder was killed at its start",
                        file));
    if (p.about.name != about_name)
        throw config_error(
            fmt::format("{} is an MCAP file of \"{}\", not a recording of Carousel", file, p.library));
    if (value("version") != recording_version)
        throw config_error(fmt::format("{} is a recording of version {}; this program reads version {}", file,
                                       value("version"), recording_version));
    // A recording of an earlier program has no checksum.
    if (p.about.values.contains(checksum_key) && value(checksum_key) != checksum_of(p))
        throw config_error(fmt::format(
            "{} can't be played: the description of its rings and parameters is damaged (its checksum is "
            "wrong), so no frame of it can be read reliably",
            file));
    try {
        recording r;
        r.id = value("id");
        r.offset_ns = std::stoll(value("offset_ns"));
        if (!value("parameters").empty())
            r.parameters =
                ring::parameter_schema::from_json(parse_json(value("parameters"), json_channel::document));
        for (const mcap::channel& c : p.channels) {
            r.rings.push_back({c.topic, ring::frame_format::from_json(c.metadata.at(format_key))});
            (void)r.rings.back().format.lay_out();
        }
        return r;
    } catch (const json::exception& e) {
        throw config_error(fmt::format("{} can't be read: {}", file, e.what()));
    } catch (const std::logic_error& e) {  // from std::stoll and map::at
        throw config_error(
            fmt::format("{} can't be read: its description lacks a value ({})", file, e.what()));
    }
}

shm::unique_fd open_recording(const std::string& path) {
    shm::unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) throw settings_error("file", fmt::format("{}: {}", path, errno_text(errno)));
    return fd;
}

recording describe_recording(const std::string& path) {
    const shm::unique_fd fd = open_recording(path);
    return recording_from(naming(path, [&] { return mcap::read_front(fd.get()).front; }), path);
}

ring_reader::ring_reader(std::string path, const recording& about, std::size_t ring)
    : path_(std::move(path)),
      format_(about.rings[ring].format),
      channel_(static_cast<u16>(ring + 1)),
      fd_(open_recording(path_)) {
    if (::flock(fd_.get(), LOCK_SH | LOCK_NB) != 0)
        throw config_error(fmt::format("{} is being recorded: play it after that run has ended", path_));
    mcap::contents c = naming(path_, [&] { return mcap::scan(fd_.get()); });
    std::erase_if(c.chunks, [&](const mcap::chunk_entry& unit) { return !unit.has(channel_); });
    units_ = std::move(c.chunks);
    const auto missing = static_cast<u64>(std::count_if(units_.begin(), units_.end(), is_missing));
    const u64 whole = units_.size() - missing;
    if (!c.ended && c.data_end == 0)
        log::info("{} is incomplete (its recorder was killed): its {} complete frames are played", path_,
                  whole);
    if (!c.ended && c.data_end != 0)
        log::warning("the index of {} is damaged: its {} complete frames were found without it", path_,
                     whole);
    if (missing != 0)
        log::warning("{} frames of {} are missing; the first: {}", missing, path_,
                     std::find_if(units_.begin(), units_.end(), is_missing)->damage);
}

frame_facts ring_reader::read(u64 place, std::byte* slot) try {
    const mcap::chunk_entry& unit = units_[place];
    mcap::read_chunk(fd_.get(), unit, compressed_, records_);
    for (const mcap::message& m : mcap::read_messages(records_))
        if (m.channel == channel_) return take_frame(m.data, format_, slot);
    throw mcap::format_error(fmt::format("the unit at {} has no frame of that ring", unit.start));
} catch (const mcap::format_error& e) {
    throw error(exit_code::stage_exception,
                fmt::format("frame {} of {} can't be played: {}", place, path_, e.what()));
}

}  // namespace carousel::stages
