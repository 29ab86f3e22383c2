// The film of a display: its file through deaths at every byte, and the encoder if there is one.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "core/errors.hpp"
#include "shm/fd_socket.hpp"
#include "stages/encode/encoded_output.hpp"
#include "stages/encode/units.hpp"
#include "stages/sdk/payload.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/support/skip.hpp"

using namespace carousel;
using namespace carousel::stages;

namespace {

using bytes = std::vector<u8>;

void append(bytes& to, const bytes& more) { to.insert(to.end(), more.begin(), more.end()); }

bytes box(const char* kind, const bytes& body) {
    const std::size_t size = body.size() + 8;
    bytes out{static_cast<u8>(size >> 24U), static_cast<u8>(size >> 16U), static_cast<u8>(size >> 8U),
              static_cast<u8>(size)};
    for (const char* c = kind; *c != '\0'; ++c) out.push_back(static_cast<u8>(*c));
    append(out, body);
    return out;
}

bytes heading(u8 taste = 0) {
    bytes out = box("ftyp", {1, 2, 3, 4});
    append(out, box("moov", bytes(20, taste)));
    return out;
}

bytes fragment(u64 frame_number, std::size_t payload = 40) {
    bytes traf = box("tfhd", bytes(8, 0));
    append(traf, box("tfdt", {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
    append(traf, box("trun", bytes(12, 7)));
    bytes moof = box("mfhd", bytes(8, 0));
    append(moof, box("traf", traf));
    bytes out = box("moof", moof);
    append(out, box("mdat", bytes(payload, static_cast<u8>(frame_number))));
    REQUIRE(stamp_fragment(out, frame_number));
    return out;
}

bytes content(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

void write(const std::filesystem::path& path, const bytes& all) {
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char*>(all.data()), static_cast<std::streamsize>(all.size()));
}

unit_contents read(const std::filesystem::path& path, u64 heading_bytes) {
    const shm::unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    REQUIRE(fd);
    return read_units(fd.get(), heading_bytes);
}

struct place {
    scratch_folder folder;
    std::string film = (folder.path / "x.mp4").string(), note = (folder.path / "film-display").string();
};

/// Limits the size of this process's files while it exists: a write stops in the middle, as on a full disk.
class end_of_room {
public:
    explicit end_of_room(u64 size) {
        std::signal(SIGXFSZ, SIG_IGN);
        ::getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit small{size, before_.rlim_max};
        ::setrlimit(RLIMIT_FSIZE, &small);
    }
    ~end_of_room() { ::setrlimit(RLIMIT_FSIZE, &before_); }
    end_of_room(const end_of_room&) = delete;
    end_of_room& operator=(const end_of_room&) = delete;

private:
    rlimit before_{};
};

encode_settings settings_of(const std::string& url, u32 width, u32 height) {
    return {.url = url, .fps = 24, .width = width, .height = height};
}

}  // namespace

TEST_CASE("a fragment without room is written later, at its own place") {
    place p;
    encoded_file f(p.film, p.note, heading());
    f.append(0, fragment(0));
    const u64 size = content(p.film).size();
    {
        const end_of_room full(size + 10);
        CHECK_THROWS_AS(f.append(1, fragment(1)), output_error);
        CHECK(content(p.film).size() == size + 10);
        CHECK_FALSE(f.contains(1));
    }
    f.append(1, fragment(1));
    bytes expected = heading();
    append(expected, fragment(0));
    append(expected, fragment(1));
    CHECK(content(p.film) == expected);
}

TEST_CASE("the encoder gets a picture once, for any number of attempts to write its fragment") {
    if (!why_no_films().empty()) CAROUSEL_SKIP(why_no_films().c_str());
    place held, straight;
    const image_size size{64, 48};
    encoded_output a(settings_of(held.film, size.width, size.height), held.note),
        b(settings_of(straight.film, size.width, size.height), straight.note);
    for (u64 n = 0; n < 4; ++n) {
        const std::vector<std::byte> picture(size.bytes(), static_cast<std::byte>(50 * n));
        if (n == 2) {
            const end_of_room full(content(held.film).size() + 20);
            for (int tries = 0; tries < 3; ++tries)
                CHECK_THROWS_AS(a.write(n, {{picture.data()}}), output_error);
        }
        a.write(n, {{picture.data()}});
        b.write(n, {{picture.data()}});
    }
    CHECK(content(held.film) == content(straight.film));
}

TEST_CASE("a successor continues after the last whole fragment, at any byte of the death") {
    place p;
    bytes whole = heading();
    for (u64 n = 0; n < 3; ++n) append(whole, fragment(n));
    const bytes cut_from = fragment(3, 1000);
    for (std::size_t written = 0; written <= cut_from.size(); written += written < 160 ? 1 : 53) {
        write(p.note, {'1', '\n'});
        bytes left = whole;
        left.insert(left.end(), cut_from.begin(), cut_from.begin() + static_cast<std::ptrdiff_t>(written));
        write(p.film, left);
        encoded_file f(p.film, p.note, heading());
        const bool complete = written == cut_from.size();
        INFO(written);
        CHECK(f.contains(2));
        CHECK(f.contains(3) == complete);
        if (!f.contains(3)) f.append(3, fragment(3, 1000));
        f.append(4, fragment(4));
        bytes expected = whole;
        append(expected, cut_from);
        append(expected, fragment(4));
        CHECK(content(p.film) == expected);
    }
}

TEST_CASE("the first start of a run creates its film, also over an older one") {
    place p;
    write(p.film, bytes(5000, 9));
    encoded_file f(p.film, p.note, heading());
    CHECK_FALSE(f.contains(0));
    f.append(0, fragment(0));
    CHECK(f.contains(0));
    CHECK_FALSE(f.contains(1));
    bytes expected = heading();
    append(expected, fragment(0));
    CHECK(content(p.film) == expected);
}

TEST_CASE("a death before anything was written leaves a film that is begun again") {
    place p;
    write(p.film, {1, 2, 3});  // opened, half a heading, no note yet
    encoded_file f(p.film, p.note, heading());
    CHECK(content(p.film) == heading());
}

TEST_CASE("frames of a successor with another heading go to a part of their own, each frame once") {
    place p;
    {
        encoded_file f(p.film, p.note, heading());
        f.append(0, fragment(0));
        f.append(1, fragment(1));
    }
    for (int incarnation = 0; incarnation < 2; ++incarnation) {  // the second continues the part of the first
        encoded_file f(p.film, p.note, heading(5));
        CHECK(f.path() == (p.folder.path / "x.part2.mp4").string());
        CHECK(f.contains(incarnation == 0 ? 1 : 2));
        CHECK_FALSE(f.contains(incarnation == 0 ? 2 : 3));
        f.append(static_cast<u64>(incarnation) + 2, fragment(static_cast<u64>(incarnation) + 2));
    }
    CHECK(read(p.film, heading().size()).frames == 2);
    CHECK(read(p.folder.path / "x.part2.mp4", heading().size()).frames == 2);
}

TEST_CASE("a predecessor that still writes is waited for") {
    place p;
    auto first = std::make_unique<encoded_file>(p.film, p.note, heading());
    std::atomic<bool> released{false};
    std::thread later([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(60));
        first->append(0, fragment(0));
        released = true;
        first.reset();
    });
    encoded_file second(p.film, p.note, heading());
    CHECK(released);
    CHECK(second.contains(0));
    later.join();
}

TEST_CASE("a film that can't be written is an output error that names it") {
    place p;
    CHECK_THROWS_WITH(encoded_file("/proc/nowhere/x.mp4", p.note, heading()),
                      test::contains("/proc/nowhere/x.mp4"));
    CHECK_THROWS_AS(encoded_file("/proc/nowhere/x.mp4", p.note, heading()), output_error);
}

TEST_CASE("only a complete fragment of one frame is stamped") {
    bytes good = fragment(7);
    for (std::size_t size = 0; size < good.size(); ++size) {
        bytes cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
        CHECK_FALSE(stamp_fragment(cut, 1));
    }
    bytes garbage(200, 0xFF);
    CHECK_FALSE(stamp_fragment(garbage, 1));
    CHECK(stamp_fragment(good, u64{1} << 40U));
}

TEST_CASE("the encoder's header is always the same, and each picture is a numbered fragment") {
    if (!why_no_films().empty()) CAROUSEL_SKIP(why_no_films().c_str());
    for (const u32 width : {64U, 65U}) {
        const u32 height = 48;
        const encode_settings with = settings_of("x.mp4", width, height);
        const auto e = make_encoder(with), again = make_encoder(with);
        CHECK(e->heading() == again->heading());
        place p;
        encoded_file f(p.film, p.note, e->heading());
        std::vector<std::byte> picture(std::size_t{width} * height * 4, std::byte{90});
        for (const u64 n : {0, 1, 2, 5, 6}) f.append(n, e->encode(n, 0, {{picture.data()}}, n == 0));
        const unit_contents all = read(p.film, e->heading().size());
        CHECK(all.frames == 5);
        CHECK(all.last.value_or(0) == 6);
        CHECK(all.bytes == std::filesystem::file_size(p.film));
    }
}

TEST_CASE("a film through a symbolic link writes the link's target, with its parts next to it") {
    place p;
    const std::filesystem::path there = p.folder.path / "there";
    std::filesystem::create_directory(there);
    std::filesystem::create_symlink("there/x.mp4", p.film);
    for (const bytes& h : {heading(), heading(), heading(1)}) encoded_file(p.film, p.note, h);
    CHECK(std::filesystem::is_symlink(p.film));
    CHECK(scratch_folder::names_in(there) == std::vector<std::string>{"x.mp4", "x.part2.mp4"});
}

TEST_CASE("a film into a FIFO is its heading once, then the fragments of all incarnations") {
    place p;
    REQUIRE(::mkfifo(p.film.c_str(), 0600) == 0);
    const shm::unique_fd reader(::open(p.film.c_str(), O_RDWR | O_CLOEXEC));
    bytes wanted = heading();
    for (const u64 n : {0, 1}) {
        encoded_file(p.film, p.note, heading()).append(n, fragment(n));
        const bytes f = fragment(n);
        wanted.insert(wanted.end(), f.begin(), f.end());
    }
    bytes got(wanted.size() + 1);
    got.resize(static_cast<std::size_t>(::read(reader.get(), got.data(), got.size())));
    CHECK((got == wanted));
    CHECK(std::filesystem::is_fifo(p.film));
}
