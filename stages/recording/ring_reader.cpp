#include "stages/recording/ring_reader.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>

#include "core/log.hpp"
#include "stages/sdk/configuration.hpp"

namespace carousel::stages {
namespace {

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
