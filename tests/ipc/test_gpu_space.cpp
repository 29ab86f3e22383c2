// A space with GPU memory seen by its holder and its clients, which do not use CUDA: a memfd stands for the
// memory, processes of this test for the repairer. Kernels that run there: cuda/gpu_kills.cpp.
#include <carousel/ipc.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "core/clock.hpp"
#include "core/json.hpp"
#include "ipc/attachment.hpp"
#include "ipc/gpu_layout.hpp"
#include "ipc/holder.hpp"
#include "ipc/pool.hpp"
#include "ipc/space_view.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"
#include "zeroed.hpp"

using namespace carousel;
using namespace carousel::ipc;
using carousel::test::contains;

namespace {

constexpr u64 gpu_bytes = u64{1} << 20U;

/// Repairers are children that wait for their request; `gone`: they end before their first action.
class fake_helper final : public gpu_helper {
public:
    [[nodiscard]] gpu_memory make(u64 bytes) override {
        gpu_memory m;
        m.fd.reset(::memfd_create("gpu", MFD_CLOEXEC));
        REQUIRE(::ftruncate(m.fd.get(), static_cast<off_t>(bytes)) == 0);
        m.bytes = bytes, m.uuid = std::string(32, 'a');
        return m;
    }
    [[nodiscard]] gpu_repairer start_repairer() override {
        ++started;
        auto [ours, theirs] = shm::socket_pair();
        const pid_t pid = ::fork();
        if (pid == 0) run_repairer(theirs.get());
        gpu_repairer m;
        m.process = {pid, shm::start_time_of(pid)};
        m.pidfd.reset(shm::open_pidfd(m.process));
        m.socket = std::move(ours);
        return m;
    }
    void reap(const gpu_repairer& m) override { (void)::waitpid(m.process.pid, nullptr, 0); }

    u32 started = 0, gone = 0;
    u64 rest_ns = 0;  ///< before it answers

private:
    [[noreturn]] void run_repairer(int socket) const {
        ::dup2(socket, 3);
        (void)::close_range(4, ~0U, 0);  // what other processes wait for the end of
        shm::message m;
        if (started <= gone || shm::receive_message(3, m, 20 * ns_per_s) != shm::receive_status::ok)
            ::_exit(1);
        const auto order = repair_order_from(m.text);
        if (!order || order->epochs.empty() || m.fds.size() != 2) ::_exit(1);
        std::this_thread::sleep_for(std::chrono::nanoseconds(rest_ns));
        (void)shm::send_message(3, repaired_text);
        ::_exit(0);
    }
};

struct scene {
    scratch_folder folder;
    fake_helper helper;
    scene() { ::setenv("XDG_RUNTIME_DIR", folder.path.c_str(), 1); }
};

template <class Fn>
std::string refusal_of(Fn fn) {
    try {
        fn();
    } catch (const std::exception& e) {
        return e.what();
    }
    return "";
}

/// The holder runs on this thread until it is so; false: it wasn't in 20 s.
template <class Condition>
bool run_until(holder& h, Condition c) {
    for (const u64 until = now_ns() + 20 * ns_per_s; now_ns() < until; h.run_once(5))
        if (c()) return true;
    return false;
}

/// Attaches a client while the holder runs on this thread.
std::unique_ptr<attachment> attach_to(holder& h) {
    std::unique_ptr<attachment> a;
    std::atomic<bool> done{false};
    std::thread t([&] { a = std::make_unique<attachment>("lab", 20), done = true; });
    REQUIRE(run_until(h, [&] { return done.load(); }));
    t.join();
    return a;
}

u32 place_at(holder& h, attachment& a, const std::string& name, const shape& s) {
    u32 k = 0;
    std::atomic<bool> done{false};
    std::thread t([&] { k = a.place(name, s), done = true; });
    REQUIRE(run_until(h, [&] { return done.load(); }));
    t.join();
    return k;
}

constexpr shape on_gpu{kind::gpu_queue, 64, 16, 0};

}  // namespace

