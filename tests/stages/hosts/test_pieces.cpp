// Frames in pieces: what was put in comes out, and pieces that do not fit each other go nowhere.
#include <optional>
#include <vector>

#include "stages/hosts/ucx/pieces.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::hosts;
using taken = incoming_frame::taken;

std::vector<std::byte> bytes_of(u64 count, u64 seed) {
    std::vector<std::byte> out(count);
    for (u64 k = 0; k < count; ++k) out[k] = static_cast<std::byte>((k * 31 + seed) % 251);
    return out;
}

/// Takes frames into memory of its own.
struct taker {
    incoming_frame in;
    std::vector<std::byte> header, room;
    bool has_room = true;
    int asked = 0;
    taken take(const outgoing_frames::piece& p) { return take(p.front, p.data); }
    taken take(std::span<const std::byte> front, std::span<const std::byte> data) {
        return in.take(front, data, [&](std::span<const std::byte> h, u64 bytes) -> std::byte* {
            ++asked;
            header.assign(h.begin(), h.end());
            room.assign(bytes + 1, std::byte{});
            return has_room ? room.data() : nullptr;
        });
    }
};

std::shared_ptr<outgoing_frame> frame_of(
    const std::vector<std::byte>& header, const std::vector<std::byte>& data,
    std::function<void()> over = [] {}) {
    return std::make_shared<outgoing_frame>(header, data.data(), data.size(), std::move(over));
}

/// The pieces of one frame of three and a bit.
struct in_pieces {
    std::vector<std::byte> data = bytes_of(3 * piece_bytes + 7, 1);
    outgoing_frames out;
    std::vector<outgoing_frames::piece> all;
    in_pieces() {
        out.add(frame_of({std::byte{5}}, data));
        while (auto p = out.next()) all.push_back(std::move(*p));
    }
};

}  // namespace

TEST_CASE("a frame of any size comes out of its pieces as it went in, behind its header") {
    for (const u64 size : {u64{0}, u64{1}, piece_bytes - 1, piece_bytes, piece_bytes + 1, 5 * piece_bytes}) {
        CAPTURE(size);
        const auto header = bytes_of(40, 9), first = bytes_of(size, 2), second = bytes_of(size, 3);
        outgoing_frames out;
        out.add(frame_of(header, first));
        out.add(frame_of(header, second));
        taker t;
        int whole = 0;
        while (const auto p = out.next()) {
            CHECK(p->data.size() <= piece_bytes);
            const taken got = t.take(*p);
            REQUIRE((got == taken::part || got == taken::whole));
            CHECK(t.in.half() == (got == taken::part));
            if (got == taken::part) continue;
            t.room.pop_back();
            CHECK(t.header == header);
            CHECK(t.room == (whole == 0 ? first : second));
            ++whole;
        }
        CHECK(whole == 2);
        CHECK(t.asked == 2);
    }
}

TEST_CASE("a frame is over when none of its pieces is held, and not before") {
    const auto data = bytes_of(2 * piece_bytes, 4);
    int over = 0;
    outgoing_frames out;
    out.add(frame_of({}, data, [&] { ++over; }));
    auto first = out.next(), second = out.next();
    CHECK_FALSE(out.next());
    first.reset();
    CHECK(over == 0);
    second.reset();
    CHECK(over == 1);
    out.add(frame_of({}, data, [&] { ++over; }));
    out = {};  // the connection has ended before it began
    CHECK(over == 2);
}

TEST_CASE("a frame without room is heard to its end, and the next one is taken") {
    in_pieces f;
    taker t;
    t.has_room = false;
    for (std::size_t k = 0; k < f.all.size(); ++k) {
        CHECK(t.take(f.all[k]) == (k + 1 < f.all.size() ? taken::part : taken::nothing));
        CHECK_FALSE(t.in.half());
    }
    t.has_room = true;
    CHECK(t.take(f.all[0]) == taken::part);
    CHECK(t.asked == 2);
}

TEST_CASE("pieces that are left out, come twice, are longer than their frame or have no front go nowhere") {
    in_pieces f;
    {
        taker t;
        CHECK(t.take(f.all[1]) == taken::against_the_rules);
        CHECK(t.asked == 0);
    }
    {
        taker t;
        CHECK(t.take(f.all[0]) == taken::part);
        CHECK(t.take(f.all[2]) == taken::against_the_rules);
        CHECK(t.take(f.all[0]) == taken::against_the_rules);
    }
    {
        taker t;
        const auto longer = bytes_of(f.data.size() + 1, 1);
        CHECK(t.take(f.all[0].front, longer) == taken::against_the_rules);
        CHECK(t.asked == 0);
        CHECK(t.take(f.all[0].front, {}) == taken::against_the_rules);
        CHECK(t.take(std::span(f.all[0].front).first(9), f.all[0].data) == taken::against_the_rules);
    }
    {
        taker t;
        CHECK(t.take(f.all[0]) == taken::part);
        auto other = f.all[1].front;
        other[8] ^= std::byte{1};  // of a frame of another size
        CHECK(t.take(other, f.all[1].data) == taken::against_the_rules);
    }
}
