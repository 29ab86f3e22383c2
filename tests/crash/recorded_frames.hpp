#pragma once
// A recording as a test reads it: by its units and their checksums, without playing it.
#include <fcntl.h>

#include <string>
#include <vector>

#include "shm/fd_socket.hpp"
#include "stages/recording/frame_message.hpp"
#include "stages/recording/recording.hpp"
#include "tests/support/catch.hpp"

namespace carousel::test {

struct recorded_frames {
    bool ended = false;                         ///< the file has its index
    std::vector<stages::frame_facts> facts;     ///< of its first ring, in the file's order
    std::vector<std::vector<std::byte>> slots;  ///< the frames themselves, if they were requested
};

inline recorded_frames read_recording(const std::string& path, bool with_slots = false) {
    const shm::unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    REQUIRE(fd);
    const auto about = stages::recording_from(stages::mcap::read_front(fd.get()).front, path);
    const stages::mcap::contents units = stages::mcap::scan(fd.get());
    recorded_frames found{units.ended, {}, {}};
    ring::frame_format format = about.rings.front().format;
    const u64 slot_bytes = format.lay_out();
    stages::mcap::buffer packed, records;
    for (const stages::mcap::chunk_entry& unit : units.chunks) {
        stages::mcap::read_chunk(fd.get(), unit, packed, records);
        for (const stages::mcap::message& m : stages::mcap::read_messages(records)) {
            if (m.channel != 1) continue;
            if (with_slots) found.slots.emplace_back(slot_bytes);
            std::byte* const slot = with_slots ? found.slots.back().data() : nullptr;
            found.facts.push_back(stages::take_frame(m.data, format, slot));
        }
    }
    return found;
}

/// Returns whether the frames are those from 0 on, each once, in order.
inline bool is_whole(const recorded_frames& r) {
    for (std::size_t k = 0; k < r.facts.size(); ++k)
        if (r.facts[k].frame_number != k) return false;
    return true;
}

}  // namespace carousel::test
