// Recordings as files: a death at any point of a write, damage, and the data that is read back.
#include <fmt/format.h>

#include <cstring>
#include <filesystem>

#include "core/errors.hpp"
#include "core/io.hpp"
#include "frame/metadata.hpp"
#include "shm/fd_socket.hpp"
#include "stages/compression/compression.hpp"
#include "stages/recording/frame_message.hpp"
#include "stages/recording/mcap/writer.hpp"
#include "stages/recording/recording.hpp"
#include "tests/stages/recorded_rings.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

#include <fcntl.h>

namespace {

using namespace carousel;
using namespace carousel::test;
using namespace carousel::stages;

std::string bytes_of(const std::string& path) { return read_file(path).value_or(""); }

mcap::contents contents_of(const std::string& path) {
    const shm::unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    return mcap::scan(fd.get());
}

/// Checks that every frame is there, intact and in order.
void check_frames(const std::string& path, u64 count) {
    const shm::unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const mcap::contents c = mcap::scan(fd.get());
    const recording r = recording_from(c.front, path);
    REQUIRE(c.chunks.size() == count);
    mcap::buffer compressed, records;
    for (u64 n = 0; n < count; ++n) {
        mcap::read_chunk(fd.get(), c.chunks[n], compressed, records);
        const auto messages = mcap::read_messages(records);
        REQUIRE(messages.size() == r.rings.size());
        for (std::size_t k = 0; k < messages.size(); ++k) {
            std::vector<std::byte> slot(slot_of(r.rings[k].format, 0).size());
            const frame_facts f = take_frame(messages[k].data, r.rings[k].format, slot.data());
            CHECK(f.frame_number == n);
            CHECK(f.born_ns == n + 5);
            CHECK(slot == slot_of(r.rings[k].format, n));
        }
    }
}

}  // namespace

TEST_CASE("no number in a recording makes its reader allocate more than the file can contain") {
    const std::string how = GENERATE(from_range(compressions()));
    CAPTURE(how);
    const scratch_folder folder;
    const std::string path = (folder.path / "a.mcap").string();
    const recording r = two_rings();
    {
        mcap::writer w(path, preamble_of(r), how, 1);
        add_frame(w, r, 0);
        w.finish();
    }
    const shm::unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const mcap::chunk_entry whole = contents_of(path).chunks.at(0);
    constexpr u64 much = u64{1} << 30U;
    mcap::chunk_entry large = whole, beyond = whole, wrapped = whole;
    large.uncompressed = much;
    beyond.length += much, beyond.compressed += much;
    wrapped.compressed = ~u64{0} - 40, wrapped.length = whole.length - whole.compressed + wrapped.compressed;
    for (const mcap::chunk_entry& c : {large, beyond, wrapped}) {
        mcap::buffer compressed, records;
        CHECK_THROWS_AS(mcap::read_chunk(fd.get(), c, compressed, records), mcap::format_error);
        CHECK(compressed.capacity() + records.capacity() < much / 8);
    }
}

TEST_CASE("a summary that names bytes outside the units is ignored, and they are found anyway") {
    const scratch_folder folder;
    const std::string path = (folder.path / "a.mcap").string();
    const recording r = two_rings();
    {
        mcap::writer w(path, preamble_of(r), "none", 1);
        for (u64 n = 0; n < 2; ++n) add_frame(w, r, n);
        w.finish();
    }
    const mcap::contents before = contents_of(path);
    REQUIRE(before.ended);
    const std::string all = bytes_of(path);
    const auto raw = [](u64 number) {
        return std::string(reinterpret_cast<const char*>(&number), sizeof number);
    };
    const mcap::chunk_entry& last = before.chunks.back();
    const std::size_t at = all.rfind(raw(last.start) + raw(last.length));
    REQUIRE(at != std::string::npos);
    for (const auto& [start, length] :
         {std::pair{last.start, all.size()}, {last.start, ~u64{0} - 8}, {u64{8}, last.length}}) {
        std::string text = all;
        text.replace(at, 16, raw(start) + raw(length));
        folder.write("a.mcap", text);
        const mcap::contents c = contents_of(path);
        CHECK_FALSE(c.ended);
        REQUIRE(c.chunks.size() == 2);
        CHECK(c.chunks[1].start == last.start);
        CHECK(c.chunks[1].length == last.length);
    }
}

