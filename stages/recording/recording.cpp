#include "stages/recording/recording.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <stdexcept>

#include "core/json.hpp"
#include "core/json_text.hpp"
#include "core/log.hpp"
#include "stages/recording/frame_message.hpp"
#include "stages/recording/jpeg_message.hpp"
#include "stages/recording/raw_image.hpp"
#include "stages/sdk/configuration.hpp"

namespace carousel::stages {
namespace {

using nlohmann::json;
constexpr const char* own_library = "carousel";
constexpr const char* about_name = "carousel.recording";
constexpr const char* recording_version = "1";
constexpr const char* format_key = "carousel.format";
constexpr const char* checksum_key = "checksum";
constexpr const char* jpeg_key = "carousel.jpeg_width";

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

bool has_pictures(const mcap::any_contents& c, const mcap::channel& of) {
    const mcap::schema* s = c.schema_of(of.id);
    return s != nullptr && s->name == image_schema && of.encoding == "protobuf";
}

/// The first message of each channel determines its format, so that a whole file is not read for its
/// description.
recording describe_external(int fd, const std::string& path) {
    constexpr std::size_t most_chunks = 16;
    const auto first_of = [](const mcap::any_contents& c, u16 channel) {
        return std::find_if(c.messages.begin(), c.messages.end(),
                            [channel](const mcap::message_place& m) { return m.channel == channel; });
    };
    const mcap::any_contents c = mcap::scan_any(fd, [&](const mcap::any_contents& so_far) {
        if (so_far.chunks.size() < most_chunks) return false;
        return std::all_of(so_far.channels.begin(), so_far.channels.end(), [&](const mcap::channel& each) {
            return !has_pictures(so_far, each) || first_of(so_far, each.id) != so_far.messages.end();
        });
    });
    recording r;
    r.is_external = true;
    mcap::message_reader reader(fd, c);
    for (const mcap::channel& each : c.channels) {
        const auto first = first_of(c, each.id);
        if (!has_pictures(c, each) || first == c.messages.end()) continue;
        r.rings.push_back({each.topic, format_of(read_raw_image(reader.read(*first)))});
    }
    if (r.rings.empty())
        throw config_error(
            fmt::format("{} is an MCAP file of \"{}\", not a recording of Carousel, and none of its channels "
                        "has pictures (messages "
                        "of foxglove.RawImage in Protocol Buffers)",
                        path, c.library));
    return r;
}

bool is_missing(const mcap::chunk_entry& unit) { return !unit.damage.empty(); }

}  // namespace

bool is_external(const mcap::preamble& p) {
    return p.library != own_library && p.about.name != about_name &&
           !(p.library.empty() && p.channels.empty());
}

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
    if (r.jpeg_width != 0)
        for (const recorded_ring& ring : r.rings) {
            if (!has_picture(ring.format)) continue;
            const auto id = static_cast<u16>(p.channels.size() + 1);
            p.schemas.push_back(schema_of(jpeg_schema, id));
            p.channels.push_back(
                {id, id, ring.stage + "/image", "protobuf", {{jpeg_key, std::to_string(r.jpeg_width)}}});
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
            if (const auto jpeg = c.metadata.find(jpeg_key); jpeg != c.metadata.end()) {
                r.jpeg_width = static_cast<u32>(std::stoul(jpeg->second));
                continue;
            }
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
    return naming(path, [&] {
        const mcap::preamble front = mcap::read_front(fd.get()).front;
        return is_external(front) ? describe_external(fd.get(), path) : recording_from(front, path);
    });
}

ring_reader::ring_reader(std::string path, const recording& about, std::size_t ring)
    : path_(std::move(path)),
      format_(about.rings[ring].format),
      channel_(static_cast<u16>(ring + 1)),
      fd_(open_recording(path_)) {
    if (::flock(fd_.get(), LOCK_SH | LOCK_NB) != 0)
        throw config_error(fmt::format("{} is being recorded: play it after that run has ended", path_));
    if (about.is_external) {
        external_ = naming(path_, [&] {
            return std::make_unique<external_pictures>(fd_.get(), path_, about.rings[ring].stage);
        });
        return;
    }
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

external_pictures::external_pictures(int fd, const std::string& path, const std::string& topic)
    : contents_(mcap::scan_any(fd)), reader_(fd, contents_) {
    const auto of =
        std::find_if(contents_.channels.begin(), contents_.channels.end(),
                     [&](const mcap::channel& c) { return c.topic == topic && has_pictures(contents_, c); });
    if (of == contents_.channels.end())
        throw mcap::format_error(fmt::format("it has no pictures of \"{}\"", topic));
    std::copy_if(contents_.messages.begin(), contents_.messages.end(), std::back_inserter(places_),
                 [&](const mcap::message_place& m) { return m.channel == of->id; });
    contents_.messages.clear();
    if (!contents_.text.empty())
        log::warning("{} is incomplete: {}; its {} complete pictures of \"{}\" are played", path,
                     contents_.text, places_.size(), topic);
}

frame_facts external_pictures::read(u64 place, const ring::frame_format& format, std::byte* slot) {
    const mcap::message_place& at = places_[place];
    const raw_image image = read_raw_image(reader_.read(at));
    if (format_of(image) != format)
        throw mcap::format_error(
            fmt::format("it is a picture of {} x {} pixels in {}, but the first one has {}", image.width,
                        image.height, image.encoding, format.describe()));
    convert(image, format, slot);
    frame_facts out;
    out.frame_number = place;
    out.born_ns = at.log_ns;
    const u64 first = places_.front().log_ns;
    auto used = static_cast<u32>(out.metadata.size());
    out.metadata.resize(shm::max_metadata_bytes);
    (void)ring::set_metadata(out.metadata, used, "pts_ns", u64{at.log_ns - std::min(first, at.log_ns)});
    out.metadata.resize(used);
    return out;
}

frame_facts ring_reader::read(u64 place, std::byte* slot) try {
    if (external_) return external_->read(place, format_, slot);
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
