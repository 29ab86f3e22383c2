// Recordings between programs: pictures in MCAP files of other programs, files without an end, recovered
// files, and the small JPEG pictures for other programs.
#include <fmt/format.h>

#include <fcntl.h>

#include <cstring>

#include "core/errors.hpp"
#include "core/io.hpp"
#include "shm/fd_socket.hpp"
#include "stages/compression/compression.hpp"
#include "stages/recording/mcap/any_file.hpp"
#include "stages/recording/mcap/writer.hpp"
#include "stages/recording/protobuf.hpp"
#include "stages/recording/raw_image.hpp"
#include "stages/recording/recording.hpp"
#include "stages/recording/recover.hpp"
#include "stages/recording/tape.hpp"
#include "tests/stages/recorded_rings.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using namespace carousel::stages;

constexpr u32 width = 4, height = 2;

/// A picture as another program writes it; each byte is a function of the number.
mcap::buffer image_message(u8 number, const std::string& encoding, u32 pixel_bytes, u32 step) {
    mcap::buffer out, data(std::size_t{step} * height);
    for (std::size_t k = 0; k < data.size(); ++k) data[k] = byte_of(number, k);
    (void)pixel_bytes;
    proto::writer w(out);
    w.fixed32(image_field::width, width);
    w.fixed32(image_field::height, height);
    w.text(image_field::encoding, encoding);
    w.fixed32(image_field::step, step);
    w.bytes(image_field::data, data);
    return out;
}

void put_message(mcap::buffer& to, u16 channel, u8 number, const mcap::buffer& data) {
    mcap::put_message_head(to, {channel, number, u64{1000} + number, data});
    to.insert(to.end(), data.begin(), data.end());
}

/// An MCAP file of another program: channel 7 has pictures, channel 9 has texts. Messages 0 and 1 are in a
/// chunk, 2 is outside of chunks, 3 and 4 are in a chunk. Positions after each complete picture are appended
/// to `ends`.
std::string external_file(const std::string& how, std::vector<u64>& ends) {
    mcap::buffer file;
    mcap::byte_writer(file).raw(std::as_bytes(std::span(mcap::magic)));
    mcap::put_record(file, mcap::opcode::header,
                     [](mcap::byte_writer& w) { w.text("ros2"), w.text("other"); });
    const auto describe = [](mcap::buffer& to) {
        mcap::put(to, mcap::schema{3, image_schema, "protobuf", {}});
        mcap::put(to, mcap::channel{9, 0, "/log", "json", {}});
        mcap::put(to, mcap::channel{7, 3, "/camera", "protobuf", {}});
    };
    const auto image = [](u8 number) { return image_message(number, "bgr8", 3, width * 3 + 4); };
    const auto put_chunk = [&](u8 first, bool describes) {
        mcap::buffer records, packed;
        if (describes) describe(records);
        put_message(records, 9, first, mcap::buffer(3));
        put_message(records, 7, first, image(first));
        put_message(records, 7, static_cast<u8>(first + 1), image(static_cast<u8>(first + 1)));
        mcap::chunk_entry c;
        c.compression = how == "none" ? "" : how;
        compress(how, records, packed);
        c.uncompressed = records.size();
        c.compressed = packed.size();
        mcap::put_chunk_head(file, c, mcap::crc_of(records));
        file.insert(file.end(), packed.begin(), packed.end());
        ends.push_back(file.size());
    };
    put_chunk(0, true);
    put_message(file, 7, 2, image(2));
    ends.push_back(file.size());
    put_chunk(3, false);
    mcap::put_record(file, mcap::opcode::data_end, [](mcap::byte_writer& w) { w.number(u32{0}); });
    mcap::byte_writer(file).raw(std::as_bytes(std::span(mcap::magic)));
    return {reinterpret_cast<const char*>(file.data()), file.size()};
}

u64 pictures_in(const mcap::any_contents& c) {
    return static_cast<u64>(
        std::count_if(c.messages.begin(), c.messages.end(), [](const auto& m) { return m.channel != 9; }));
}

mcap::any_contents contents_of_any(const std::string& path) {
    const shm::unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    return mcap::scan_any(fd.get());
}

std::vector<u8> bytes_at(const std::vector<std::byte>& slot, u64 from, u64 count) {
    std::vector<u8> out;
    for (u64 k = 0; k < count; ++k) out.push_back(static_cast<u8>(slot.at(from + k)));
    return out;
}

}  // namespace

