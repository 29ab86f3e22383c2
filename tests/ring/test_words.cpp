#include "ring/words.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::ring;

TEST_CASE("every word unpacks to its packed values, at the limits of every field") {
    for (const u64 version : {u64{0}, u64{1}, (u64{1} << 36U) - 1})
        for (const u32 epoch : {0U, 1U, (1U << 24U) - 1}) {
            const job_word w{version, epoch, job_state::aborted};
            CHECK(job_word::of(w.pack()) == w);
        }
    const u32 top24 = (1U << 24U) - 1;
    const slot_word s{top24, 4095, top24, slot_state::quarantined};
    CHECK(slot_word::of(s.pack()) == s);
    const lease_word l{top24, 511, top24, 15, lease_state::skipped};
    CHECK(lease_word::of(l.pack()) == l);
    const entry_word e{4'194'304, top24, 63, entry_state::fenced};
    CHECK(entry_word::of(e.pack()) == e);
    CHECK(seat_word::of(seat_word{top24, shm::none}.pack()) == seat_word{top24, shm::none});
    CHECK(seat_word::of(seat_word{3, 191}.pack()) == seat_word{3, 191});
}

TEST_CASE("a stale generation reads as a wait without attempts") {
    const lease_word old{7, 12, 99, 3, lease_state::done};
    CHECK(old.seen_at(7) == old);
    CHECK(old.seen_at(8) == lease_word{8, 0, 0, 0, lease_state::wait});
    CHECK((lease_word{(1U << 24U) - 1, 1, 1, 0, lease_state::done}.seen_at(0).state) == lease_state::wait);
}

TEST_CASE("a newer generation is never a wait: the reader has an outdated slot word") {
    CHECK((lease_word{8, 12, 99, 0, lease_state::done}.seen_at(7).state) == lease_state::skipped);
    CHECK((lease_word{0, 12, 99, 0, lease_state::leased}.seen_at((1U << 24U) - 1).state) ==
          lease_state::skipped);
}

TEST_CASE("a freed slot is a generation further, and generations come round") {
    CHECK(slot_word{5, 3, 8, slot_state::ready}.freed() == slot_word{6, 0, 0, slot_state::free});
    CHECK(slot_word{(1U << 24U) - 1, 0, 0, slot_state::ready}.freed().generation == 0);
}

TEST_CASE("a tag contains job, version and epoch: tags that differ in one of them are different") {
    CHECK(event_tag(1, 2, 3) != event_tag(2, 2, 3));
    CHECK(event_tag(1, 2, 3) != event_tag(1, 3, 3));
    CHECK(event_tag(1, 2, 3) != event_tag(1, 2, 4));
}

TEST_CASE("epochs wrap around past 0, which has no owner") {
    CHECK(next_epoch(0) == 1);
    CHECK(next_epoch(7) == 8);
    CHECK(next_epoch((1U << 24U) - 1) == 1);
}

TEST_CASE("laps come round, and a version's kept part and its tag with it") {
    shm::source_block q{};
    CHECK(lap_of(q, 8 * u64{(1U << 24U) - 1} + 7, 8) == (1U << 24U) - 1);
    CHECK(lap_of(q, 8 * u64{1U << 24U}, 8) == 0);
    q.first_lap = (1U << 24U) - 1;
    CHECK(lap_of(q, 7, 8) == (1U << 24U) - 1);
    CHECK(lap_of(q, 8, 8) == 0);
    const u64 last = (u64{1} << 36U) - 1;
    CHECK(job_word::of(job_word{last + 1, 3, job_state::idle}.pack()) == job_word{0, 3, job_state::idle});
    CHECK((slot_word{1, 5, static_cast<u32>(last & version_mask), slot_state::fill}.tagged(5, last)));
    CHECK_FALSE(
        (slot_word{1, 5, static_cast<u32>(last & version_mask), slot_state::fill}.tagged(5, last + 1)));
}
