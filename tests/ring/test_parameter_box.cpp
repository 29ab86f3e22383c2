// Which set of parameters a frame has: a function of only its number and the changes, independent of which
// processes query it, in which order, and which of them die.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "core/crash_point.hpp"
#include "ring/parameter_box.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::ring;

namespace {

constexpr u64 first_frame = 1000;
using words = std::array<u64, shm::max_parameter_bytes / sizeof(u64)>;

words all_of(u64 value) {
    words w;
    w.fill(value);
    return w;
}

/// A box whose set number k has k in every word.
struct run_box {
    std::unique_ptr<shm::parameter_box> box = std::make_unique<shm::parameter_box>();
    u64 oldest = first_frame;
    u64 changes = 0;

    run_box() {
        const words w = all_of(0);
        initialise_parameters(*box, std::as_bytes(std::span(w)), first_frame);
    }
    std::optional<u64> change() {
        const words w = all_of(changes + 1);
        const std::optional<u64> from = publish(*box, std::as_bytes(std::span(w)), oldest);
        if (from) ++changes;
        return from;
    }
    /// The number of a frame's set.
    u64 ask(u64 ring_sequence) const { return parameters_for(*box, ring_sequence)->number; }
    u64 horizon() const { return parameter_state::of(load(box->state)).horizon; }
};

bool is_whole(const shm::parameter_set& s) {
    const words w = all_of(s.number);
    return std::memcmp(w.data(), s.value, sizeof s.value) == 0;
}

/// Calls `what` the first time that this thread passes `point`.
struct box_once_at {
    template <typename F>
    box_once_at(crash_point point, F what) {
        set_crash_hook([point, what, done = false](crash_point now) mutable {
            if (now != point || done) return;
            done = true;
            what();
        });
    }
    ~box_once_at() { set_crash_hook({}); }
    box_once_at(const box_once_at&) = delete;
    box_once_at& operator=(const box_once_at&) = delete;
};

}  // namespace

TEST_CASE("a parameter change counts from the first number without a set") {
    run_box r;
    CHECK(r.ask(first_frame) == 0);
    CHECK(r.ask(first_frame + 4) == 0);  // a source at another position of the window
    CHECK(r.change() == first_frame + 5);
    CHECK(r.ask(first_frame + 3) == 0);  // no source has leased it, but a later frame is decided
    CHECK(r.ask(first_frame + 5) == 1);
    CHECK(r.change() == first_frame + 6);
    CHECK(r.change() == first_frame + 6);  // the last of several changes is the one that counts
    CHECK(r.ask(first_frame + 6) == 3);
    CHECK(r.ask(first_frame + 40) == 3);
    CHECK(newest_parameters(*r.box).number == 3);
    CHECK(newest_parameters(*r.box).from == first_frame + 6);
}

TEST_CASE("a change before the first frame counts from the first frame on") {
    run_box r;
    CHECK(r.change() == first_frame);
    CHECK(r.ask(first_frame) == 1);
}

TEST_CASE("a set is whole, and no more of it than it has bytes is copied") {
    run_box r;
    CHECK(is_whole(*parameters_for(*r.box, first_frame)));
    (void)r.change();
    CHECK(is_whole(*parameters_for(*r.box, first_frame + 1)));
    shm::parameter_box small{};
    const std::array<std::byte, 3> values{std::byte{1}, std::byte{2}, std::byte{3}};
    initialise_parameters(small, values, 0, 70);
    CHECK(small.bytes == 3);
    CHECK(parameters_for(small, 0)->number == 70);
    CHECK(parameters_for(small, 0)->value[2] == std::byte{3});
    CHECK(parameters_for(small, 0)->value[3] == std::byte{0});
    CHECK(publish(small, values, 0) == 1);
    CHECK(parameters_for(small, 1)->number == 71);
}

TEST_CASE("a repeated frame has the same parameters after any number of changes in between") {
    run_box r;
    for (u64 n = 0; n < 30; ++n) {
        CHECK(r.ask(first_frame + n) == n);
        CHECK(r.change() == first_frame + n + 1);
    }
    while (r.change()) {
    }
    for (u64 n = 30; n-- > 0;) CHECK(r.ask(first_frame + n) == n);
    CHECK(r.ask(first_frame + 30) == r.changes);
}

