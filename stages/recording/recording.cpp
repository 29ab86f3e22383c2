#include "stages/recording/recording.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "core/json.hpp"
#include "core/json_text.hpp"
#include "stages/recording/frame_message.hpp"
#include "stages/recording/frame_schema.hpp"

namespace carousel::stages {
namespace {

using nlohmann::json;
constexpr const char* own_library = "carousel";
constexpr const char* about_name = "carousel.recording";
constexpr const char* recording_version = "1";
constexpr const char* format_key = "carousel.format";
constexpr const char* checksum_key = "checksum";

/// Covers the data that a player takes from the preamble: the values and the channels, without the checksum
/// itself.
std::string checksum_of(const mcap::preamble& p) {
    mcap::preamble checked;
    checked.about = p.about;
    checked.about.values.erase(checksum_key);
    checked.channels = p.channels;
    return fmt::format("{:08x}", mcap::crc_of(mcap::encode(checked)));
}

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

}  // namespace carousel::stages
