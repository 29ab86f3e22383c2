// Generations, laps, versions, tags and epochs wrap around: every rule holds across the wrap.
#include "ring/helper.hpp"
#include "tests/ring/seated.hpp"

using namespace carousel;
using namespace carousel::ring;
using namespace carousel::test;

TEST_CASE("frames pass in order and are repeated after deaths while all counters wrap around") {
    plan p = chain();
    p.first = counters_near_overflow;
    bench b(p);
    seated source = b.sit(0), sink = b.sit(1);
    for (u64 n = 0; n < 200; ++n) {
        CAPTURE(n);
        if (n % 10 == 3) {  // with a slot filled and a number leased
            job j;
            REQUIRE(source.w->begin(j, 0) == outcome::ok);
            CHECK(j.ring_sequence == n);
            source = b.die(source, blame::none, 1);
        }
        REQUIRE(pass(*source.w) == n);
        if (n % 10 == 7) {
            job j;
            REQUIRE(sink.w->begin(j, 0) == outcome::ok);
            CHECK(j.ring_sequence == n);
            sink = b.die(sink, blame::none, 1);
        }
        REQUIRE(pass(*sink.w) == n);
    }
    CHECK(source.incarnation.epoch < 100);  // they have wrapped around
    CHECK(source.incarnation.epoch > 0);
    CHECK(lease_word::of(load(b.c->source[0].sequence_lease[0])).generation < 100);
    CHECK(slot_word::of(load(b.c->link[0].slot[0])).generation < 300);
    CHECK(job_word::of(load(b.c->job[0])).version < 300);
    begin_stop(*b.c);
    job j;
    CHECK(source.w->begin(j, 0) == outcome::stopping);
    REQUIRE(try_finish_stop(*b.c));
    CHECK(b.c->end.load() == 200);
}

namespace {
/// Events as the CPU backend's: complete when the slot's word is the job's tag.
class tag_import final : public device::imported_event {
public:
    explicit tag_import(const std::atomic<u64>* at) : at_(at) {}
    bool done(u64 tag) noexcept override { return load(*at_) == tag; }

private:
    const std::atomic<u64>* at_;
};
class tag_context final : public device::context {
public:
    device::device_kind kind() const noexcept override { return device::device_kind::cpu; }
    std::string description() const override { return "tags"; }
    std::unique_ptr<device::queue> make_queue() override { return nullptr; }
    std::unique_ptr<device::event> make_event(std::atomic<u64>*) override { return nullptr; }
    std::unique_ptr<device::imported_event> import_event(device::device_kind, const device::event::handle&,
                                                         const std::atomic<u64>* at) override {
        return std::make_unique<tag_import>(at);
    }
    std::unique_ptr<device::mapping> map(const device::memory_handle&, device::access) override {
        return nullptr;
    }
    std::unique_ptr<device::mapping> allocate(u64) override { return nullptr; }
    std::unique_ptr<device::mapping> allocate_host(u64) override { return nullptr; }
};
}  // namespace

TEST_CASE("a slot that rested while its job's tag wrapped around commits no unfinished work") {
    plan p = chain();
    p.stages[0].in_flight = 1;
    bench b(p);
    const seated source = b.sit(0), sink = b.sit(1);
    b.c->entry[source.incarnation.entry].events_published.store(1);
    tag_context context;
    helper help(*b.c, context);
    job j;
    REQUIRE(source.w->begin(j, 0) == outcome::ok);
    shm::word& event = b.c->link[0].event_tag[j.output[0].index];
    event.store(source.w->tag(j));  // its work is complete
    REQUIRE(source.w->submit(j));
    CHECK(help.help(sink.w->input(0)) == 1);
    REQUIRE(source.w->commit(j));
    REQUIRE(source.w->complete(j));
    REQUIRE(pass(*sink.w) == 0);
    // 2^28 frames later, without any frame in this slot: every job word of the seat is at the version that
    // has the same tag.
    for (u32 k = b.c->seat[0].first_job; k < b.c->seat[0].first_job + b.c->seat[0].jobs; ++k)
        b.c->job[k].store(
            job_word{j.version + (u64{1} << 28U), source.incarnation.epoch, job_state::idle}.pack());
    job later;
    REQUIRE(source.w->begin(later, 0) == outcome::ok);
    REQUIRE(later.index == j.index);
    REQUIRE(later.output[0].index == j.output[0].index);
    REQUIRE(source.w->tag(later) == source.w->tag(j));
    REQUIRE(source.w->submit(later));  // its event has not fired
    CHECK(help.help(sink.w->input(0)) == 0);
    event.store(source.w->tag(later));
    CHECK(help.help(sink.w->input(0)) == 1);
}
