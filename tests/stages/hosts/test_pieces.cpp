// Frames in pieces: frames are received as sent, and pieces that do not match are dropped.
#include <cstring>
#include <optional>
#include <vector>

#include "stages/hosts/ucx/pieces.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::hosts;

constexpr u64 piece = 1000;

std::vector<std::byte> bytes_of(u64 count, u64 seed) {
    std::vector<std::byte> out(count);
    for (u64 k = 0; k < count; ++k) out[k] = static_cast<std::byte>((k * 31 + seed) % 251);
    return out;
}

/// Receives frames into its own memory.
struct taker {
    incoming_frames in;
    std::vector<std::byte> header, room;
    bool has_room = true;
    int asked = 0, whole = 0, broken = 0;

    std::optional<incoming_frames::place> place(std::span<const std::byte> front, u64 bytes) {
        return in.next(front, bytes, [&](std::span<const std::byte> h, u64 all) {
            ++asked;
            header.assign(h.begin(), h.end());
            room.assign(all + 1, std::byte{});
            return std::make_shared<arriving_frame>(has_room ? room.data() : nullptr, all,
                                                    [this](bool is) { ++(is ? whole : broken); });
        });
    }
    /// Returns false if the piece can't be accepted now.
    bool take(std::span<const std::byte> front, std::span<const std::byte> data) {
        const auto to = place(front, data.size());
        if (!to) return false;
        if (to->to != nullptr && !data.empty()) std::memcpy(to->to, data.data(), data.size());
        to->of->got(data.size());
        return true;
    }
    bool take(const outgoing_frames::piece& p) { return take(p.front, p.data); }
};

std::shared_ptr<outgoing_frame> frame_of(
    const std::vector<std::byte>& header, const std::vector<std::byte>& data,
    std::function<void()> over = [] {}) {
    return std::make_shared<outgoing_frame>(header, data.data(), data.size(), std::move(over));
}

/// The pieces of one frame of slightly more than three pieces.
struct in_pieces {
    std::vector<std::byte> data = bytes_of(3 * piece + 7, 1);
    outgoing_frames out;
    std::vector<outgoing_frames::piece> all;
    in_pieces() {
        out.add(frame_of({std::byte{5}}, data));
        while (auto p = out.next(piece)) all.push_back(std::move(*p));
    }
};

}  // namespace

TEST_CASE("a frame of any size is reassembled from its pieces as sent, after its header") {
    for (const u64 size : {u64{0}, u64{1}, piece - 1, piece, piece + 1, 5 * piece}) {
        CAPTURE(size);
        const auto header = bytes_of(40, 9), first = bytes_of(size, 2), second = bytes_of(size, 3);
        outgoing_frames out;
        out.add(frame_of(header, first));
        out.add(frame_of(header, second));
        taker t;
        u64 most = piece;
        int seen = 0;
        while (const auto p = out.next(most)) {
            CHECK(p->data.size() <= most);
            most = most % 7 * 300 + 100;  // they need not be of equal size
            REQUIRE(t.take(*p));
            if (t.whole == seen) continue;
            t.room.pop_back();
            CHECK(t.header == header);
            CHECK(t.room == (seen == 0 ? first : second));
            ++seen;
        }
        CHECK(t.whole == 2);
        CHECK(t.broken == 0);
        CHECK(t.asked == 2);
    }
}

TEST_CASE("a frame is finished only when none of its pieces is held") {
    const auto data = bytes_of(2 * piece, 4);
    int over = 0;
    outgoing_frames out;
    out.add(frame_of({}, data, [&] { ++over; }));
    auto first = out.next(piece), second = out.next(piece);
    CHECK_FALSE(out.next(piece));
    first.reset();
    CHECK(over == 0);
    second.reset();
    CHECK(over == 1);
    out.add(frame_of({}, data, [&] { ++over; }));
    out = {};  // the connection has ended before the frame began
    CHECK(over == 2);
}

