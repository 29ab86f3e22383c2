#include "viewer/watch/carried.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "frame/metadata.hpp"

namespace carousel::viewer {

carried_facts carried_by(const carousel::session::newest_frame::about& frame,
                         const ring::frame_format& format, u64 now) {
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

}  // namespace carousel::viewer