TEST_CASE("instructions to repair GPU memory are read, and malformed ones are rejected") {
    const auto order = repair_order_from(to_text(repair_order{{7, 0xFFFF'FFFF}}));
    REQUIRE(order);
    CHECK(order->epochs == std::vector<u32>{7, 0xFFFF'FFFF});
    for (const char* text : {"", "[]", "{}", R"({"repair": 7})", R"({"repair": ["7"]})",
                             R"({"repair": [-1]})", R"({"repair": [4294967296]})", R"({"repair": [1.5]})"})
        CHECK_FALSE(repair_order_from(text));
}

TEST_CASE("without GPU memory a space refuses GPU primitives and names the remedy") {
    scene s;
    holder h("lab", u64{4} << 20U);
    for (const shape& w :
         {on_gpu, shape{kind::gpu_work_queue, 8, 8, 3}, shape{kind::gpu_pool, 65536, 4096, 0}})
        CHECK_THAT(refusal_of([&] { (void)make_place(h.block(), "x", w); }),
                   contains("carousel hold lab --device"));
}

TEST_CASE("objects in GPU memory are adjacent, and do not exceed the available room") {
    scene s;
    holder h("lab", u64{4} << 20U, memory_when::at_once, &s.helper, gpu_bytes);
    space_block& b = h.block();
    const u32 pool_at = make_place(b, "pages", {kind::gpu_pool, 65536, 4096, 0});
    const u32 queue_at = make_place(b, "samples", on_gpu),
              work = make_place(b, "tiles", {kind::gpu_work_queue, 8, 8, 3});
    CHECK(b.place[queue_at].gpu_offset >= b.place[pool_at].gpu_offset + 65536);
    CHECK(b.place[work].gpu_offset >= b.place[queue_at].gpu_offset + gpu_queue_bytes(64, 16));
    CHECK(b.place[queue_at].gpu_bytes == gpu_queue_bytes(64, 16));
    CHECK(has_gpu_words(b));
    CHECK_THAT(refusal_of([&] {
                   (void)make_place(b, "large", {kind::gpu_pool, gpu_bytes, 4096, 0});
               }),
               contains("--device-size"));
    constexpr u64 most = ~u64{0} - 4095;  // with what there is it wraps to a small number
    CHECK_THAT(refusal_of([&] {
                   (void)make_place(b, "huge", {kind::gpu_pool, most, most, 0});
               }),
               contains("--device-size"));
    CHECK_THAT(refusal_of([&] {
                   (void)make_place(b, "samples", {kind::gpu_queue, 64, 24, 0});
               }),
               contains("exists as a queue on the GPU of 64 elements of 16 bytes"));
    shape typed = on_gpu;
    typed.type = 7;
    (void)make_place(b, "typed", typed);
    typed.type = 8;
    CHECK_THAT(refusal_of([&] { (void)make_place(b, "typed", typed); }),
               contains("use the same struct in all programs"));
}

TEST_CASE("an observer of a space sees its GPU memory, the free part and each primitive's share") {
    scene s;
    holder h("lab", u64{4} << 20U, memory_when::at_once, &s.helper, gpu_bytes);
    CHECK(view_of(h.block()).gpu_free_bytes == gpu_bytes);
    (void)make_place(h.block(), "pages", {kind::gpu_pool, 65536, 4096, 0});
    (void)make_place(h.block(), "samples", on_gpu);
    (void)make_place(h.block(), "turn", {kind::semaphore, 1, 0, 0});
    const space_view v = read_view(to_json(view_of(h.block())));
    CHECK(v.gpu_bytes == gpu_bytes);
    CHECK(v.gpu_free_bytes == gpu_bytes - 65536 - gpu_queue_bytes(64, 16));
    REQUIRE(v.primitives.size() == 3);
    using figures = std::map<std::string, u64>;
    CHECK(v.primitives[0].figures.at("gpu_bytes") == 65536);
    CHECK(v.primitives[1].figures == figures{{"gpu_bytes", gpu_queue_bytes(64, 16)}});
    for (const auto& [name, value] : v.primitives[2].figures) CHECK(name != "gpu_bytes");
}

TEST_CASE("blocks of a GPU pool are in its memory, have no pointer if unmapped, and are returned") {
    scene s;
    holder h("lab", u64{4} << 20U, memory_when::at_once, &s.helper, gpu_bytes);
    auto client = attach_to(h);
    CHECK(client->gpu_fd() >= 0);
    (void)place_at(h, *client, "first", {kind::gpu_pool, 65536, 4096, 0});
    const u32 k = place_at(h, *client, "pages", {kind::gpu_pool, 65536, 4096, 0});
    pool pages(client->block().block_of<pool_block>(k), client->epoch());
    const auto one = pages.try_acquire(2), two = pages.try_acquire(1);
    REQUIRE((one && two));
    CHECK(pages.offset(*one) == client->block().place[k].gpu_offset);
    CHECK(pages.offset(*two) == pages.offset(*one) + 2 * 4096);
    CHECK(client->gpu_base.load() == nullptr);
    client.reset();
    REQUIRE(run_until(h, [&] { return h.clients() == 0; }));
    CHECK(pool(h.block().block_of<pool_block>(k), 0).use().free == 16);
}

TEST_CASE("a dead client keeps its entry until the GPU words are repaired, even by a second repairer") {
    scene s;
    s.helper.gone = 1;
    holder h("lab", u64{4} << 20U, memory_when::at_once, &s.helper, gpu_bytes);
    auto stays = attach_to(h);
    auto leaves = attach_to(h);
    (void)place_at(h, *stays, "samples", on_gpu);
    const u32 entry = leaves->entry();
    leaves.reset();
    REQUIRE(run_until(h, [&] { return s.helper.started >= 1; }));
    CHECK(client_at(h.block().registry, entry).state == entry_state::fenced);
    REQUIRE(run_until(h, [&] { return !client_at(h.block().registry, entry); }));
    CHECK(s.helper.started == 2);
    CHECK(client_at(h.block().registry, stays->entry()).state == entry_state::attached);
}

TEST_CASE("clients that die during a repair are repaired next, by one repairer at a time") {
    scene s;
    s.helper.rest_ns = 200 * ns_per_ms;
    holder h("lab", u64{4} << 20U, memory_when::at_once, &s.helper, gpu_bytes);
    auto stays = attach_to(h);
    (void)place_at(h, *stays, "samples", on_gpu);
    std::vector<std::unique_ptr<attachment>> leave;
    leave.reserve(3);
    for (int k = 0; k < 3; ++k) leave.push_back(attach_to(h));
    leave[0].reset();
    REQUIRE(run_until(h, [&] { return s.helper.started == 1; }));
    const u64 first = h.block().repairer.load();
    leave.clear();
    REQUIRE(run_until(h, [&] { return s.helper.started == 2; }));
    CHECK_FALSE(shm::is_alive({static_cast<i32>(first), shm::start_time_of(static_cast<i32>(first))}));
    REQUIRE(run_until(
        h, [&] { return h.clients() == 1 && find_client(h.block().registry, 4).entry == no_entry; }));
    CHECK(s.helper.started == 2);
}

TEST_CASE("a holder that takes over gets the GPU memory, ends the old repairer and repairs again") {
    scene s;
    fake_helper second;
    auto first = std::make_unique<holder>("lab", u64{4} << 20U, memory_when::at_once, &s.helper, gpu_bytes);
    auto stays = attach_to(*first);
    auto leaves = attach_to(*first);
    (void)place_at(*first, *stays, "samples", on_gpu);
    const u32 entry = leaves->entry();
    leaves.reset();
    REQUIRE(run_until(
        *first, [&] { return client_at(first->block().registry, entry).state == entry_state::fenced; }));
    // A repairer of the first one, as its death would leave it: it is still running.
    const pid_t left = ::fork();
    if (left == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // also where the test fails
        (void)::close_range(3, ~0U, 0);      // the first holder's lock is released with that holder only
        for (;;) ::pause();
    }
    stays->block().repairer_start.store(shm::start_time_of(left));
    stays->block().repairer.store(static_cast<u64>(left));
    s.helper.rest_ns = 20 * ns_per_s;
    first.reset();
    holder next("lab", 0, memory_when::at_once, &second);
    CHECK(next.adopted());
    CHECK(next.block().gpu_bytes == gpu_bytes);
    REQUIRE(run_until(next, [&] {
        (void)::waitpid(left, nullptr, WNOHANG);
        return !client_at(next.block().registry, entry);
    }));
    CHECK(::kill(left, 0) != 0);
    CHECK(second.started == 1);
    CHECK(attach_to(next)->gpu_fd() >= 0);
}

TEST_CASE("a process with the pid of an ended repairer is not affected") {
    scene s;
    fake_helper second;
    auto first = std::make_unique<holder>("lab", u64{4} << 20U, memory_when::at_once, &s.helper, gpu_bytes);
    auto stays = attach_to(*first);
    (void)place_at(*first, *stays, "samples", on_gpu);
    const pid_t other_process = ::fork();
    if (other_process == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // also where the test fails
        (void)::close_range(3, ~0U, 0);
        for (;;) ::pause();
    }
    stays->block().repairer_start.store(shm::start_time_of(other_process) - 1);
    stays->block().repairer.store(static_cast<u64>(other_process));
    first.reset();
    holder next("lab", 0, memory_when::at_once, &second);
    auto leaves = attach_to(next);
    const u32 entry = leaves->entry();
    leaves.reset();
    REQUIRE(run_until(next, [&] { return second.started == 1 && !client_at(next.block().registry, entry); }));
    const bool other_process_alive = ::waitpid(other_process, nullptr, WNOHANG) == 0;
    CHECK(other_process_alive);
    (void)::kill(other_process, SIGKILL);
    (void)::waitpid(other_process, nullptr, 0);
}

TEST_CASE("a space without GPU memory gets none at a takeover and reports that") {
    scene s;
    auto first = std::make_unique<holder>("lab", u64{4} << 20U);
    const auto stays = attach_to(*first);
    first.reset();
    CHECK_THAT(refusal_of([&] { holder next("lab", 0, memory_when::at_once, &s.helper, gpu_bytes); }),
               contains("remove --device"));
}

namespace {
/// The kernels' words on a CPU: plain ones, changed by built-in atomics.
struct plain_side {
    using word = u64;
    static u64 load(const u64& w) { return __atomic_load_n(&w, __ATOMIC_ACQUIRE); }
    static bool cas(u64& w, u64 expected, u64 desired) {
        return __atomic_compare_exchange_n(&w, &expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    }
    static void at(step) {}
};
}  // namespace

TEST_CASE("zeroed GPU memory is an empty queue and work queue, and elements are adjacent") {
    constexpr u32 capacity = 5, bytes = 12;
    test::zeroed<u64> memory(gpu_queue_bytes(capacity, bytes));
    const queue_body<plain_side> q(gpu_queue_at(&*memory, capacity, bytes), 1);
    u64 ticket = 0;
    CHECK_FALSE(q.take(cell_state::popping, ticket));
    for (u32 lap = 0; lap < 3; ++lap) {
        for (u32 k = 0; k < capacity; ++k) {
            REQUIRE(q.claim(ticket));
            std::memset(q.element(ticket), static_cast<int>(lap * 16 + k), bytes);
            REQUIRE(q.publish(ticket));
        }
        CHECK_FALSE(q.claim(ticket));
        for (u32 k = 0; k < capacity; ++k) {
            REQUIRE(q.take(cell_state::leased, ticket));
            for (u32 n = 0; n < bytes; ++n) CHECK(q.element(ticket)[n] == lap * 16 + k);
            CHECK(q.consume(ticket, cell_state::leased));
        }
    }
    CHECK(reinterpret_cast<u8*>(&*memory) + gpu_queue_bytes(capacity, bytes) == q.element(capacity - 1) + 16);
    test::zeroed<u64> other(gpu_work_queue_bytes(capacity, bytes));
    const task_body<plain_side> w(gpu_work_queue_at(&*other, capacity, bytes, 2), 1);
    claimed_task t;
    CHECK_FALSE(w.claim(t));
    for (u32 k = 0; k < capacity; ++k) {
        task_name n;
        REQUIRE(w.fill(n));
        CHECK(w.submit(n));
    }
    REQUIRE(w.claim(t));
    CHECK(w.fail(t));
    REQUIRE(w.claim(t));
    CHECK(w.commit(t));
    CHECK_FALSE(w.commit(t));
}
