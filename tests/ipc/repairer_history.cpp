// Holders, repairers and dead clients, as real processes: the shipped gpu_repair in holders that die at its
// named steps and at any time, repairers that run the shipped queue body on words in a memfd and die or stop
// at its steps. The kills follow from the seed; the schedule is the kernel's.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <set>

#include "core/clock.hpp"
#include "histories.hpp"
#include "ipc/gpu_layout.hpp"
#include "ipc/gpu_repair.hpp"
#include "tests/support/scratch_folder.hpp"

namespace carousel::test {
namespace {

using namespace carousel::ipc;

constexpr u32 capacity = 8, most_pids = 256, incarnations_each = 5;
constexpr u64 gpu_bytes = 65536;

// The shared records of all these processes.
struct page {
    std::atomic<u32> repairers, concurrent;  // started; another repair was running at the time
    std::atomic<i32> pid[most_pids];
    std::atomic<u32> died_at[steps];  // holders
    u64 seed;
    u32 fated;  // this many repairers die or stop, mostly
};

template <class T>
T* shared_memory(int fd, u64 bytes) {
    void* at =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    return static_cast<T*>(at);
}

// ---- a repairer
u32 steps_left = 0;  // then it happens
int end_signal = 0;

/// The kernels' words on a CPU, and the steps at which a repairer dies or stops.
struct repairer_side {
    using word = u64;
    static u64 load(const u64& w) { return __atomic_load_n(&w, __ATOMIC_ACQUIRE); }
    static bool cas(u64& w, u64 expected, u64 desired) {
        return __atomic_compare_exchange_n(&w, &expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    }
    static void at(step) {
        ::usleep(50);
        if (steps_left != 0 && --steps_left == 0) (void)::raise(end_signal);
    }
};

[[noreturn]] void run_repairer(int socket, page& p, const char* lock_path) {
    ::dup2(socket, 3);
    (void)::close_range(4, ~0U, 0);  // what other processes wait for the end of
    const u32 number = p.repairers.fetch_add(1);
    p.pid[number % most_pids].store(::getpid());
    std::mt19937_64 random(p.seed * 977 + number);
    if (number < p.fated && random() % 4 != 0)
        steps_left = 1 + static_cast<u32>(random() % 10), end_signal = random() % 3 == 0 ? SIGSTOP : SIGKILL;
    if (steps_left > 9) (void)::raise(end_signal);  // before it has received anything
    shm::message m;
    if (shm::receive_message(3, m, 20 * ns_per_s) != shm::receive_status::ok || m.fds.size() != 2) ::_exit(1);
    const auto order = repair_order_from(m.text);
    const int lock = ::open(lock_path, O_RDWR | O_CREAT, 0600);
    if (!order || lock < 0) ::_exit(1);
    if (::flock(lock, LOCK_EX | LOCK_NB) != 0) p.concurrent.fetch_add(1);
    const memory space = memory::map(std::move(m.fds[0]), "field");
    auto* gpu = shared_memory<std::byte>(m.fds[1].get(), gpu_bytes);
    const queue_body<repairer_side> q(gpu_queue_at(gpu + space.block().place[0].gpu_offset, capacity, 8), 0);
    // Like repair.cu.
    for (u32 k = 0; k < capacity; ++k) q.settle_marked(k);
    q.settle_done();
    for (const u32 epoch : order->epochs)
        for (u32 k = 0; k < capacity; ++k) q.repair_cell(k, epoch), repairer_side::at(step::word_repaired);
    (void)shm::send_message(3, repaired_text);
    ::_exit(0);
}

class forked_helper final : public gpu_helper {
public:
    forked_helper(page& p, std::string lock) : page_(p), lock_(std::move(lock)) {}
    [[nodiscard]] gpu_memory make(u64) override { return {}; }
    [[nodiscard]] gpu_repairer start_repairer() override {
        auto [ours, theirs] = shm::socket_pair();
        const pid_t pid = ::fork();
        if (pid == 0) run_repairer(theirs.get(), page_, lock_.c_str());
        gpu_repairer m;
        m.process = {pid, shm::start_time_of(pid)};
        m.pidfd.reset(shm::open_pidfd(m.process));
        m.socket = std::move(ours);
        return m;
    }
    void reap(const gpu_repairer& m) override { (void)::waitpid(m.process.pid, nullptr, 0); }

private:
    page& page_;
    std::string lock_;
};

// ---- a holder: what holder.cpp does with a gpu_repair
u32 holder_steps_left = 0;
page* holder_page = nullptr;
void at_holder_step(step s) {
    if (s < step::repairer_started || holder_steps_left == 0 || --holder_steps_left != 0) return;
    holder_page->died_at[static_cast<std::size_t>(s)].fetch_add(1);
    (void)::raise(SIGKILL);
}
u64 hasty_clock() { return now_ns() * 150; }  // a repairer's 30 s are 0.2 s

[[noreturn]] void be_holder(int space_fd, int gpu_fd, page& p, const std::string& lock, u32 dies_at) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(::open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);  // it warns of each repairer that dies
    holder_steps_left = dies_at, holder_page = &p;
    set_hooks({&at_holder_step, &hasty_clock, nullptr});
    memory space = memory::map(shm::unique_fd(::dup(space_fd)), "field");
    registry_block& r = space.block().registry;
    forked_helper helper(p, lock);
    gpu_repair repair(&helper);
    std::set<u32> known;
    for (;; ::usleep(200)) {
        for (u32 k = 0; k <= incarnations_each; ++k)
            if (const client_id c = client_at(r, k);
                c && c.state == entry_state::fenced && known.insert(k).second)
                repair.add(k, c.epoch);
        for (const u32 entry : repair.advance(space, gpu_fd)) free_entry(r, entry), known.erase(entry);
        (void)repair.fresh();
    }
}

// ---- the test: clients that die, holders one after the other
class field {
public:
    field(history& h, u64 seed)
        : h_(h), random_(seed), page_(shared_memory<page>(-1, sizeof(page))), lock_(folder_.path / "lock") {
        ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // a dead holder's repairers are ours
        page_->seed = seed, page_->fated = static_cast<u32>(random_() % 4);
        gpu_fd_.reset(::memfd_create("gpu", MFD_CLOEXEC));
        if (::ftruncate(gpu_fd_.get(), gpu_bytes) != 0) throw std::bad_alloc();
        gpu_memory gpu;
        gpu.bytes = gpu_bytes, gpu.uuid = std::string(32, 'a');
        space_ = memory::make("field", u64{1} << 20U, gpu);
        (void)make_place(space_->block(), "cells", {kind::gpu_queue, capacity, 8, 0});
        gpu_ = shared_memory<std::byte>(gpu_fd_.get(), gpu_bytes);
    }
    ~field() {
        end_all();
        ::munmap(gpu_, gpu_bytes);
        ::munmap(page_, sizeof(page));
    }
    field(const field&) = delete;
    field& operator=(const field&) = delete;

