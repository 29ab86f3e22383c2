// Damaged recordings: a reader delivers every frame whose bytes are intact, at its own position, and reports
// each other one in an error. The seed repeats the plan; CAROUSEL_TEST_SCALE lengthens it (tests/campaigns).
#include <fcntl.h>
#include <fmt/format.h>

#include <optional>
#include <random>

#include "core/errors.hpp"
#include "core/io.hpp"
#include "shm/fd_socket.hpp"
#include "stages/compression/compression.hpp"
#include "stages/recording/recording.hpp"
#include "tests/stages/recorded_rings.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/support/seed.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using namespace carousel::stages;

std::string bytes_of(const std::string& path) { return read_file(path).value_or(""); }

mcap::contents contents_of(const std::string& path) {
    const shm::unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    return mcap::scan(fd.get());
}

/// The frames that a player gets from a ring.
struct played {
    std::string refusal;  ///< not empty: the whole file was refused, for this reason
    std::vector<std::optional<u64>>
        frames;  ///< the frame delivered at each position; empty: an error that names the position
};

std::optional<u64> frame_in(const std::vector<std::byte>& slot, const ring::frame_format& format) {
    for (u64 n = 0; n < 64; ++n)
        if (slot == slot_of(format, n)) return n;
    return {};
}

played play(const std::string& path, std::size_t ring) {
    played out;
    ring_reader frames;
    try {
        const recording about = describe_recording(path);
        if (about.rings.size() <= ring)
            throw config_error(path + " lacks that ring");  // as the player reports it
        frames = ring_reader(path, about, ring);
    } catch (const error& e) {
        out.refusal = e.what();
        REQUIRE(e.code() == exit_code::usage);
        return out;
    }
    const ring::frame_format format = two_rings().rings[ring].format;
    for (u64 place = 0; place < frames.size(); ++place) try {
            std::vector<std::byte> slot(slot_of(format, 0).size());
            const frame_facts facts = frames.read(place, slot.data());
            const std::optional<u64> frame = frame_in(slot, format);
            REQUIRE(frame);  // no damaged frame is delivered
            REQUIRE(*frame == facts.frame_number);
            out.frames.push_back(frame);
        } catch (const error& e) {
            REQUIRE_THAT(e.what(), contains(fmt::format("frame {} of ", place)));
            REQUIRE(e.code() == exit_code::stage_exception);
            out.frames.push_back(std::nullopt);
        }
    return out;
}

/// A recording, its units, and which of them contain which frame of which ring.
struct original {
    recording rings = two_rings();
    std::string bytes;
    bool ended = false;
    u64 front_bytes = 0, frames = 0;
    std::vector<std::vector<mcap::chunk_entry>> units;  ///< per ring, by the frame's number
};

original make_original(const scratch_folder& folder, std::mt19937_64& random) {
    const auto below = [&](u64 n) { return random() % n; };
    original o;
    o.frames = 2 + below(12);
    const bool apart = below(3) == 0, ends = below(4) != 0;
    const std::string how = compressions()[below(compressions().size())];
    const std::string path = (folder.path / "a.mcap").string();
    std::filesystem::remove(path);
    {
        mcap::writer w(path, preamble_of(o.rings), how, 1);
        for (u64 n = 0; n < o.frames; ++n) {
            if (!apart) add_frame(w, o.rings, n);
            if (apart) add_frame(w, o.rings, n, 0, 1), add_frame(w, o.rings, n, 1, 1);
        }
        if (ends) w.finish();
    }
    o.bytes = bytes_of(path);
    const mcap::contents c = contents_of(path);
    REQUIRE(c.ended == ends);
    o.ended = ends;
    o.front_bytes = c.front_bytes;
    o.units.resize(2);
    for (const mcap::chunk_entry& unit : c.chunks)
        for (u16 channel = 1; channel <= 2; ++channel)
            if (unit.has(channel)) o.units[channel - 1U].push_back(unit);
    return o;
}

struct damage {
    std::string bytes, text;
    bool cut = false;
};

damage damaged(const original& o, std::mt19937_64& random) {
    const auto below = [&](u64 n) { return random() % n; };
    damage d{o.bytes, {}, false};
    const u64 kind = below(8);
    // A third of the positions are in the last kilobyte, where the summary is.
    const auto place = [&] {
        return below(3) == 0 ? d.bytes.size() - 1 - below(std::min<u64>(d.bytes.size(), 1024))
                             : below(d.bytes.size());
    };
    if (kind >= 6) {
        d.bytes.resize(below(d.bytes.size()));
        d.cut = true;
        d.text = fmt::format("cut to {} bytes", d.bytes.size());
    }
    if (d.bytes.empty() || kind == 6) return d;
    const u64 at = place();
    if (kind == 5) {
        const u64 count = std::min<u64>(1 + below(600), d.bytes.size() - at);
        d.bytes.replace(at, count, count, '\0');
        d.text += fmt::format(", {} bytes at {} set to 0", count, at);
    } else if (kind == 4) {
        d.bytes[at] = static_cast<char>(below(256));
        d.text += fmt::format(", byte {} overwritten", at);
    } else {
        const u64 bit = below(8);
        d.bytes[at] = static_cast<char>(d.bytes[at] ^ (1 << bit));
        d.text += fmt::format(", bit {} of byte {} flipped", bit, at);
    }
    return d;
}

/// Returns whether frame `n`'s chunk has all its bytes.
bool is_intact(const original& o, const std::string& bytes, std::size_t ring, u64 n) {
    const mcap::chunk_entry& unit = o.units[ring][n];
    return unit.start + unit.length <= bytes.size() &&
           bytes.compare(unit.start, unit.length, o.bytes, unit.start, unit.length) == 0;
}

