// Encoded outputs other than MP4: Matroska files and HLS folders through deaths at every byte, containers by
// their names, and the encoders' settings.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/errors.hpp"
#include "stages/encode/encoded_output.hpp"
#include "stages/encode/hls_folder.hpp"
#include "stages/encode/units.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/support/skip.hpp"

namespace carousel::stages::encoded_files {
namespace {

using bytes = std::vector<u8>;
namespace fs = std::filesystem;

void append(bytes& to, const bytes& more) { to.insert(to.end(), more.begin(), more.end()); }

bytes content(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

void write(const fs::path& path, const bytes& all) {
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char*>(all.data()), static_cast<std::streamsize>(all.size()));
}

/// An EBML head, a segment of unknown size, an element.
bytes mkv_heading(u8 taste = 0) {
    return {0x1A, 0x45, 0xDF, 0xA3, 0x82, 1,    2,    0x18, 0x53, 0x80, 0x67, 0x01, 0xFF,
            0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x15, 0x49, 0xA9, 0x66, 0x81, taste};
}

bytes cluster(u64 frame_number, u8 payload = 60) {
    bytes unstamped{0x1F, 0x43, 0xB6, 0x75, static_cast<u8>(0x80 | payload)};
    unstamped.resize(unstamped.size() + payload, static_cast<u8>(frame_number));
    bytes out = stamp_cluster(unstamped, frame_number);
    REQUIRE_FALSE(out.empty());
    return out;
}

bytes box(const char* kind, const bytes& body) {
    const std::size_t size = body.size() + 8;
    bytes out{static_cast<u8>(size >> 24U), static_cast<u8>(size >> 16U), static_cast<u8>(size >> 8U),
              static_cast<u8>(size)};
    for (const char* c = kind; *c != '\0'; ++c) out.push_back(static_cast<u8>(*c));
    append(out, body);
    return out;
}

encoded_frame fragment(u64 frame_number, bool key) {
    bytes traf = box("tfhd", bytes(8, 0));
    append(traf, box("tfdt", {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
    bytes moof = box("mfhd", bytes(8, 0));
    append(moof, box("traf", traf));
    bytes out = box("moof", moof);
    append(out, box("mdat", bytes(30, static_cast<u8>(frame_number))));
    REQUIRE(stamp_fragment(out, frame_number));
    return {out, key};
}

struct place {
    scratch_folder folder;
    std::string file = (folder.path / "x.mkv").string(), note = (folder.path / "note").string();
    fs::path hls = folder.path / "hls";
    std::string playlist = (hls / "x.m3u8").string();
    place() { fs::create_directory(hls); }
    [[nodiscard]] std::string list() const {
        const bytes all = content(playlist);
        return {all.begin(), all.end()};
    }
};

constexpr u64 gop = 4;

/// A folder with segments of 4 frames at 4 frames per second.
class live {
public:
    explicit live(const place& p, u8 taste = 0, u32 keep = 0)
        : folder_(p.playlist, p.note, bytes(10, taste), {4, gop, keep}) {}
    /// Appends the frames from the first missing one below `end`; a new process begins with a key frame.
    void up_to(u64 end) {
        for (u64 n = 0; n < end; ++n) {
            if (folder_.contains(n)) continue;
            folder_.append(n, fragment(n, first_ || n % gop == 0));
            first_ = false;
        }
    }
    void close() { folder_.close(); }

private:
    hls_folder folder_;
    bool first_ = true;
};

}  // namespace

TEST_CASE("a Matroska file is continued after its last whole cluster, at any byte of the death") {
    place p;
    bytes whole = mkv_heading();
    for (u64 n = 0; n < 3; ++n) append(whole, cluster(n));
    const bytes cut_from = cluster(u64{1} << 40U, 100);
    for (std::size_t written = 0; written <= cut_from.size(); ++written) {
        write(p.note, {'1', '\n'});
        bytes left = whole;
        left.insert(left.end(), cut_from.begin(), cut_from.begin() + static_cast<std::ptrdiff_t>(written));
        write(p.file, left);
        encoded_file f(p.file, p.note, mkv_heading(), container::matroska);
        INFO(written);
        CHECK(f.contains(2));
        CHECK(f.contains(3) == (written == cut_from.size()));
        if (!f.contains(3)) f.append(u64{1} << 40U, cut_from);
        bytes expected = whole;
        append(expected, cut_from);
        CHECK(content(p.file) == expected);
    }
    encoded_file f(p.file, p.note, mkv_heading(1), container::matroska);
    CHECK(f.path() == (p.folder.path / "x.part2.mkv").string());
}

TEST_CASE("only one complete cluster is stamped") {
    const bytes good{0x1F, 0x43, 0xB6, 0x75, 0x82, 7, 7};
    for (std::size_t size = 0; size < good.size(); ++size)
        CHECK(stamp_cluster(std::span(good).first(size), 1).empty());
    bytes two = good;
    append(two, good);
    CHECK(stamp_cluster(two, 1).empty());
    CHECK(stamp_cluster(bytes(50, 0xFF), 1).empty());
    CHECK(stamp_cluster(good, 1).size() == good.size() + 23);
}

TEST_CASE("an HLS folder lists its complete segments, and all of them at the end") {
    place p;
    live f(p);
    f.up_to(4);
    CHECK_FALSE(fs::exists(p.playlist));
    f.up_to(10);
    CHECK(p.list().find("#EXTINF:1.000000,\nx_0000000004.m4s\n") != std::string::npos);
    CHECK(p.list().find("x_0000000008.m4s") == std::string::npos);
    f.close();
    CHECK(p.list().ends_with("#EXTINF:0.500000,\nx_0000000008.m4s\n#EXT-X-ENDLIST\n"));
    CHECK(p.list().find("#EXT-X-TARGETDURATION:1\n") != std::string::npos);
}

TEST_CASE("an HLS folder is continued after the death of its writer, at any frame and byte") {
    place straight;
    {
        live f(straight);
        f.up_to(11);
        f.close();
    }
    const auto names = scratch_folder::names_in(straight.hls);
    for (u64 death = 1; death <= 10; ++death) {
        for (const std::size_t cut : {0, 1, 20}) {
            place p;
            live(p).up_to(death);
            const u64 segment = (death - 1) / gop * gop;
            const fs::path open = p.hls / fmt::format("x_{:010}.m4s", segment);
            if (cut > 0) {
                bytes left = content(open);
                const bytes more = fragment(death, false).bytes;
                left.insert(left.end(), more.begin(), more.end() - static_cast<std::ptrdiff_t>(cut));
                write(open, left);
            }
            live f(p);
            f.up_to(11);
            f.close();
            INFO(death << " " << cut);
            CHECK(scratch_folder::names_in(p.hls) == names);
            CHECK(p.list() == straight.list());
            for (const std::string& name : names)
                CHECK(content(p.hls / name) == content(straight.hls / name));
        }
    }
}

TEST_CASE("a fragment without room in an HLS folder is written later, at its own place") {
    place straight, p;
    live a(straight), b(p);
    a.up_to(11);
    b.up_to(5);
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    const rlimit small{content(p.hls / "x_0000000004.m4s").size() + 10, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
    CHECK_THROWS_AS(b.up_to(6), output_error);
    CHECK_THROWS_AS(b.up_to(6), output_error);
    ::setrlimit(RLIMIT_FSIZE, &before);
    b.up_to(11);
    for (const std::string& name : scratch_folder::names_in(straight.hls))
        CHECK(content(p.hls / name) == content(straight.hls / name));
}

TEST_CASE("a successor with another heading begins a segment of its own") {
    place p;
    live(p).up_to(6);
    live f(p, 5);
    f.up_to(8);
    f.close();
    CHECK(p.list().find("#EXTINF:0.500000,\nx_0000000004.m4s\n#EXT-X-DISCONTINUITY\n#EXT-X-MAP:") !=
          std::string::npos);
    CHECK(p.list().find("#EXTINF:0.500000,\nx_0000000006.m4s\n#EXT-X-ENDLIST\n") != std::string::npos);
}

TEST_CASE("an HLS folder keeps the newest segments, and a new run removes all of an earlier one") {
    place p;
    {
        live f(p, 0, 2);
        f.up_to(17);
        CHECK(p.list().find("#EXT-X-MEDIA-SEQUENCE:2\n") != std::string::npos);
        CHECK_FALSE(fs::exists(p.hls / "x_0000000004.m4s"));
        CHECK(fs::exists(p.hls / "x_0000000008.m4s"));
    }
    fs::remove(p.note);
    write(p.hls / "other.m4s", {1});
    live f(p, 1);
    const auto names = scratch_folder::names_in(p.hls);
    CHECK(names.size() == 2);
    CHECK(std::count(names.begin(), names.end(), "other.m4s") == 1);
}

TEST_CASE("a damaged note removes nothing from the output") {
    place p;
    bytes whole = mkv_heading();
    append(whole, cluster(0));
    write(p.file, whole);
    for (const bytes& damaged : {bytes{}, bytes{'x', '\n'}, bytes{'0', '\n'}}) {
        write(p.note, damaged);
        CHECK_THROWS_WITH(encoded_file(p.file, p.note, mkv_heading(), container::matroska),
                          test::contains("is damaged"));
        CHECK(content(p.file) == whole);
    }
    fs::remove(p.note);
    live(p).up_to(6);
    write(p.note, {});
    CHECK_THROWS_WITH(live(p), test::contains("is damaged"));
    CHECK(fs::exists(p.playlist));
}

TEST_CASE("a note that cannot be written is an error, and the older one is kept") {
    place p;
    write_note(p.note, "1");
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    const rlimit none{0, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &none);
    CHECK_THROWS_AS(write_note(p.note, "2"), output_error);
    ::setrlimit(RLIMIT_FSIZE, &before);
    CHECK(read_note(p.note) == "1");
    CHECK_FALSE(read_note(p.file));
}

TEST_CASE("a container that cannot be continued is refused in a file") {
    const place p;
    write(p.file, {1});
    CHECK_THROWS_WITH(encoded_file(p.file, p.note, {}, container::mpegts),
                      test::contains("cannot be continued after a kill"));
    CHECK(content(p.file) == bytes{1});
}

TEST_CASE("the reader of a FIFO may pause: the wait is reported, and ends after timeout_s") {
    const place p;
    REQUIRE(::mkfifo(p.file.c_str(), 0600) == 0);
    const shm::unique_fd reader(::open(p.file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    const bytes unit(200'000, 7);  // more than a pipe holds
    u32 waits = 0;
    bytes read;
    bool reads = true;
    const auto on_wait = [&] {
        ++waits;
        bytes some(80'000);
        for (ssize_t n = 1; reads && (n = ::read(reader.get(), some.data(), some.size())) > 0;)
            read.insert(read.end(), some.begin(), some.begin() + n);
    };
    encoded_file f(p.file, p.note, mkv_heading(), container::matroska, {0.3, on_wait});
    f.append(0, unit);
    CHECK(waits >= 2);
    on_wait();
    bytes expected = mkv_heading();
    append(expected, unit);
    CHECK(read == expected);
    reads = false;
    CHECK_THROWS_WITH(f.append(1, unit), test::contains("its reader has read nothing for 0.3 s"));
}

/// The value of an element of one byte in the heading of a Matroska file; 2 (unspecified) if it is not there.
int tag(const bytes& heading, u8 second_byte_of_id) {
    const u8 name[] = {0x55, second_byte_of_id, 0x81};
    const auto at = std::search(heading.begin(), heading.end(), std::begin(name), std::end(name));
    return heading.end() - at > 3 ? at[3] : 2;
}

/// Primaries, transfer and matrix (ISO/IEC 23091-2).
std::array<int, 3> tags(ring::pixel_format pixels, u32 matrix) {
    const bytes heading = make_encoder({.url = "a.mkv",
                                        .format = container::matroska,
                                        .pixels = pixels,
                                        .colours = {.matrix = matrix},
                                        .width = 64,
                                        .height = 48})
                              ->heading();
    return {tag(heading, 0xBB), tag(heading, 0xBA), tag(heading, 0xB1)};
}

TEST_CASE("NV12 is described by the primaries of its matrix, RGB and grey as sRGB") {
    if (!why_no_films().empty()) CAROUSEL_SKIP(why_no_films().c_str());
    CHECK(tags(ring::pixel_format::nv12, 601) == std::array{6, 2, 6});
    CHECK(tags(ring::pixel_format::nv12, 709) == std::array{1, 2, 1});
    CHECK(tags(ring::pixel_format::nv12, 2020) == std::array{9, 2, 9});
    CHECK(tags(ring::pixel_format::rgba8, 601) == std::array{1, 13, 1});
    CHECK(tags(ring::pixel_format::gray8, 601) == std::array{1, 13, 1});
}

TEST_CASE("the URL determines the container, and whether it is a network output") {
    const auto of = [](const std::string& url, const std::string& format = "") {
        encode_settings e{.url = url};
        set_container(e, format);
        return std::pair(e.format, e.network);
    };
    CHECK(of("a.mp4") == std::pair(container::mp4, false));
    CHECK(of("/x/a.mkv") == std::pair(container::matroska, false));
    CHECK(of("a/b.m3u8") == std::pair(container::hls, false));
    CHECK(of("rtsp://h:1/a.mp4") == std::pair(container::rtsp, true));
    CHECK(of("udp://h:1") == std::pair(container::mpegts, true));
    CHECK(of("http://h/a", "mpegts") == std::pair(container::mpegts, true));
    CHECK(of("pipe:1") == std::pair(container::mpegts, false));
    CHECK(of("/dev/video9", "mkv") == std::pair(container::matroska, false));
    CHECK(of("file:///x/a.mp4") == std::pair(container::mp4, false));
    encode_settings local{.url = "file:///x/a.mp4"};
    set_container(local, "");
    CHECK(local.url == "/x/a.mp4");
    CHECK_THROWS_WITH(of("http://h/a.m3u8"),
                      test::contains("hls cannot be sent over a network; use format = \"mpegts\""));
    CHECK_THROWS_WITH(of("http://h/a.mp4"), test::contains("mp4 cannot be sent over a network"));
    CHECK_THROWS_WITH(of("tcp://h:1", "mkv"), test::contains("mkv cannot be sent over a network"));
    CHECK_THROWS_WITH(of("a.mkv", "rtsp"), test::contains("begins with rtsp://"));
    CHECK_THROWS_WITH(of("a.avi"), test::contains("does not determine a container"));
    CHECK_THROWS_WITH(of("a.mkv", "avi"), test::contains("format = \"avi\""));
}

TEST_CASE("an encoder that holds pictures back is refused, and each picture format is encoded at once") {
    if (!why_no_films().empty()) CAROUSEL_SKIP(why_no_films().c_str());
    encode_settings e{
        .url = "a.mkv", .format = container::matroska, .codec = "ffv1", .width = 64, .height = 48};
    for (const ring::pixel_format pixels : ring::pixel_formats) {
        e.pixels = pixels;
        CHECK_NOTHROW(check_encoder(e));
    }
    e.codec = "vp9";
    e.pixels = ring::pixel_format::nv12;
    CHECK_NOTHROW(check_encoder(e));
    e.options = {{"lag-in-frames", "5"}};
    CHECK_THROWS_WITH(check_encoder(e), test::contains("only after later ones"));
    e.options = {{"no-such-option", "5"}};
    CHECK_THROWS_WITH(check_encoder(e), test::contains("no-such-option"));
}

TEST_CASE("frames with their own times keep their numbers in MP4 and Matroska") {
    if (!why_no_films().empty()) CAROUSEL_SKIP(why_no_films().c_str());
    const std::vector<std::byte> picture(std::size_t{64} * 48 * 4, std::byte{90});
    for (const auto& [name, format] :
         {std::pair("a.mp4", container::mp4), std::pair("a.mkv", container::matroska)}) {
        place p;
        const std::string path = (p.folder.path / name).string();
        const encode_settings e{.url = path, .format = format, .own_times = true, .width = 64, .height = 48};
        for (const u64 first : {0, 3}) {
            encoded_output out(e, p.note);
            for (u64 n = 0; n < first + 3; ++n) out.write(n, {{picture.data()}}, n * n * 40'000'000);
        }
        const shm::unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        const unit_contents found = read_units(fd.get(), heading_bytes_of(fd.get(), format), format);
        CHECK(found.frames == 6);
        CHECK(found.last.value_or(0) == 5);
    }
}

}  // namespace carousel::stages::encoded_files