TEST_CASE("sources that ask out of order get sets that are a function of the number") {
    run_box r;
    std::vector<u64> set_of(48);
    u64 asked = 0;
    // Two sources alternate, one from the first frame on and one from the last frame back; a change is made
    // after every third query.
    for (u64 k = 0; k < 24; ++k) {
        for (const u64 n : {k, 47 - k}) {
            set_of[n] = r.ask(first_frame + n);
            if (++asked % 3 == 0) (void)r.change();
        }
    }
    CHECK(std::is_sorted(set_of.begin(), set_of.end()));
    for (u64 n = 0; n < 48; ++n) CHECK(r.ask(first_frame + n) == set_of[n]);
    CHECK(r.changes == 16);
    CHECK(r.ask(first_frame + 48) == 16);
}

TEST_CASE("changes are accepted while sets are free, and again when the oldest frame is done") {
    run_box r;
    CHECK(r.ask(first_frame) == 0);
    for (u64 k = 1; k <= 62; ++k) REQUIRE(r.change() == first_frame + 1);
    CHECK_FALSE(r.change());
    CHECK(r.ask(first_frame) == 0);
    CHECK(r.ask(first_frame + 1) == 62);
    CHECK_FALSE(r.change());
    ++r.oldest;
    CHECK(r.change() == first_frame + 2);
    CHECK(r.ask(first_frame + 1) == 62);
    CHECK(r.ask(first_frame + 2) == 63);
}

TEST_CASE("before anything was asked any number of changes is taken") {
    run_box r;
    for (int k = 0; k < 300; ++k) REQUIRE(r.change() == first_frame);
    CHECK(r.ask(first_frame) == 300);
}

TEST_CASE("frames keep their sets while the oldest frame moves, within a window of the sets") {
    run_box r;
    std::vector<u64> set_of;
    for (u64 n = 0; n < 2000; ++n) {
        set_of.push_back(r.ask(first_frame + n));
        r.oldest = first_frame + (n < 47 ? 0 : n - 47);
        REQUIRE(r.change() == first_frame + n + 1);
        for (u64 m = r.oldest - first_frame; m <= n; m += 7) REQUIRE(r.ask(first_frame + m) == set_of[m]);
    }
}

TEST_CASE("counters of parameter sets come round") {
    run_box r;
    // Every slot of the box holds the first set, so the count may begin at any value.
    r.box->state.store(parameter_state{(1U << 23U) - 40, first_frame}.pack());
    for (u64 n = 0; n < 90; ++n) {
        REQUIRE(r.ask(first_frame + n) == n);
        r.oldest = first_frame + (n < 47 ? 0 : n - 47);
        REQUIRE(r.change() == first_frame + n + 1);
        for (u64 m = r.oldest - first_frame; m <= n; ++m) REQUIRE(r.ask(first_frame + m) == m);
    }
    CHECK(parameter_state::of(load(r.box->state)) == parameter_state{50, first_frame + 90});
    CHECK(newest_parameters(*r.box).number == 90);
}

TEST_CASE("a state survives its word, at both ends of its fields") {
    for (const parameter_state s :
         {parameter_state{}, parameter_state{1, 0}, parameter_state{(1U << 23U) - 1, (u64{1} << 40U) - 1}})
        CHECK(parameter_state::of(s.pack()) == s);
    CHECK(parameter_state{1U << 23U, 7}.pack() == parameter_state{0, 7}.pack());
}

#ifndef CAROUSEL_NO_CRASH_POINTS

TEST_CASE("a change whose author dies before it applies has no effect and is replaced by the next") {
    run_box r;
    (void)r.change();
    CHECK(r.ask(first_frame) == 1);
    // The dead process leaves the block as it was at this moment.
    run_box left;
    {
        const box_once_at death(crash_point::parameters_filled, [&] {
            std::memcpy(static_cast<void*>(left.box.get()), static_cast<const void*>(r.box.get()),
                        sizeof *left.box);
        });
        (void)r.change();
    }
    CHECK(newest_parameters(*left.box).number == 1);
    CHECK(left.ask(first_frame) == 1);
    CHECK(left.ask(first_frame + 1) == 1);
    CHECK(left.ask(first_frame + 47) == 1);
    left.changes = 1;
    CHECK(left.change() == first_frame + 48);
    CHECK(left.ask(first_frame + 48) == 2);
    CHECK(is_whole(*parameters_for(*left.box, first_frame + 48)));
}

