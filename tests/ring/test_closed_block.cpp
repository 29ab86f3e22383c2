// Every function of the ring that writes into the control block works while the block is closed to a stage's
// own code: by a protection key where the CPU has keys, and by its emulation everywhere. A function without
// its block_open ends its process by SIGSEGV, and so does a plain write. Each case runs in its own child,
// since a process guards one block once.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <thread>

#include "core/clock.hpp"
#include "device/cpu/context.hpp"
#include "frame/metadata.hpp"
#include "ring/helper.hpp"
#include "ring/latest.hpp"
#include "ring/own_pages.hpp"
#include "ring/parameter_box.hpp"
#include "ring/stream_end.hpp"
#include "ring/turn.hpp"
#include "shm/doorbell.hpp"
#include "telemetry/busy_time.hpp"
#include "tests/ring/seated.hpp"
#include "tests/support/in_child.hpp"
#include "tests/support/skip.hpp"

namespace {

using namespace carousel;
using namespace carousel::ring;
using namespace carousel::test;
using shm::block_guard;

/// source -> middle -> sink over both of the middle's rings, with a latest reader's group and an asset of the
/// source, all in this process.
struct closed_run {
    bench b{plan_of()};
    seated source = b.sit(0), middle = b.sit(1), sink = b.sit(2);