TEST_CASE("a recording is cut to its last complete frame after a death at any point of a write") {
    const std::string how = GENERATE(from_range(compressions()));
    CAPTURE(how);
    const scratch_folder folder;
    const std::string path = (folder.path / "a.mcap").string(), part = (folder.path / "b.mcap").string();
    const recording r = two_rings();
    std::vector<u64> ends;
    {
        mcap::writer w(path, preamble_of(r), how, 1);
        ends.push_back(w.bytes());
        for (u64 n = 0; n < 3; ++n) {
            add_frame(w, r, n);
            ends.push_back(w.bytes());
        }
    }
    const std::string all = bytes_of(path);
    REQUIRE(all.size() == ends.back());
    std::vector<u64> sizes =
        ends;  // the ends of frames, one byte before and after each, and many places between
    for (const u64 end : ends) sizes.insert(sizes.end(), {end - 1, std::min<u64>(end + 1, all.size())});
    for (u64 size = 0; size < all.size(); size += 17) sizes.push_back(size);
    for (const u64 size : sizes) {
        CAPTURE(size);
        folder.write("b.mcap", all.substr(0, size));
        u64 whole = 0;
        while (whole + 1 < ends.size() && ends[whole + 1] <= size) ++whole;
        mcap::writer w(part, preamble_of(r), how, 1);
        CHECK(w.units() == whole);
        CHECK(bytes_of(part).size() == ends[whole]);  // also if it writes nothing more
        CHECK(w.last_records(1).empty() == (whole == 0));
        for (u64 n = whole; n < 3; ++n) add_frame(w, r, n);
        w.finish();
        check_frames(part, 3);
        CHECK(contents_of(part).ended);
        CHECK(bytes_of(part).substr(0, all.size()) == all);
    }
}

TEST_CASE("a unit may be of one ring, and a continued file yields each ring's last frame") {
    const scratch_folder folder;
    const std::string path = (folder.path / "a.mcap").string(), part = (folder.path / "b.mcap").string();
    const recording r = two_rings();
    const u16 channels[] = {1, 2, 2, 1, 2, 2, 2};
    std::vector<u64> ends;
    const auto add_one = [&](mcap::writer& w, u64 unit) {
        const recorded_ring& ring = r.rings[channels[unit] - 1U];
        mcap::buffer data;
        put_frame(data, ring.format, ring.stage,
                  {{.frame_number = unit, .time_s = 0.5, .born_ns = unit + 5, .parameter_number = 2}}, 9,
                  slot_of(ring.format, unit).data());
        const mcap::message m{channels[unit], static_cast<u32>(unit), 9, data};
        w.append({&m, 1});
    };
    const auto last_of = [&](mcap::writer& w, u16 channel) -> i64 {
        const auto messages = mcap::read_messages(w.last_records(channel));
        return messages.empty() ? -1 : static_cast<i64>(messages.front().sequence);
    };
    const auto check_owners = [&](const mcap::contents& c, std::size_t units) {
        REQUIRE(c.chunks.size() == units);
        for (std::size_t k = 0; k < units; ++k) {
            CHECK(c.chunks[k].has(channels[k]));
            CHECK_FALSE(c.chunks[k].has(static_cast<u16>(3 - channels[k])));
        }
    };
    {
        mcap::writer w(path, preamble_of(r), "none", 1);
        ends.push_back(w.bytes());
        for (u64 n = 0; n < std::size(channels); ++n) {
            add_one(w, n);
            ends.push_back(w.bytes());
        }
    }
    const std::string all = bytes_of(path);
    for (u64 size = ends.front(); size <= all.size(); size += size + 31 < all.size() ? 31 : 1) {
        CAPTURE(size);
        folder.write("b.mcap", all.substr(0, size));
        std::size_t whole = 0;
        while (whole + 1 < ends.size() && ends[whole + 1] <= size) ++whole;
        mcap::writer w(part, preamble_of(r), "none", 1);
        CHECK(w.units() == whole);
        for (const u16 channel : {u16{1}, u16{2}}) {
            i64 expected = -1;
            for (std::size_t k = 0; k < whole; ++k)
                if (channels[k] == channel) expected = static_cast<i64>(k);
            CHECK(last_of(w, channel) == expected);
        }
        check_owners(contents_of(part), whole);  // by the heads
        for (u64 n = whole; n < std::size(channels); ++n) add_one(w, n);
        w.finish();
        const mcap::contents c = contents_of(part);  // by the summary
        CHECK(c.ended);
        check_owners(c, std::size(channels));
    }
}

TEST_CASE("a recording that has its end is gone on with, and gets another one") {
    const scratch_folder folder;
    const std::string path = (folder.path / "a.mcap").string();
    const recording r = two_rings();
    for (u64 n = 0; n < 4; ++n) {
        mcap::writer w(path, preamble_of(r), "none", 1);
        CHECK(w.units() == n);
        add_frame(w, r, n);
        w.finish();
        CHECK(contents_of(path).ended);
    }
    check_frames(path, 4);
    // its heads give the same content as its index
    folder.write("b.mcap", bytes_of(path).substr(0, bytes_of(path).size() - 1));
    CHECK_FALSE(contents_of((folder.path / "b.mcap").string()).ended);
    check_frames((folder.path / "b.mcap").string(), 4);
}