TEST_CASE("a number set during a change keeps the old set, and the change counts after it") {
    run_box r;
    const box_once_at meanwhile(crash_point::parameters_filled, [&] { CHECK(r.ask(first_frame + 9) == 0); });
    CHECK(r.change() == first_frame + 10);
    CHECK(r.ask(first_frame + 9) == 0);
    CHECK(r.ask(first_frame + 10) == 1);
}

TEST_CASE("a change between a number's choice and its frame's header is not for that frame") {
    run_box r;
    const box_once_at meanwhile(crash_point::parameters_chosen,
                                [&] { CHECK(r.change() == first_frame + 3); });
    CHECK(r.ask(first_frame + 2) == 0);
    CHECK(r.horizon() == first_frame + 3);
    CHECK(r.ask(first_frame + 3) == 1);
}

#endif

namespace {

constexpr u64 frames = 12000, window = 48, held_at_once = 8;

/// Two sources and a supervisor as threads. Sets are plain memory. The room rule keeps every read of a set
/// apart from its filling: a set is filled again only when `oldest`, read from the tail, has passed every
/// frame that may read it; a frame is passed (release) after its last read, and the tail is read (acquire)
/// before the filling. Under ThreadSanitizer a gap in this shows as a data race.
struct race {
    run_box r;
    std::atomic<u64> next{0}, tail{0}, reads{0};
    std::vector<std::atomic<u32>> done = std::vector<std::atomic<u32>>(frames);
    std::vector<u64> set_of =
        std::vector<u64>(frames);  ///< each written by the thread that leased the number
    std::vector<u64> from;         ///< first frame of change k + 1
    std::atomic<u64> torn{0}, other{0};

    /// The next number, or none beyond the window: the leased frames are finished first.
    u64 lease() {
        u64 n = next.load();
        while (n < frames && n < tail.load(std::memory_order_acquire) + window)
            if (next.compare_exchange_weak(n, n + 1)) return n;
        return ~u64{0};
    }
    void source() {
        for (u64 batch = 0;; ++batch) {
            // On a busy machine the supervisor would otherwise run first after the last frame.
            const u64 seen = reads.load();
            while (batch % 4 == 0 && reads.load() == seen && tail.load() < frames) std::this_thread::yield();
            std::array<u64, held_at_once> held{};
            u64 many = 0;
            for (u64 n = 0; many < held_at_once && (n = lease()) < frames; held[many++] = n) {
                const shm::parameter_set& s = *parameters_for(*r.box, first_frame + n);
                set_of[n] = s.number;
                if (!is_whole(s)) torn.fetch_add(1);
            }
            if (many == 0 && next.load() >= frames) return;
            for (u64 k = many; k-- > 0;) {  // late, as a successor would
                const shm::parameter_set& s = *parameters_for(*r.box, first_frame + held[k]);
                if (s.number != set_of[held[k]]) other.fetch_add(1);
                if (!is_whole(s)) torn.fetch_add(1);
            }
            // In one total order (seq_cst) with the reads after it: of two threads that finish neighbouring
            // frames at once at least one sees both.
            for (u64 k = 0; k < many; ++k) done[held[k]].store(1);
            for (u64 t = tail.load(); t < frames && done[t].load() == 1;) {
                if (tail.compare_exchange_strong(t, t + 1, std::memory_order_acq_rel)) ++t;
            }
        }
    }
    void supervisor() {
        for (u64 t = 0; t < frames; t = tail.load(std::memory_order_acquire)) {
            r.oldest = first_frame + t;
            const std::optional<u64> at = r.change();
            reads.fetch_add(1);
            if (at) from.push_back(*at);
            if (!at || from.size() % 4 == 0) std::this_thread::yield();
        }
    }
};

}  // namespace

TEST_CASE("each number's set is that of the changes' answers, with concurrent sources") {
    race x;
    std::thread one([&] { x.source(); }), two([&] { x.source(); }), boss([&] { x.supervisor(); });
    one.join();
    two.join();
    boss.join();
    CHECK(x.torn == 0);
    CHECK(x.other == 0);
    CHECK(x.from.size() > 100);
    CHECK(std::is_sorted(x.from.begin(), x.from.end()));
    u64 wrong = 0;
    for (u64 n = 0; n < frames; ++n) {
        const auto next_change = std::upper_bound(x.from.begin(), x.from.end(), first_frame + n);
        wrong += x.set_of[n] != static_cast<u64>(next_change - x.from.begin()) ? 1 : 0;
    }
    CHECK(wrong == 0);
}