    static plan plan_of() {
        plan p = chain_of_three();
        p.stages[0].ends = true;
        p.stages[1].more = {{"middle.depth", 0, 256}};
        p.stages[2].inputs = {1, 1};
        p.stages[2].input_outputs = {0, 1};
        return p;
    }
    /// The pages that all three write, as one list: the functions are under test, not the ownership of pages.
    void close(block_guard how) {
        page_list all;
        for (const seated* s : {&source, &middle, &sink}) {
            const page_list own = pages_of(*b.c, s->incarnation, 0);
            for (const shm::page_range& r : own.pages())
                all.add(*b.c, reinterpret_cast<const std::byte*>(b.c.get()) + r.from, r.bytes);
        }
        need(shm::guard_block(*b.c, all.pages(), how) == how);
    }
};

void pass_closed(worker& w) {
    job j;
    need(w.begin(j, 0) == outcome::ok);
    w.start_clock(j);
    need(w.submit(j) && w.commit(j) && w.complete(j));
}

void frames(closed_run& r) {
    for (int k = 0; k < 100; ++k) {
        pass_closed(*r.source.w);
        pass_closed(*r.middle.w);
        pass_closed(*r.sink.w);
    }
    need(r.b.c->link[1].tail.load() == 100);
    need(r.b.c->link[2].tail.load() == 100);
}

/// A check that changes nothing opens nothing; a call that writes makes all its writes in one scope.
void count_scopes(closed_run& r) {
    const auto scopes = [](auto&& work) {
        const u64 before = shm::scopes_of_this_thread();
        work();
        return shm::scopes_of_this_thread() - before;
    };
    need(scopes([&] { need(!r.middle.w->output(0).sweep()); }) == 0);
    job j;
    need(scopes([&] { need(r.middle.w->peek(0) == outcome::empty); }) == 0);
    need(scopes([&] { need(r.source.w->begin(j, 0) == outcome::ok); }) == 1);
    need(scopes([&] { need(r.source.w->submit(j)); }) == 1);
    need(scopes([&] { need(r.source.w->commit(j)); }) == 1);
    need(scopes([&] { need(r.source.w->complete(j)); }) == 1);
    pass_closed(*r.middle.w);
    need(r.b.c->link[0].tail.load() == 1);
    shm::block_open_late late;
    need(scopes([&] { late.now(), late.now(); }) == 1);
    shm::block_open_between between;
    need(scopes([&] { between.leave_for([] {}); }) == 0);  // within the scope above
}

/// All groups are done with the frame, but it has not been swept: what a reader that died left undone.
void frees(closed_run& r) {
    need(r.source.w->output(0).sweep());
    need(r.b.c->link[0].tail.load() == 1);
    need(slot_word::of(load(r.b.c->link[0].slot[0])).state == slot_state::free);
}
void frees_before(closed_run& r) {
    (void)pass(*r.source.w);
    const u64 raw = load(r.b.c->link[0].group[0][0]);
    lease_word w = lease_word::of(raw);
    w.generation = r.b.slot(0, 0).generation, w.state = lease_state::done;
    r.b.c->link[0].group[0][0].store(w.pack());
}
void frees_only(closed_run& r) {
    frees_before(r);
    r.b.c->link[0].tail.store(1);  // the tail has advanced already
}
/// A frame that waits in a closed group is skipped.
void skips_before(closed_run& r) {
    (void)pass(*r.source.w);
    r.b.c->link[0].group_state[0].store(group_word{0, 0, group_state::closed}.pack());
}

void headers(closed_run& r) {
    job j;
    need(r.source.w->begin(j, 0) == outcome::ok);
    shm::frame_header& h = r.source.w->output(0).header_to_write(j.output[0].index);
    need(set_metadata(h.metadata, h.metadata_bytes, "a", u64{1}) == metadata_change::done);
    need(set_metadata(h.metadata, h.metadata_bytes, "b", f64{2}) == metadata_change::done);
    need(erase_metadata(h.metadata, h.metadata_bytes, "a"));
    frame_format f;
    f.planes.push_back({"points", element::f32_, {4, 3}});
    const u64 extents[] = {2, 3};
    set_used(h.used, f, "points", extents);
    need(r.source.w->submit(j) && r.source.w->commit(j) && r.source.w->complete(j));
    pass_closed(*r.middle.w);  // forwards the metadata
    need(r.sink.w->begin(j, 0) == outcome::ok);
    need(find_metadata(metadata_of(r.sink.w->input(0).header(j.input[0].index)), "b").has_value());
}

void help(closed_run& r) {
    job j;
    need(r.source.w->begin(j, 0) == outcome::ok);
    const auto device = device::open(device::device_id{}, 1);
    const auto queue = device->make_queue();
    const auto event = device->make_event(&r.b.c->link[0].event_tag[j.output[0].index]);
    event->record(*queue, r.source.w->tag(j));  // the queue's thread writes the tag
    event->wait();
    need(r.source.w->submit(j));
    helper h(*r.b.c, *device);
    link_ref input(*r.b.c, 0);
    need(h.help(input) == 1);
    need(r.source.w->commit(j) && r.source.w->complete(j));
}

void latest(closed_run& r) {
    auto reader = std::make_unique<latest_reader>(*r.b.c, 0, shm::max_incarnations);
    need(reader->joined());
    pass_closed(*r.source.w);
    need(bool(reader->acquire()));
    need(reader->release());
    pass_closed(*r.source.w);
    need(bool(reader->acquire()));
    need(revoke_stale_leases(*r.b.c, 0, now_ns() + 10 * ns_per_s));
    need(!reader->release());
    reader.reset();
}

void turns(closed_run& r) {
    turn one(*r.b.c, 0, 0), two(*r.b.c, 0, 1);
    need(one.take(1'000'000, 100) == turn::taking::yes);
    need(two.take(1'000'000, 100) == turn::taking::no);
    need(one.renew(1'000'000, 100));
    one.pass_on(1'000'000);
    need(two.take(1'000'000, 100) == turn::taking::yes);
    need(one.take(1'000'000, 100) == turn::taking::no);
    one.cancel_wait();
    two.pass_on(1'000'000);
}

void doorbells(closed_run& r) {
    shm::doorbell_word& bell = r.b.c->stage[1].doorbell;
    const u32 seen = shm::ticket(bell);
    need(!shm::wait(bell, seen, 1'000'000));  // sets the sleep bit; the kernel reads a closed page
    shm::ring(bell);
    need(shm::wait(bell, seen, 1'000'000));
    link_ref(*r.b.c, 0).ring();
}

void ends(closed_run& r) {
    job j;
    need(r.source.w->begin(j, 0) == outcome::ok);
    need(r.source.w->end_stream(j) == outcome::empty);
    need(claimed_end(*r.b.c).has_value());
}

void answers_stopping(closed_run& r) {
    need(r.source.w->await_due() == outcome::stopping);
    need(r.b.c->entry[r.source.incarnation.entry].end_acknowledged.load() == shm::acknowledged_mark);
}

void gives_back(closed_run& r) {
    job j;
    need(r.source.w->begin(j, 0) == outcome::ok);
    need(r.source.w->give_back(j));
}

void incarnation_words(closed_run& r) {
    shm::incarnation& e = r.b.c->entry[r.source.incarnation.entry];
    telemetry::begin_busy(e, 1);
    telemetry::count_busy(e, r.b.c->stage[0].counters, 5, true);
    doom(*r.b.c, r.source.incarnation.entry);
}

void assets(closed_run& r) {
    need(begin_loading(*r.b.c, 0, r.source.incarnation));
    need(finish_loading(*r.b.c, 0, r.source.incarnation));
}

struct entry_point {
    const char* name;
    void (*work)(closed_run&);
    void (*before)(closed_run&) = [](closed_run&) {};
};
constexpr entry_point entry_points[] = {
    {"frames from a source to a sink", frames},
    {"scopes are counted", count_scopes},
    {"a tail is moved and a slot freed", frees, frees_before},
    {"a slot is freed behind the tail", frees, frees_only},
    {"a closed group is passed by", frees, skips_before},
    {"what a frame carries", headers},
    {"help, and an event's tag", help,
     [](closed_run& r) { r.b.c->entry[r.source.incarnation.entry].events_published.store(1); }},
    {"a latest reader", latest},
    {"turns", turns},
    {"doorbells", doorbells},
    {"a stream's end", ends},
    {"the answer to STOPPING", answers_stopping, [](closed_run& r) { r.b.c->end.store(end_stopping); }},
    {"a frame that doesn't exist", gives_back},
    {"what a life says of itself", incarnation_words},
    {"an asset", assets,
     [](closed_run& r) {
         r.b.c->assets = 1;
         r.b.c->asset[0].maker_stage = 0;
     }},
};

void check_entry_points(block_guard how) {
    for (const entry_point& e : entry_points) {
        CAPTURE(e.name);
        CHECK(in_child([&] {
                  closed_run r;
                  e.before(r);
                  r.close(how);
                  e.work(r);
              }) == went_through);
    }
}

void check_wild_writes(block_guard how) {
    const auto write_to = [&](u64 (*place)(closed_run&)) {
        return in_child([&] {
            closed_run r;
            r.close(how);
            pass_closed(*r.source.w);
            reinterpret_cast<volatile u64*>(r.b.c.get())[place(r) / 8] = ~u64{0};
        });
    };
    // the head, a slot's word, the own entry, a header, an unowned page
    CHECK(write_to([](closed_run&) { return u64{64}; }) == faulted);
    CHECK(write_to([](closed_run&) {
              return u64{offsetof(shm::control_block, link) + offsetof(shm::link_block, slot)};
          }) == faulted);
    CHECK(write_to([](closed_run& r) {
              return u64{offsetof(shm::control_block, entry) +
                         r.middle.incarnation.entry * sizeof(shm::incarnation)};
          }) == faulted);
    CHECK(write_to([](closed_run&) { return u64{offsetof(shm::control_block, frames)}; }) == faulted);
    CHECK(write_to([](closed_run&) {
              return u64{offsetof(shm::control_block, turn) + 9 * sizeof(shm::turn_block)};
          }) == faulted);
}

}  // namespace