TEST_CASE("a damaged frame is detected by its checksum and cut off if it is the last") {
    const std::string how = GENERATE(from_range(compressions()));
    CAPTURE(how);
    const scratch_folder folder;
    const std::string path = (folder.path / "a.mcap").string();
    const recording r = two_rings();
    u64 before = 0;
    {
        mcap::writer w(path, preamble_of(r), how, 1);
        add_frame(w, r, 0);
        before = w.bytes();
        add_frame(w, r, 1);
    }
    std::string all = bytes_of(path);
    const mcap::contents c = contents_of(path);
    all[c.chunks[1].start + c.chunks[1].length - 20] ^= 0x55;
    folder.write("a.mcap", all);
    mcap::buffer compressed, records;
    {
        const shm::unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        CHECK_THROWS_AS(mcap::read_chunk(fd.get(), c.chunks[1], compressed, records), mcap::format_error);
    }
    mcap::writer w(path, preamble_of(r), how, 1);
    CHECK_FALSE(w.last_records(2).empty());
    CHECK(w.units() == 1);
    CHECK(w.bytes() == before);
}

TEST_CASE("another file, version, recording or a second recorder is refused by name") {
    const scratch_folder folder;
    const std::string path = (folder.path / "a.mcap").string();
    recording r = two_rings();
    {
        mcap::writer w(path, preamble_of(r), "none", 1);
        add_frame(w, r, 0);
        CHECK_THROWS_WITH(mcap::writer(path, preamble_of(r), "none", 0), contains("another process holds"));
    }
    mcap::preamble p = contents_of(path).front;
    CHECK(recording_from(p, path).rings == r.rings);
    p.about.values["version"] = "2";
    CHECK_THROWS_WITH(recording_from(p, path), contains("a.mcap is a recording of version 2"));
    p.about.name = "";
    CHECK_THROWS_WITH(recording_from(p, path), contains("a.mcap has no description of its contents"));
    p.about.name = "else";
    CHECK_THROWS_WITH(recording_from(p, path), contains("not a recording of Carousel"));
    r.id = "8";
    CHECK_THROWS_WITH(mcap::writer(path, preamble_of(r), "none", 1), contains("no longer the recording"));
    const std::string text = folder.write("t.mcap", "no recording at all, but long enough to be looked into");
    CHECK_THROWS_WITH(contents_of(text), contains("not an MCAP file"));
}

TEST_CASE("a recorded frame has its metadata, its capture time and the used extents of its planes") {
    const recording r = two_rings();
    frame_facts facts;
    facts.frame_number = 7;
    facts.set_capture_ns(12345);
    std::byte room[shm::max_metadata_bytes];
    u32 used = 0;
    const std::byte raw[] = {std::byte{0}, std::byte{9}};
    for (const auto& [key, value] :
         std::vector<std::pair<const char*, ring::metadata_value>>{{"on", true},
                                                                   {"gain", i64{-3}},
                                                                   {"serial", ~u64{0}},
                                                                   {"ms", -0.25},
                                                                   {"by", "left"},
                                                                   {"raw", raw}})
        REQUIRE(ring::set_metadata(room, used, key, value) == ring::metadata_change::done);
    facts.metadata.assign(room, room + used);
    for (std::size_t k = 0; k < r.rings.size(); ++k) {
        const ring::frame_format& format = r.rings[k].format;
        facts.used = {};
        ring::set_used(facts.used, format, format.planes[0].name, std::vector<u64>{1});
        const auto slot = slot_of(format, 3);
        mcap::buffer data;
        put_frame(data, format, r.rings[k].stage, facts, 3, slot.data());
        std::vector<std::byte> back(slot.size());
        const frame_facts read = take_frame(data, format, back.data());
        CHECK(read.capture_ns == 12345);
        CHECK(read.metadata == facts.metadata);
        CHECK(ring::describe_used(format, read.used) == ring::describe_used(format, facts.used));
        for (std::size_t p = 0; p < format.planes.size(); ++p) {
            const auto at = static_cast<std::ptrdiff_t>(format.planes[p].offset),
                       bytes = static_cast<std::ptrdiff_t>(ring::used_plane(format, p, read.used).bytes());
            CHECK(std::equal(back.begin() + at, back.begin() + at + bytes, slot.begin() + at));
            CHECK(back[static_cast<std::size_t>(at + bytes)] == std::byte{0});  // the unused bytes
        }
    }
}

TEST_CASE("a ring with the format of a picture is reported as a picture, and no other ring is") {
    const recording r = two_rings();
    CHECK(schema_name(r.rings[0].format) == "foxglove.RawImage");
    CHECK(schema_name(r.rings[1].format) == "carousel.Frame");
    ring::frame_format depth{"lidar.depth", {{"z", ring::element::f32_, {4, 6}}}, {}};
    CHECK(schema_name(depth) == "foxglove.RawImage");
    mcap::buffer data;
    const auto slot = slot_of(r.rings[0].format, 1);
    put_frame(data, r.rings[0].format, "picture", {1, 2, 0, 0, {}}, 3, slot.data());
    CHECK_THROWS_AS(take_frame(data, image_format(4, 2), nullptr), mcap::format_error);
    data.resize(data.size() - 1);
    CHECK_THROWS_AS(take_frame(data, r.rings[0].format, nullptr), mcap::format_error);
}
