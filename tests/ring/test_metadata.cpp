// The entries that travel with a frame: entries are read as written, and bytes that no writer of this format
// produced are never read beyond their end.
#include "frame/metadata.hpp"

#include <limits>
#include <random>
#include <vector>

#include "tests/ring/seated.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::ring;

namespace {

struct bytes_in_hand {
    std::byte room[shm::max_metadata_bytes];
    u32 bytes = 0;
    metadata_change set(std::string_view key, const metadata_value& value) {
        return set_metadata(room, bytes, key, value);
    }
    [[nodiscard]] std::span<const std::byte> all() const { return std::span(room).first(bytes); }
    [[nodiscard]] std::string text(std::string_view key) const {
        const auto v = find_metadata(all(), key);
        return v ? std::string(kind_of(*v)) + " " + text_of(*v) : "none";
    }
    [[nodiscard]] std::vector<std::string> keys() const {
        std::vector<std::string> out;
        metadata_reader r(all());
        for (metadata_entry e; r.next(e);) out.emplace_back(e.key);
        CHECK_FALSE(r.damaged());
        return out;
    }
};

}  // namespace

TEST_CASE("an entry of each kind is read as it was written") {
    bytes_in_hand m;
    const std::byte raw[] = {std::byte{0}, std::byte{255}};
    CHECK(m.set("on", true) == metadata_change::done);
    CHECK(m.set("gain", i64{-3}) == metadata_change::done);
    CHECK(m.set("serial", std::numeric_limits<u64>::max()) == metadata_change::done);
    CHECK(m.set("exposure_ms", 3.5) == metadata_change::done);
    CHECK(m.set("camera", std::string_view("l\xC3\xA4ngs")) == metadata_change::done);
    CHECK(m.set("raw", std::span<const std::byte>(raw)) == metadata_change::done);
    CHECK(m.text("on") == "bool true");
    CHECK(m.text("gain") == "i64 -3");
    CHECK(m.text("serial") == "u64 18446744073709551615");
    CHECK(m.text("exposure_ms") == "f64 3.5");
    CHECK(m.text("camera") == "text \"l\xC3\xA4ngs\"");
    CHECK(m.text("raw") == "bytes 2 bytes");
    CHECK(m.text("other") == "none");
    CHECK(m.keys() == std::vector<std::string>{"on", "gain", "serial", "exposure_ms", "camera", "raw"});
}

TEST_CASE("an entry that is set again has its new value, of another kind, too, and can be erased") {
    bytes_in_hand m;
    CHECK(m.set("a", i64{1}) == metadata_change::done);
    CHECK(m.set("b", i64{2}) == metadata_change::done);
    CHECK(m.set("a", std::string_view("one")) == metadata_change::done);
    CHECK(m.text("a") == "text \"one\"");
    CHECK(m.text("b") == "i64 2");
    CHECK(erase_metadata(m.room, m.bytes, "b"));
    CHECK_FALSE(erase_metadata(m.room, m.bytes, "b"));
    CHECK(m.keys() == std::vector<std::string>{"a"});
    CHECK(erase_metadata(m.room, m.bytes, "a"));
    CHECK(m.bytes == 0);
}