TEST_CASE("a frame is complete with its last piece, in any order, and intact if all arrived") {
    const in_pieces f;
    taker t;
    std::vector<std::optional<incoming_frames::place>> under_way;
    for (const auto& p : f.all) under_way.push_back(t.place(p.front, p.data.size()));
    CHECK(t.whole + t.broken == 0);
    for (const std::size_t k : {2, 0, 3, 1}) {
        REQUIRE(under_way[k]);
        CHECK(t.whole == 0);
        under_way[k]->of->got(f.all[k].data.size());
        under_way[k].reset();
    }
    CHECK(t.whole == 1);
    under_way.clear();
    for (const auto& p : f.all) under_way.push_back(t.place(p.front, p.data.size()));
    under_way[0]->of->got(f.all[0].data.size());  // the other pieces' bytes never come
    CHECK(t.broken == 0);
    under_way.clear();
    CHECK(t.broken == 1);
    CHECK(t.whole == 1);
}

TEST_CASE("a frame whose connection ends is reported broken after its last piece in flight") {
    const in_pieces f;
    taker t;
    auto under_way = t.place(f.all[0].front, f.all[0].data.size());
    t.in = {};
    CHECK(t.broken == 0);  // its memory is still written to
    under_way.reset();
    CHECK(t.broken == 1);
}

TEST_CASE("a frame without room is received to its end, unreported, and the next is accepted") {
    const in_pieces f;
    taker t;
    t.has_room = false;
    for (const auto& p : f.all) CHECK(t.take(p));
    CHECK(t.whole + t.broken == 0);
    t.has_room = true;
    CHECK(t.take(f.all[0]));
    CHECK(t.asked == 2);
}

TEST_CASE("missing, duplicate, overlong and headless pieces are discarded") {
    const in_pieces f;
    {
        taker t;
        CHECK_FALSE(t.take(f.all[1]));
        CHECK(t.asked == 0);
    }
    {
        taker t;
        CHECK(t.take(f.all[0]));
        CHECK_FALSE(t.take(f.all[2]));
        CHECK_FALSE(t.take(f.all[0]));
    }
    {
        taker t;
        const auto longer = bytes_of(f.data.size() + 1, 1);
        CHECK_FALSE(t.take(f.all[0].front, longer));
        CHECK(t.asked == 0);
        CHECK_FALSE(t.take(f.all[0].front, {}));
        CHECK_FALSE(t.take(std::span(f.all[0].front).first(9), f.all[0].data));
    }
    {
        taker t;
        CHECK(t.take(f.all[0]));
        auto other = f.all[1].front;
        other[8] ^= std::byte{1};  // from a frame of another size
        CHECK_FALSE(t.take(other, f.all[1].data));
    }
}

TEST_CASE("pieces are small until their connection is seen to be fast, and again when it is slow") {
    constexpr u64 ms = 1'000'000;
    pace p;
    CHECK(p.piece_bytes() == least_piece);
    u64 now = 5 * ms;
    const auto go = [&](u64 bytes, u64 takes_ns) {
        p.begun(now);
        CHECK(p.under_way() == 1);
        now += takes_ns;
        p.over(bytes, now);
        CHECK(p.under_way() == 0);
    };
    go(least_piece, ms);  // into a socket's buffer: no information about the network
    CHECK(p.piece_bytes() == least_piece);
    for (int k = 0; k < 20; ++k) go(4 * most_piece, 4 * ms);  // 1 GB/s
    CHECK(p.piece_bytes() == most_piece);
    now += 10'000 * ms;  // nothing to send
    go(4 * most_piece, 4 * ms);
    CHECK(p.piece_bytes() == most_piece);
    for (int k = 0; k < 40; ++k) go(25 * 1000, 10 * ms);  // 20 Mbit/s
    CHECK(p.piece_bytes() == least_piece);
    for (int k = 0; k < 40; ++k) go(125 * 1000, 10 * ms);  // 100 Mbit/s: as much as 20 ms carry
    CHECK(p.piece_bytes() > 249'000);
    CHECK(p.piece_bytes() < 251'000);
    pace few(least_piece);  // of a host with few cores
    few.begun(now);
    few.over(4 * most_piece, now + 4 * ms);
    CHECK(few.piece_bytes() == least_piece);
}
