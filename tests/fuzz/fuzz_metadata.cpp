// Any contents that a process of the user may have left in a frame's header: metadata, their size, extents.
// Input: the number of bytes given in the header, the used extents of a plane, then the bytes.
#include <utility>

#include "frame/metadata.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace {

using namespace carousel;

/// Iterates over all entries as a reader does; returns their number.
u32 read_all(std::span<const std::byte> bytes) {
    ring::metadata_reader all(bytes);
    std::size_t seen = 0;
    u32 count = 0;
    for (ring::metadata_entry e; all.next(e); ++count) {
        test::require(!e.key.empty() && e.key.size() <= ring::max_metadata_key, "a key is possible");
        test::require(!ring::text_of(e.value).empty(), "a value is printed");
        seen += 4 + e.key.size();
        test::require(ring::find_metadata(bytes, e.key).has_value(), "an entry is found by its key");
    }
    test::require(seen <= bytes.size(), "no entry lies beyond the bytes");
    (void)ring::line_of(bytes);
    return count;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    test::bytes in(data, size);
    shm::frame_header h{};
    h.metadata_bytes = in.number<u32>();
    h.used.planes = in.number<u32>();
    for (u64& extent : h.used.of[0]) extent = in.number<u64>();
    for (std::byte& b : h.metadata) b = static_cast<std::byte>(in.u8_or(0));
    const std::span<const std::byte> bytes = ring::metadata_of(h);
    const u32 count = read_all(bytes);

    // Forwarded: what arrives is intact, and is forwarded unchanged.
    std::byte room[shm::max_metadata_bytes];
    u32 used = 0;
    (void)ring::merge_metadata(room, used, bytes);
    ring::metadata_reader handed{std::span(room).first(used)};
    for (ring::metadata_entry e; handed.next(e);) {
    }
    test::require(!handed.damaged(), "what is handed on is whole");
    test::require(read_all(std::span(room).first(used)) == count, "every whole entry is handed on");
    (void)ring::merge_metadata(room, used, bytes);
    test::require(read_all(std::span(room).first(used)) <= count, "nothing comes twice");
    if (ring::set_metadata(room, used, "mine", true) == ring::metadata_change::done)
        test::require(ring::find_metadata(std::span(room).first(used), "mine").has_value(),
                      "what is set is there");
    (void)ring::erase_metadata(room, used, "mine");
    test::require(!ring::find_metadata(std::span(room).first(used), "mine") || count > 0, "it is gone");

    ring::frame_format f{"t", {{"p", ring::element::f32_, {100, 4}, {}, 0}}, {}};
    (void)f.lay_out();
    test::require(ring::used_plane(f, 0, h.used).bytes() <= f.planes[0].bytes(),
                  "no more than there is is in use");
    (void)ring::describe_used(f, h.used);
    return 0;
}