TEST_CASE("every function of the ring writes into a block that a protection key closes") {
    if (!shm::has_protection_keys()) CAROUSEL_SKIP(shm::why_no_keys());
    check_entry_points(block_guard::keys);
}

TEST_CASE("every function of the ring writes into a block that is closed by emulation") {
    check_entry_points(block_guard::emulated);
}

TEST_CASE("a plain write anywhere into a key-protected block faults its writer") {
    if (!shm::has_protection_keys()) CAROUSEL_SKIP(shm::why_no_keys());
    check_wild_writes(block_guard::keys);
}

TEST_CASE("a plain write to a closed block faults its writer anywhere, by emulation") {
    check_wild_writes(block_guard::emulated);
}

TEST_CASE("without keys a process can write to its own pages and to no others") {
    const auto write_to = [](bool own) {
        return in_child([&] {
            bench b(chain_of_three());
            const seated middle = b.sit(1);
            const page_list pages = pages_of(*b.c, middle.incarnation, shm::none);
            need(shm::guard_block(*b.c, pages.pages(), block_guard::pages) == block_guard::pages);
            need(shm::is_closed(0) && !shm::is_closed(pages.pages()[0].from));
            (own ? b.c->stage[1] : b.c->stage[0]).counters.frames.store(1);
        });
    };
    CHECK(write_to(true) == went_through);
    CHECK(write_to(false) == faulted);
}