void check(const original& o, const damage& d, std::size_t ring, const played& p) {
    const bool front =
        d.bytes.size() >= o.front_bytes && d.bytes.compare(0, o.front_bytes, o.bytes, 0, o.front_bytes) == 0;
    std::vector<u64> intact;
    for (u64 n = 0; n < o.frames; ++n)
        if (is_intact(o, d.bytes, ring, n)) intact.push_back(n);
    if (!p.refusal.empty()) {  // the error names the file: all its frames
        CHECK_THAT(p.refusal, contains("b.mcap"));
        CHECK((!front || intact.empty()));
        return;
    }
    for (std::size_t place = 0; place < p.frames.size(); ++place)
        if (p.frames[place]) CHECK(*p.frames[place] == place);
    for (const u64 n : intact) {
        CAPTURE(n);
        CHECK((n < p.frames.size() && p.frames[n]));
    }
    // A file that was truncated, or whose recorder was killed, has no end, and the log reports that.
    // Otherwise each frame has its position, or the last position stands for all that are missing at the end.
    const bool has_end = !d.cut && o.ended;
    if (has_end) CHECK((p.frames.size() == o.frames || (!p.frames.empty() && !p.frames.back())));
}

}  // namespace

TEST_CASE("each intact frame of a damaged recording is played, and an error names each other one") {
    const u64 seed = seed_or(std::random_device()());
    const u32 faults = scaled(100);
    INFO("CAROUSEL_TEST_SEED=" << seed);
    const scratch_folder folder;
    std::mt19937_64 random(seed);
    original o;
    for (u32 k = 0; k < faults; ++k) {
        if (k % 8 == 0) o = make_original(folder, random);
        const damage d = damaged(o, random);
        const std::string path = folder.write("b.mcap", d.bytes);
        for (std::size_t ring = 0; ring < 2; ++ring) {
            INFO(fmt::format("fault {}, ring {}: {}; the preamble has {} bytes", k, ring, d.text,
                             o.front_bytes));
            check(o, d, ring, play(path, ring));
        }
    }
}

TEST_CASE("any flipped bit of a summary leaves all frames of the recording") {
    const scratch_folder folder;
    const recording r = two_rings();
    const std::string path = (folder.path / "a.mcap").string();
    {
        mcap::writer w(path, preamble_of(r), "none", 1);
        for (u64 n = 0; n < 3; ++n) add_frame(w, r, n);
        w.finish();
    }
    const std::string all = bytes_of(path);
    const mcap::contents whole = contents_of(path);
    REQUIRE(whole.ended);
    for (u64 at = whole.chunks.back().end(); at < all.size(); ++at) {
        const u64 bit = at % 8;
        CAPTURE(at, bit);
        std::string flipped = all;
        flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
        folder.write("b.mcap", flipped);
        const mcap::contents c = contents_of((folder.path / "b.mcap").string());
        REQUIRE(c.chunks.size() == 3);
        for (std::size_t k = 0; k < 3; ++k) {
            CHECK(c.chunks[k].start == whole.chunks[k].start);
            CHECK(c.chunks[k].length == whole.chunks[k].length);
            CHECK(c.chunks[k].channels == whole.chunks[k].channels);
        }
    }
}

TEST_CASE("a damaged frame header of an unfinished file keeps its place and is logged by number") {
    const scratch_folder folder;
    const recording r = two_rings();
    const std::string path = (folder.path / "a.mcap").string();
    {
        mcap::writer w(path, preamble_of(r), "none", 1);
        for (u64 n = 0; n < 5; ++n) add_frame(w, r, n);
    }
    const mcap::contents whole = contents_of(path);
    std::string all = bytes_of(path);
    all[whole.chunks[2].start + 3] ^= 0x10;  // its length
    folder.write("b.mcap", all);
    const std::string copy = (folder.path / "b.mcap").string();
    const mcap::contents c = contents_of(copy);
    REQUIRE(c.chunks.size() == 5);
    CHECK_THAT(c.chunks[2].damage, contains("missing: frame 2 of \"picture\", frame 2 of \"numbers\""));
    {  // the recorder that continues the file keeps the frames after the damage
        mcap::writer w(copy, preamble_of(r), "none", 1);
        CHECK(w.units() == 4);
        CHECK(w.cut() == 0);
        CHECK(w.damage().size() == 1);
        add_frame(w, r, 5);
        w.finish();
    }
    const mcap::contents after = contents_of(copy);
    CHECK(after.ended);
    REQUIRE(after.chunks.size() == 6);
    CHECK_FALSE(after.chunks[2].damage.empty());
    const played p = play(copy, 1);
    REQUIRE(p.frames.size() == 6);
    for (std::size_t n = 0; n < 6; ++n) CHECK((n == 2) == !p.frames[n]);
}

TEST_CASE("a recording with a damaged description is refused with the reason") {
    const scratch_folder folder;
    const recording r = two_rings();
    const std::string path = (folder.path / "a.mcap").string();
    {
        mcap::writer w(path, preamble_of(r), "none", 1);
        add_frame(w, r, 0);
    }
    std::string all = bytes_of(path);
    const std::size_t at = all.find("test.numbers");
    REQUIRE(at != std::string::npos);
    all[at] ^= 1;
    folder.write("b.mcap", all);
    CHECK_THAT(play((folder.path / "b.mcap").string(), 0).refusal,
               contains("the description of its rings and parameters is damaged"));
}
