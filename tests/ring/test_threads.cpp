// Stages as threads over one control block, with plain (not atomic) payloads: under ThreadSanitizer a
// hand-over that the words do not order shows as a data race; without it, as a torn frame. A supervisor
// thread dooms stages all the time; a doomed thread continues as a zombie until it is joined, which is its
// fence.

#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "ring/helper.hpp"
#include "ring/latest.hpp"
#include "ring/recovery.hpp"
#include "ring/topology.hpp"
#include "ring/worker.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::ring;

namespace {
constexpr u64 frame_count = 60000;
constexpr u32 payload_words = 64;
using payload = std::array<u64, payload_words>;

struct shared_run {
    std::unique_ptr<shm::control_block> c = std::make_unique<shm::control_block>();
    std::vector<std::vector<payload>> memory;  // [link][slot]
    std::vector<std::atomic<u32>> delivered = std::vector<std::atomic<u32>>(frame_count);
    std::atomic<u64> torn{0}, spurious{0}, viewed{0}, helped{0};
};

class tag_import final : public device::imported_event {
public:
    explicit tag_import(const std::atomic<u64>* at) : at_(at) {}
    bool done(u64 tag) noexcept override { return at_->load(std::memory_order_acquire) == tag; }

private:
    const std::atomic<u64>* at_;
};

class tag_context final : public device::context {
public:
    device::device_kind kind() const noexcept override { return device::device_kind::cpu; }
    std::string description() const override { return "threads"; }
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

bool whole(const payload& p, u64 ring_sequence) {
    for (const u64 w : p)
        if (w != ring_sequence) return false;
    return true;
}

struct stage_thread {
    incarnation_id incarnation;
    std::atomic<bool> killed{false};
    std::thread thread;
};

// One incarnation. `killed` ends it between two calls, as a SIGKILL would; until it checks that flag the
// thread is a zombie.
void live(shared_run& run, stage_thread& self) {
    worker w(*run.c, self.incarnation.seat, self.incarnation.entry, self.incarnation.epoch);
    tag_context context;
    helper help(*run.c, context);
    for (;;) {
        if (self.killed.load(std::memory_order_relaxed)) return;
        job j;
        const outcome o = w.begin(j, 0);
        if (o == outcome::closed) return;
        if (o == outcome::revoked) {
            if (!self.killed.load()) run.spurious.fetch_add(1);
            return;
        }
        if (o != outcome::ok) {
            for (u32 k = 0; k < w.stage().inputs; ++k) run.helped.fetch_add(help.help(w.input(k)));
            if (w.outputs() > 0) w.output(0).sweep();
            std::this_thread::yield();
            continue;
        }
        if (!w.submit(j)) return;
        bool sound = true;
        for (u32 k = 0; k < j.inputs; ++k)
            sound = sound && whole(run.memory[w.input(k).index()][j.input[k].index], j.ring_sequence);
        if (w.outputs() > 0) {
            run.memory[w.output(0).index()][j.output[0].index].fill(j.ring_sequence);
            w.output(0).block().event_tag[j.output[0].index].store(w.tag(j), std::memory_order_release);
        }
        if (self.killed.load(std::memory_order_relaxed)) return;
        if (!w.commit(j)) return;
        if (!sound) run.torn.fetch_add(1);
        if (w.outputs() == 0) run.delivered[j.ring_sequence].fetch_add(1);
        if (self.killed.load(std::memory_order_relaxed)) return;
        if (!w.complete(j)) return;
    }
}

// A zombie may read a slot that is being refilled, since its frame was given to another process before its
// fence: what it reads is discarded, as it can't commit. ThreadSanitizer can't know that, so under it frames
// are returned after the fence. All other settings are the same.
#ifdef __SANITIZE_THREAD__
constexpr bool frames_return_before_the_fence = false;
#else
constexpr bool frames_return_before_the_fence = true;
#endif

class supervisor_thread {
public:
    explicit supervisor_thread(shared_run& run) : run_(&run), at_(run.c->seats) {
        for (u32 seat = 0; seat < run.c->seats; ++seat) start(seat);
    }
    void replace(u32 seat) {
        std::unique_ptr<stage_thread> old = std::move(at_[seat]);
        doom(*run_->c, old->incarnation.entry);
        old->killed.store(true);
        start_after_revoking(seat, old->incarnation.epoch);
        old->thread.join();  // the fence
        mark_fenced(*run_->c, old->incarnation.entry);
        do {
            (void)revoke(*run_->c, seat, old->incarnation.epoch);
            (void)requeue(*run_->c, seat, old->incarnation.epoch, blame::none, 0);
        } while (!reclaim(*run_->c, seat, old->incarnation.epoch));
    }
    void join_all() {
        for (auto& s : at_) s->thread.join();
    }

private:
    void start(u32 seat) { start_after_revoking(seat, 0); }
    void start_after_revoking(u32 seat, u32 dead_epoch) {
        auto s = std::make_unique<stage_thread>();
        s->incarnation = appoint(*run_->c, seat);
        (void)revoke(*run_->c, seat, dead_epoch);
        if (frames_return_before_the_fence) (void)requeue(*run_->c, seat, dead_epoch, blame::none, 0);
        (void)claim(*run_->c, s->incarnation);
        run_->c->entry[s->incarnation.entry].events_published.store(1);
        (void)go_live(*run_->c, s->incarnation);
        stage_thread& self = *s;
        s->thread = std::thread([this, &self] { live(*run_, self); });
        at_[seat] = std::move(s);
    }
    shared_run* run_;
    std::vector<std::unique_ptr<stage_thread>> at_;
};

void run_threads(bool replace) {
    shared_run run;
    plan p;
    p.stages = {{"source", {}, true, 2, 1}, {"middle", {0}, true, 2, 2}, {"sink", {1}, false, 2, 1}};
    for (stage_plan& s : p.stages) s.slot_bytes = 512;
    p.end = frame_count;
    initialise(*run.c, p);
    for (u32 k = 0; k < run.c->links; ++k) run.memory.emplace_back(run.c->link[k].slots);

    std::atomic<bool> over{false};
    std::thread viewer([&] {
        latest_reader reader(*run.c, 1, shm::max_incarnations);
        while (!over.load()) {
            const slot_ref s = reader.acquire();
            if (!s) {
                std::this_thread::yield();
                continue;
            }
            const bool sound = whole(run.memory[1][s.index], s.ring_sequence);
            if (reader.release()) {
                run.viewed.fetch_add(1);
                if (!sound) run.torn.fetch_add(1);
            }
        }
    });
    std::mt19937_64 random(20260101);
    supervisor_thread supervisor(run);
    u32 replaced = 0;
    while (!all_delivered(*run.c) && replaced < 100'000) {
        if (replace) {
            supervisor.replace(static_cast<u32>(random() % run.c->seats));
            ++replaced;
        }
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
    }
    supervisor.join_all();
    over.store(true);
    viewer.join();

    INFO("replaced " << replaced << ", helped " << run.helped << ", viewed " << run.viewed);
    REQUIRE(all_delivered(*run.c));
    CHECK(run.torn == 0);
    CHECK(run.spurious == 0);
    u64 wrong = 0;
    for (const auto& n : run.delivered) wrong += n.load() != 1 ? 1 : 0;
    CHECK(wrong == 0);
    if (replace) CHECK(replaced > 20);
}
}  // namespace

TEST_CASE("stages as threads: no data race, no torn frame, each frame once and in order") {
    run_threads(false);
}

TEST_CASE("stages as threads under constant replacement: no data race, no torn frame, each once") {
    run_threads(true);
}
