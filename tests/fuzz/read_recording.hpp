#pragma once
// Reads a recording of any bytes: its units are read, or it is refused. No bytes make the reader allocate
// more than they can expand to by their compression.

#include <sys/mman.h>
#include <unistd.h>

#include <span>

#include "core/errors.hpp"
#include "frame/frame_format.hpp"
#include "shm/fd_socket.hpp"
#include "stages/recording/frame_message.hpp"
#include "stages/recording/mcap/any_file.hpp"
#include "stages/recording/mcap/scan.hpp"
#include "stages/recording/raw_image.hpp"
#include "stages/recording/recording.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace carousel::test {

inline void read_unit(int fd, const stages::mcap::chunk_entry& unit, const stages::recording& r, u64 size) {
    constexpr u64 most_a_byte = 32768;            // a zstd block of 4 bytes expands to 128 KiB
    constexpr u64 largest_frame = u64{1} << 20U;  // frames of larger formats are not read here
    stages::mcap::buffer compressed, records;
    try {
        stages::mcap::read_chunk(fd, unit, compressed, records);
    } catch (const error&) {
        require(records.capacity() <= most_a_byte * size, "memory by what the file contains");
        return;
    }
    require(unit.end() <= size, "a unit lies within the file");
    for (const stages::mcap::message& m : stages::mcap::read_messages(records)) {
        if (m.channel == 0 || m.channel > r.rings.size()) continue;
        ring::frame_format format = r.rings[m.channel - 1].format;
        const u64 bytes = format.lay_out();
        if (bytes > largest_frame) continue;
        std::vector<std::byte> slot(bytes);
        (void)stages::take_frame(m.data, format, slot.data());
    }
}

/// The same bytes as a file of another program: its messages lie within what the file can expand to, and its
/// pictures are converted or refused.
inline void read_external(int fd, u64 size) {
    constexpr std::size_t most_messages = 16;
    constexpr u64 largest_picture = u64{1} << 20U;
    try {
        const stages::mcap::any_contents c = stages::mcap::scan_any(fd);
        stages::mcap::message_reader reader(fd, c);
        for (std::size_t k = 0; k < std::min(c.messages.size(), most_messages); ++k) try {
                const std::span<const std::byte> data = reader.read(c.messages[k]);
                require(c.messages[k].chunk != stages::mcap::no_chunk || data.size() <= size,
                        "a message lies within the file");
                const stages::raw_image image = stages::read_raw_image(data);
                if (u64{image.width} * image.height > largest_picture) continue;
                ring::frame_format format = stages::format_of(image);
                std::vector<std::byte> slot(format.lay_out());
                stages::convert(image, format, slot.data());
            } catch (const error&) {  // this message is damaged, the next one may be intact
            }
    } catch (const error&) {
    }
}

inline void read_recording(std::span<const std::byte> bytes) {
    constexpr std::size_t most_units = 8;
    const shm::unique_fd file(::memfd_create("fuzz", MFD_CLOEXEC));
    require(file && ::write(file.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
            "a file of the input");
    read_external(file.get(), bytes.size());
    try {
        const stages::mcap::contents c = stages::mcap::scan(file.get());
        const stages::recording r = stages::recording_from(c.front, "fuzz.mcap");
        for (std::size_t k = 0; k < std::min(c.chunks.size(), most_units); ++k) try {
                read_unit(file.get(), c.chunks[k], r, bytes.size());
            } catch (const error&) {  // this unit is damaged, the next one may be intact
            }
    } catch (const error&) {
    }
}

}  // namespace carousel::test
