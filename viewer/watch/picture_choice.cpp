#include "viewer/watch/picture_choice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>

#include "core/errors.hpp"
#include "core/output_file.hpp"
#include "frame/metadata.hpp"
#include "picture/png.hpp"

namespace carousel::viewer {
namespace {

std::optional<f64> number_in(std::string_view text) {
    f64 value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = failed == std::errc() && end == text.data() + text.size() && std::isfinite(value);
    return whole ? std::optional(value) : std::nullopt;
}

}  // namespace

std::string name_of(const shown_picture& p) {
    return fmt::format("{} {} {} · frame {}", p.stage, p.plane, p.type, p.ring_sequence);
}

plane_choice plane_from_text(std::string_view text) {
    const std::size_t slash = text.find('/');
    if (slash == std::string_view::npos) return {std::string(text), ""};
    return {std::string(text.substr(0, slash)), std::string(text.substr(slash + 1))};
}

std::string range_text(const picture_style& style) {
    if (style.range == range_choice::fixed) return fmt::format("{}..{}", style.low, style.high);
    return style.range == range_choice::extremes ? "extremes" : "auto";
}

bool read_range(std::string_view text, picture_style& style) {
    if (text == "auto" || text == "extremes") {
        style.range = text == "auto" ? range_choice::automatic : range_choice::extremes;
        return true;
    }
    const std::size_t dots = text.find("..");
    if (dots == std::string_view::npos) return false;
    const std::optional<f64> low = number_in(text.substr(0, dots)), high = number_in(text.substr(dots + 2));
    if (!low || !high || !(*low < *high)) return false;
    style.range = range_choice::fixed;
    style.low = *low;
    style.high = *high;
    return true;
}

std::string colours_text(const picture_style& style) {
    return style.colours ? name_of(*style.colours) : "auto";
}

bool read_colours(std::string_view text, picture_style& style) {
    const std::optional<colour_map> map = colour_map_named(text);
    if (!map && text != "auto") return false;
    style.colours = map;
    return true;
}

std::string exposure_text(const picture_style& style) { return fmt::format("{}", style.exposure); }

bool read_exposure(std::string_view text, picture_style& style) {
    const std::optional<f64> stops = number_in(text);
    if (!stops || std::abs(*stops) > most_exposure) return false;
    style.exposure = *stops;
    return true;
}

bool read_tone_map(std::string_view text, picture_style& style) {
    const std::optional<tone_map> map = tone_map_named(text);
    if (map) style.tone = *map;
    return map.has_value();
}

std::string channel_text(const picture_style& style) { return style.channel.empty() ? "all" : style.channel; }

void read_channel(std::string_view text, picture_style& style) {
    style.channel = text == "all" ? "" : std::string(text);
}

carried_facts carried_by(const ring::frame_facts& frame, const ring::frame_format& format, u64 now) {
    carried_facts out;
    ring::metadata_reader entries(frame.metadata);
    for (ring::metadata_entry e; entries.next(e);) out.emplace_back(e.key, ring::text_of(e.value));
    if (entries.damaged()) out.emplace_back("metadata", "damaged from here on");
    if (const std::string used = ring::describe_used(format, frame.used); !used.empty())
        out.emplace_back("in use", used);
    if (const auto& sampled = frame.sampled_frames; !sampled.empty()) {
        std::vector<std::string> words;
        words.reserve(sampled.size());
        for (const u64 n : sampled)
            words.push_back(n == shm::no_sampled_frame ? "none yet" : fmt::format("frame {}", n));
        out.emplace_back("sampled inputs", fmt::format("{}", fmt::join(words, ", ")));
    }
    if (const u64 since = frame.live_capture_ns(); since != 0 && since <= now)
        out.emplace_back("captured", fmt::format("{:.1f} ms ago", static_cast<f64>(now - since) / 1e6));
    return out;
}

std::string line_of(const carried_facts& facts) {
    std::string out;
    for (const auto& [name, value] : facts)
        out += fmt::format("{}{} {}", out.empty() ? "" : " · ", name, value);
    return out;
}

std::vector<std::byte> pack_picture(std::span<const u8> pixels, u32 width, u32 height) {
    const std::size_t bytes = std::size_t{width} * height * 4;
    if (bytes == 0 || pixels.size() < bytes)
        throw output_error(fmt::format("there is no picture of {} x {} pixels yet", width, height));
    return encode_png(std::as_bytes(pixels.first(bytes)), width, height);
}

void write_picture(const std::string& path, std::span<const u8> pixels, u32 width, u32 height) {
    std::vector<std::byte> bytes;
    try {
        bytes = pack_picture(pixels, width, height);
    } catch (const output_error& e) {
        throw output_error(fmt::format("writing {}: {}", path, e.what()));
    }
    if (const int failed = write_output_file(path, {bytes}); failed != 0)
        throw output_error(fmt::format("writing {}: {}", path,
                                       output_cause(failed, "choose a file in a folder that you own")));
}

}  // namespace carousel::viewer