    void run(u64& done) {
        const client_id survivor = attach(registry(), shm::this_process());
        for (u32 k = 0; k < 3; ++k) push(survivor.epoch);
        std::vector<client_id> dead;
        for (u32 k = 0; k < incarnations_each; ++k) dead.push_back(dies());
        u32 deaths = static_cast<u32>(random_() % 4), freed = 0;
        std::size_t fenced = 0;
        const u64 until = now_ns() + h_.patience_ns();
        for (; freed < incarnations_each && h_.finding().empty(); ::usleep(100)) {
            check_holder(deaths);
            if (fenced < dead.size() && random_() % 16 == 0) mark_fenced(registry(), dead[fenced++].entry);
            if (random_() % 8 == 0) push(survivor.epoch), pop(survivor.epoch);
            freed = 0;
            for (const client_id& c : dead) freed += is_free(c) ? 1U : 0U;
            if (now_ns() > until) h_.find("somebody waits for ever");
        }
        end_all();
        for (u32 k = 0; k < steps; ++k)
            for (u32 n = page_->died_at[k].load(); n > 0; --n) h_.count_death(static_cast<step>(k));
        if (page_->concurrent.load() != 0) h_.find("two menders at a time");
        if (h_.finding().empty()) settle(survivor.epoch);
        done += freed;
    }

private:
    using body = queue_body<repairer_side>;
    [[nodiscard]] registry_block& registry() const { return space_->block().registry; }
    [[nodiscard]] queue_parts<u64> parts() const {
        return gpu_queue_at(gpu_ + space_->block().place[0].gpu_offset, capacity, 8);
    }
    bool push(u32 epoch) const {
        u64 ticket = 0;
        const body q(parts(), epoch);
        return q.claim(ticket) && q.publish(ticket);
    }
    bool pop(u32 epoch) const {
        u64 ticket = 0;
        const body q(parts(), epoch);
        return q.take(cell_state::popping, ticket) && q.consume(ticket, cell_state::popping);
    }
    // An incarnation that ends with one cell held, or two.
    client_id dies() {
        const client_id c = attach(registry(), shm::this_process());
        const body q(parts(), c.epoch);
        u64 ticket = 0;
        if (random_() % 2 == 0 && q.take(cell_state::popping, ticket)) ++lost_;
        if (random_() % 4 == 0) (void)q.take(cell_state::leased, ticket);
        if (random_() % 2 == 0 && q.claim(ticket)) ++tombs_;
        mark_dead(registry(), c.entry);
        return c;
    }
    bool is_free(const client_id& c) {
        if (find_client(registry(), c.epoch)) return false;
        for (u32 k = 0; k < capacity; ++k)
            if (cell_word::of(repairer_side::load(parts().cell[k])).epoch == c.epoch)
                h_.find("an entry is free, and its cells are not mended");
        return true;
    }
    void check_holder(u32& deaths) {
        if (holder_ > 0 && deaths > 0 && random_() % 200 == 0) ::kill(holder_, SIGKILL);
        for (pid_t gone = 0; (gone = ::waitpid(-1, nullptr, WNOHANG)) > 0;)
            if (gone == holder_) holder_ = 0, deaths -= deaths > 0 ? 1U : 0U;
        if (holder_ > 0) return;
        // The fourth step (repairer_replied) is reached only if a repairer survives to its end: it gets more
        // of the deaths.
        const u32 drawn = 1 + static_cast<u32>(random_() % 8);
        const u32 dies_at = deaths > 0 ? (drawn > 6 ? 4 : drawn) : 0;
        holder_ = ::fork();
        if (holder_ == 0) be_holder(space_->fd(), gpu_fd_.get(), *page_, lock_, dies_at);
    }
    // No holder is left, and no repairer except one that was stopped before it received anything.
    void end_all() {
        if (holder_ > 0) ::kill(holder_, SIGKILL);
        holder_ = 0;
        for (const u64 until = now_ns() + 2 * ns_per_s; ::waitpid(-1, nullptr, WNOHANG) >= 0; ::usleep(500)) {
            for (const auto& pid : page_->pid)
                if (pid.load() > 0 && shm::is_stopped(pid)) ::kill(pid, SIGKILL);
            if (now_ns() < until) continue;
            h_.find("a mender is left");
            for (const auto& pid : page_->pid)
                if (pid.load() > 0) ::kill(pid, SIGKILL);
        }
    }
    void settle(u32 epoch) const {
        const queue_parts<u64> p = parts();
        if (repairer_side::load(*p.tombs) >> 40U != tombs_) h_.find("the count of the tombs is wrong");
        if (repairer_side::load(*p.lost) >> 40U != lost_) h_.find("the count of the lost is wrong");
        while (pop(epoch)) {
        }
        u32 room = 0;
        while (room <= capacity && push(epoch)) ++room;
        if (room != capacity) h_.find("capacity is lost");
    }

    history& h_;
    std::mt19937_64 random_;
    scratch_folder folder_;
    page* page_;
    std::string lock_;
    shm::unique_fd gpu_fd_;
    std::optional<memory> space_;
    std::byte* gpu_ = nullptr;
    pid_t holder_ = 0;
    u32 tombs_ = 0, lost_ = 0;
};

}  // namespace

bool repairer_history(history& h, u64 seed, u64& done) {
    field f(h, seed);
    f.run(done);
    return true;
}

}  // namespace carousel::test