TEST_CASE("a change that is refused has no effect") {
    bytes_in_hand m;
    CHECK(m.set("a", i64{1}) == metadata_change::done);
    const std::vector<std::byte> large(shm::max_metadata_bytes - 13 - 4 - 1);
    CHECK(m.set("b", std::span<const std::byte>(large)) == metadata_change::done);
    CHECK(m.bytes == shm::max_metadata_bytes);
    CHECK(m.set("c", true) == metadata_change::no_room);
    CHECK(m.set("a", std::string_view("longer than it was")) == metadata_change::no_room);
    CHECK(m.set("a", i64{2}) == metadata_change::done);
    const std::vector<std::byte> huge(70'000);
    CHECK(m.set("a", std::span<const std::byte>(huge)) == metadata_change::no_room);
    for (const char* key : {"", "two words", "a=b", "\xC3\xA4"})
        CHECK(m.set(key, true) == metadata_change::bad_key);
    CHECK(m.set(std::string(64, 'k'), true) == metadata_change::bad_key);
    for (const char* text :
         {"a\nb", "\x7F", "\xC3", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xC2\x9B"})
        CHECK(m.set("a", std::string_view(text)) == metadata_change::bad_value);
    CHECK(m.text("a") == "i64 2");
    CHECK(m.keys() == std::vector<std::string>{"b", "a"});
}

TEST_CASE("a join takes the first input's entries, then those of later inputs with new keys") {
    bytes_in_hand first, second, joined;
    (void)first.set("camera", i64{1});
    (void)first.set("gain", 2.0);
    (void)second.set("gain", 9.0);
    (void)second.set("depth_scale", 0.001);
    CHECK(merge_metadata(joined.room, joined.bytes, first.all()) == 0);
    CHECK(merge_metadata(joined.room, joined.bytes, second.all()) == 0);
    CHECK(joined.keys() == std::vector<std::string>{"camera", "gain", "depth_scale"});
    CHECK(joined.text("gain") == "f64 2");
    const std::vector<std::byte> large(970);
    REQUIRE(second.set("large", std::span<const std::byte>(large)) == metadata_change::done);
    CHECK(merge_metadata(joined.room, joined.bytes, second.all()) == 1);
    CHECK(joined.text("large") == "none");
}

TEST_CASE("damaged bytes are read up to the damage and not beyond") {
    bytes_in_hand m;
    (void)m.set("a", i64{1});
    (void)m.set("b", std::string_view("two"));
    const u32 whole = m.bytes;
    for (u32 n = 0; n <= whole; ++n) {  // cut off anywhere
        metadata_reader r(std::span(m.room).first(n));
        u32 seen = 0;
        for (metadata_entry e; r.next(e);) ++seen;
        CHECK(seen == (n == whole ? 2 : n >= 13 ? 1 : 0));
        CHECK(r.damaged() == (n != 0 && n != 13 && n != whole));
    }
    m.room[13] = std::byte{77};  // an unknown kind
    CHECK(m.text("a") == "i64 1");
    CHECK(m.text("b") == "none");
    bytes_in_hand to;
    CHECK(merge_metadata(to.room, to.bytes, m.all()) == 1);
    CHECK(to.keys() == std::vector<std::string>{"a"});
    CHECK(m.set("c", true) == metadata_change::done);  // the entries after the damage are dropped
    CHECK(m.keys() == std::vector<std::string>{"a", "c"});
}

TEST_CASE("random bytes are never read beyond their end") {
    std::mt19937_64 random(17);
    for (int round = 0; round < 20'000; ++round) {
        std::vector<std::byte> bytes(random() % 64);
        for (std::byte& b : bytes) b = static_cast<std::byte>(random() % (random() % 2 != 0 ? 8 : 256));
        metadata_reader r(bytes);
        std::size_t seen = 0;
        for (metadata_entry e; r.next(e);) seen += 4 + e.key.size();
        CHECK(seen <= bytes.size());
        bytes_in_hand to;
        (void)merge_metadata(to.room, to.bytes, bytes);
        (void)to.set("mine", true);
        CHECK(to.text("mine") == "bool true");
        (void)to.keys();
    }
}

TEST_CASE("a header with more metadata than possible is read to the end of its room") {
    shm::frame_header h{};
    h.metadata_bytes = ~0U;
    CHECK(metadata_of(h).size() == shm::max_metadata_bytes);
}

TEST_CASE("metadata and capture time of a frame are in each ring downstream of their stage") {
    test::bench b(test::chain_of_three());
    const test::seated source = b.sit(0), middle = b.sit(1);
    job j;
    REQUIRE(source.w->begin(j, 0) == outcome::ok);
    shm::frame_header& made = b.c->frames[0].header[j.output[0].index];
    CHECK(made.metadata_bytes == 0);
    CHECK(made.meta.clock == shm::capture_clock::none);
    REQUIRE(set_metadata(made.metadata, made.metadata_bytes, "exposure_ms", 3.5) == metadata_change::done);
    j.clock = shm::capture_clock::live;
    j.capture_ns = 42;
    REQUIRE(source.w->submit(j));
    REQUIRE(source.w->commit(j));
    REQUIRE(source.w->complete(j));
    job k;
    REQUIRE(middle.w->begin(k, 0) == outcome::ok);
    CHECK(k.capture_ns == 42);
    const shm::frame_header& seen = b.c->frames[1].header[k.output[0].index];
    CHECK(text_of(*find_metadata(metadata_of(seen), "exposure_ms")) == "3.5");
    CHECK(seen.meta.clock == shm::capture_clock::live);
    CHECK(seen.meta.capture_ns == 42);
}

TEST_CASE("a reused slot contains no data of its earlier frame") {
    test::bench b(test::chain());
    const test::seated source = b.sit(0), sink = b.sit(1);
    for (int k = 0; k < 40; ++k) {
        job j;
        REQUIRE(source.w->begin(j, 0) == outcome::ok);
        shm::frame_header& made = b.c->frames[0].header[j.output[0].index];
        CHECK(made.metadata_bytes == 0);
        CHECK(made.metadata_omitted == 0);
        CHECK(made.used.planes == 0);
        CHECK(made.meta.clock == shm::capture_clock::none);
        made.metadata_bytes = made.metadata_omitted = 5;
        made.used.planes = 1;
        made.meta.clock = shm::capture_clock::live;
        REQUIRE(source.w->submit(j));
        REQUIRE(source.w->commit(j));
        REQUIRE(source.w->complete(j));
        (void)test::pass(*sink.w);
    }
}