TEST_CASE("a process that forgets its block can close another one, also to threads that exist already") {
    const auto close_twice = [](block_guard how, bool writes) {
        return in_child([&] {
            closed_run first;
            first.close(how);
            std::atomic<int> turn{0};
            std::thread earlier;
            closed_run second;
            earlier = std::thread([&] {
                while (turn.load() == 0) std::this_thread::yield();
                frames(second);
                if (writes) second.b.c->stage[0].counters.frames.store(1);
            });
            shm::forget_block();
            need(!shm::is_closed(0) && shm::guarded_block() == nullptr);
            second.close(how);
            turn.store(1);
            earlier.join();
        });
    };
    for (const block_guard how : {block_guard::keys, block_guard::emulated}) {
        if (how == block_guard::keys && !shm::has_protection_keys()) continue;
        CHECK(close_twice(how, false) == went_through);
        CHECK(close_twice(how, true) == faulted);
    }
}

TEST_CASE("a thread's scopes nest, and another thread stays closed by a key") {
    if (!shm::has_protection_keys()) CAROUSEL_SKIP(shm::why_no_keys());
    CHECK(in_child([] {
              closed_run r;
              r.close(block_guard::keys);
              {
                  const shm::block_open outer;
                  { const shm::block_open inner; }
                  r.b.c->stage[0].counters.frames.store(1);  // still open
              }
              r.b.c->stage[0].counters.frames.store(2);
          }) == faulted);
    CHECK(in_child([] {
              closed_run r;
              r.close(block_guard::keys);
              std::thread concurrent;
              concurrent = std::thread([&] { r.b.c->stage[0].counters.frames.store(1); });
              const shm::block_open open;
              concurrent.join();
          }) == faulted);
}

namespace {
closed_run* handled_run = nullptr;
/// The result of a process whose block is closed when that handler is called.
auto handled_by(block_guard guard, void (*handler)(int)) {
    return in_child([&] {
        closed_run r;
        handled_run = &r;
        r.close(guard);
        std::signal(SIGUSR1, handler);
        ::raise(SIGUSR1);
    });
}
void write_a_note(int) { handled_run->b.c->entry[handled_run->source.incarnation.entry].exit_note.store(1); }
void open_and_write_a_note(int signal) {
    shm::open_block_for_good();
    write_a_note(signal);
}
}  // namespace

TEST_CASE("a signal handler starts without access to the block, and opens it permanently") {
    if (!shm::has_protection_keys()) CAROUSEL_SKIP(shm::why_no_keys());
    CHECK(handled_by(block_guard::keys, [](int) { (void)handled_run->b.c->job[0].load(); }) == faulted);
    CHECK(handled_by(block_guard::keys, open_and_write_a_note) == went_through);
}

TEST_CASE("a signal handler opens the block permanently, also with emulated keys") {
    CHECK(handled_by(block_guard::emulated, write_a_note) == faulted);
    CHECK(handled_by(block_guard::emulated, open_and_write_a_note) == went_through);
}

// A measurement, not a check. Run it by its name.
TEST_CASE("cost of a write scope around one write", "[.cost]") {
    if (!shm::has_protection_keys()) CAROUSEL_SKIP(shm::why_no_keys());
    CHECK(in_child([] {
              closed_run r;
              r.close(block_guard::keys);
              constexpr u64 times = 10'000'000;
              shm::word& at = r.b.c->stage[0].counters.frames;
              const u64 began = now_ns();
              for (u64 k = 0; k < times; ++k) {
                  const shm::block_open open;
                  at.store(k, std::memory_order_relaxed);
              }
              const u64 one = now_ns() - began;
              const shm::block_open outer;
              const u64 nested_began = now_ns();
              for (u64 k = 0; k < times; ++k) {
                  const shm::block_open open;
                  at.store(k, std::memory_order_relaxed);
              }
              std::printf("open, write, close: %.1f ns; the same within another scope: %.1f ns\n",
                          static_cast<f64>(one) / times, static_cast<f64>(now_ns() - nested_began) / times);
              std::fflush(stdout);
          }) == went_through);
}
