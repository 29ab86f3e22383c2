// A recording from anywhere: its units are read, or it is refused. Input: the bytes of the file. No input
// makes the reader allocate more than its bytes can expand to by their compression.
#include <sys/mman.h>
#include <unistd.h>

#include "core/errors.hpp"
#include "frame/frame_format.hpp"
#include "shm/fd_socket.hpp"
#include "stages/recording/frame_message.hpp"
#include "stages/recording/mcap/scan.hpp"
#include "stages/recording/recording.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace carousel {
namespace {

using namespace stages;

constexpr u64 most_a_byte = 32768;            // a zstd block of 4 bytes expands to 128 KiB
constexpr u64 largest_frame = u64{1} << 20U;  // frames of larger formats are not read here
constexpr std::size_t most_units = 8;

void read_unit(int fd, const mcap::chunk_entry& unit, const recording& r, u64 size) {
    mcap::buffer compressed, records;
    try {
        mcap::read_chunk(fd, unit, compressed, records);
    } catch (const error&) {
        test::require(records.capacity() <= most_a_byte * size, "memory by what the file contains");
        return;
    }
    test::require(unit.end() <= size, "a unit lies within the file");
    for (const mcap::message& m : mcap::read_messages(records)) {
        if (m.channel == 0 || m.channel > r.rings.size()) continue;
        ring::frame_format format = r.rings[m.channel - 1].format;
        const u64 bytes = format.lay_out();
        if (bytes > largest_frame) continue;
        std::vector<std::byte> slot(bytes);
        (void)take_frame(m.data, format, slot.data());
    }
}

}  // namespace
}  // namespace carousel

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace carousel;
    const shm::unique_fd file(::memfd_create("fuzz", MFD_CLOEXEC));
    test::require(file && ::write(file.get(), data, size) == static_cast<ssize_t>(size),
                  "a file of the input");
    try {
        const stages::mcap::contents c = stages::mcap::scan(file.get());
        const stages::recording r = stages::recording_from(c.front, "fuzz.mcap");
        for (std::size_t k = 0; k < std::min(c.chunks.size(), most_units); ++k) try {
                read_unit(file.get(), c.chunks[k], r, size);
            } catch (const error&) {  // this unit is damaged, the next one may be intact
            }
    } catch (const error&) {
    }
    return 0;
}