TEST_CASE("pictures of another program's file are frames of a ring") {
    const std::string how = GENERATE(from_range(compressions()));
    CAPTURE(how);
    const scratch_folder folder;
    std::vector<u64> ends;
    folder.write("a.mcap", external_file(how, ends));
    const std::string path = (folder.path / "a.mcap").string();
    const recording about = describe_recording(path);
    REQUIRE(about.is_external);
    REQUIRE(about.rings.size() == 1);
    CHECK(about.rings[0].stage == "/camera");
    CHECK(about.rings[0].format.type == "carousel.image.rgba8");
    ring_reader frames(path, about, 0);
    REQUIRE(frames.size() == 5);
    frame_format format = about.rings[0].format;
    std::vector<std::byte> slot(format.lay_out());
    for (const u64 n : {4U, 0U, 2U, 1U, 3U}) {
        const frame_facts facts = frames.read(n, slot.data());
        CHECK(facts.frame_number == n);
        CHECK(facts.born_ns == 1000 + n);
        const u64 pixel = format.planes[0].offset + 4 * (width + 1);  // the second pixel of the second row
        const u64 from = width * 3 + 4 + 3;
        CHECK(bytes_at(slot, pixel, 4) == std::vector<u8>{static_cast<u8>(byte_of(n, from + 2)),
                                                          static_cast<u8>(byte_of(n, from + 1)),
                                                          static_cast<u8>(byte_of(n, from)), 255});
    }
}

TEST_CASE("each encoding of a picture gives its frame format, and another one is one sentence") {
    struct row {
        const char* encoding;
        u32 pixel_bytes;
        const char* type;
    };
    const row r =
        GENERATE(row{"rgba8", 4, "carousel.image.rgba8"}, row{"rgb8", 3, "carousel.image.rgba8"},
                 row{"bgra8", 4, "carousel.image.rgba8"}, row{"bgr8", 3, "carousel.image.rgba8"},
                 row{"yuv422", 2, "carousel.image.rgba8"}, row{"yuv422_yuy2", 2, "carousel.image.rgba8"},
                 row{"mono8", 1, "carousel.image.gray8"}, row{"mono16", 2, "carousel.image.rgba16"},
                 row{"16UC1", 2, "carousel.image.rgba16"}, row{"32FC1", 4, "carousel.depth.f32"});
    CAPTURE(r.encoding);
    const mcap::buffer message = image_message(7, r.encoding, r.pixel_bytes, width * r.pixel_bytes);
    const raw_image image = read_raw_image(message);
    frame_format format = format_of(image);
    CHECK(format.type == r.type);
    std::vector<std::byte> slot(format.lay_out());
    convert(image, format, slot.data());
    const u64 at = format.planes[0].offset;
    const std::string encoding = r.encoding;
    const auto of = [](u64 k) { return static_cast<u8>(byte_of(7, k)); };
    if (encoding == "rgba8") CHECK(bytes_at(slot, at + 4, 4) == std::vector<u8>{of(4), of(5), of(6), of(7)});
    if (encoding == "bgra8") CHECK(bytes_at(slot, at + 4, 4) == std::vector<u8>{of(6), of(5), of(4), of(7)});
    if (encoding == "rgb8") CHECK(bytes_at(slot, at + 4, 4) == std::vector<u8>{of(3), of(4), of(5), 255});
    if (encoding == "mono8") CHECK(bytes_at(slot, at + 4, 4) == std::vector<u8>{of(4), of(5), of(6), of(7)});
    if (encoding == "mono16")
        CHECK(bytes_at(slot, at + 8, 8) ==
              std::vector<u8>{of(2), of(3), of(2), of(3), of(2), of(3), 255, 255});
    if (encoding == "32FC1") CHECK(bytes_at(slot, at + 4, 4) == std::vector<u8>{of(4), of(5), of(6), of(7)});
    mcap::buffer grey = image_message(0, r.encoding, r.pixel_bytes, width * r.pixel_bytes);
    if (encoding.starts_with("yuv")) {  // equal chroma of 128 is grey; luma 126 is the middle of 16 to 235
        proto::writer(grey).bytes(image_field::data,
                                  mcap::buffer(std::size_t{width} * 2 * height, std::byte{128}));
        convert(read_raw_image(grey), format, slot.data());
        CHECK(bytes_at(slot, at, 4) == std::vector<u8>{130, 130, 130, 255});
    }
    CHECK_THROWS_WITH(read_raw_image(image_message(0, "bayer_rggb8", 1, width)),
                      contains("has the encoding \"bayer_rggb8\", which is not supported"));
    CHECK_THROWS_WITH(read_raw_image(image_message(0, "rgba8", 1, width)), contains("has only 8 bytes"));
}

TEST_CASE("every complete message of an external file that was cut anywhere is found and recovered") {
    const std::string how = GENERATE(from_range(compressions()));
    CAPTURE(how);
    const scratch_folder folder;
    std::vector<u64> ends;
    const std::string all = external_file(how, ends);
    const std::string path = (folder.path / "cut.mcap").string();
    u64 before = 0;
    for (u64 size = 64; size <= all.size(); size += size % 16 == 0 ? 7 : 9) {
        CAPTURE(size);
        folder.write("cut.mcap", all.substr(0, size));
        const mcap::any_contents c = contents_of_any(path);
        const u64 found = pictures_in(c);
        const u64 least = size >= ends[2] ? 5 : size >= ends[1] ? 3 : size >= ends[0] ? 2 : 0;
        CHECK(found >= least);
        CHECK(found >= before);
        CHECK((c.text.empty() == c.has_end));
        before = found;
        if (found == 0) continue;
        const std::string whole = (folder.path / fmt::format("whole{}.mcap", size)).string();
        (void)recover(path, whole);
        const mcap::any_contents recovered = contents_of_any(whole);
        CHECK(recovered.has_end);
        CHECK(recovered.messages.size() == c.messages.size());
    }
    CHECK(before == 5);
    if (how != "none") return;
    folder.write("cut.mcap", all.substr(0, ends[2] - 1));  // in the last message of an uncompressed chunk
    CHECK(pictures_in(contents_of_any(path)) == 4);
}

TEST_CASE("of a recording that ends within a frame each ring keeps its complete messages") {
    const std::string how = GENERATE(from_range(compressions()));
    CAPTURE(how);
    const scratch_folder folder;
    const std::string path = (folder.path / "a.mcap").string(), to = (folder.path / "b.mcap").string();
    const recording r = two_rings();
    u64 second = 0;
    {
        mcap::writer w(path, preamble_of(r), how, 1);
        add_frame(w, r, 0);
        add_frame(w, r, 1);
        second = w.bytes();
        add_frame(w, r, 2);
    }
    const std::string all = read_file(path).value();
    const recording about = describe_recording(path);
    u64 found = 0;
    for (u64 size = second; size < all.size(); ++size) {
        folder.write("a.mcap", all.substr(0, size));
        u64 numbers = 0;
        {
            ring_reader pictures(path, about, 0);
            numbers = ring_reader(path, about, 1).size();
            REQUIRE(pictures.size() >= 2);
            CHECK(numbers <= pictures.size());
            if (pictures.size() == 2) continue;
            std::vector<std::byte> slot(slot_of(r.rings[0].format, 0).size());
            CHECK(pictures.read(2, slot.data()).frame_number == 2);
            CHECK(slot == slot_of(r.rings[0].format, 2));
        }
        if (found++ != 0) continue;
        CHECK_THAT(recover(path, to), contains(" complete frames"));
        CHECK(ring_reader(to, about, 0).size() == 3);
        CHECK(ring_reader(to, about, 1).size() == numbers);
        mcap::writer w(path, preamble_of(r), how,
                       1);  // a recorder that continues removes the incomplete unit
        CHECK(w.units() == 2);
        CHECK(w.bytes() == second);
    }
    if (how == "none") CHECK(found > 0);
}

TEST_CASE("a recording with small pictures has a JPEG channel per picture ring, and plays as before") {
    const scratch_folder folder;
    const std::string path = (folder.path / "a.mcap").string();
    recording r = two_rings();
    r.rings[0].format = image_format(100, 60);
    (void)r.rings[0].format.lay_out();
    r.jpeg_width = 50;
    {
        tape to(path, "none", r, (folder.path / "note").string());
        for (u64 n = 0; n < 3; ++n) {
            const auto picture = slot_of(r.rings[0].format, n), numbers = slot_of(r.rings[1].format, n);
            const taped_frame unit[] = {{{{.frame_number = n, .born_ns = n + 5}}, picture.data()},
                                        {{{.frame_number = n, .born_ns = n + 5}}, numbers.data()}};
            to.append(unit);
        }
        to.finish();
    }
    const recording about = describe_recording(path);
    CHECK(about.jpeg_width == 50);
    REQUIRE(about.rings.size() == 2);
    ring_reader frames(path, about, 1);
    REQUIRE(frames.size() == 3);
    std::vector<std::byte> slot(slot_of(r.rings[1].format, 0).size());
    CHECK(frames.read(2, slot.data()).frame_number == 2);
    CHECK(slot == slot_of(r.rings[1].format, 2));
    const shm::unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const mcap::any_contents c = mcap::scan_any(fd.get());
    CHECK(c.text.empty());
    REQUIRE(c.messages.size() == 9);
    CHECK(c.channel_of(3)->topic == "picture/image");
    CHECK(c.schema_of(3)->name == "foxglove.CompressedImage");
    mcap::message_reader reader(fd.get(), c);
    std::vector<std::byte> jpeg;
    (void)proto::read(reader.read(c.messages[2]), [&](const proto::field& f) {
        if (f.number == jpeg_field::data) jpeg.assign(f.bytes.begin(), f.bytes.end());
        if (f.number == jpeg_field::format) CHECK(f.as_text() == "jpeg");
    });
    REQUIRE(jpeg.size() > 100);
    CHECK(bytes_at(jpeg, 0, 2) == std::vector<u8>{0xFF, 0xD8});
    const std::string text(reinterpret_cast<const char*>(jpeg.data()), jpeg.size());
    CHECK(text.find(std::string("\xFF\xC0\x00\x11\x08\x00\x1E\x00\x32", 9)) != std::string::npos);  // 50 x 30
}
