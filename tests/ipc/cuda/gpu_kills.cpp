// Queues and work queues that kernels fill and empty, and blocks of GPU memory, among processes that are
// killed: at random during their kernels, at each named step, the holder and the repairer as well. Then every
// element must have been delivered once, and the space must be as empty as a new one.
//
//   ipc_gpu_kills slices|mps|two-gpus KILLS [SEED] [SECONDS] [calm]
//
// slices: all clients on one GPU in time slices. mps: the same under an MPS daemon that is started for it, in
// a separate folder. two-gpus: every other client on a second GPU, which maps the memory of the first.
//
// KILLS: of each primitive. A death counts for a primitive if the process was using it, or held something of
// it. SECONDS: time limit, after which there are fewer kills [120]; the counts show it. calm: holder and
// repairer are not killed, to show the duration of a death without its repair.
//
// `carousel` is searched next to it, or in CAROUSEL_PROGRAMS. Exit code 0: all rules held; 77: this machine
// has no GPU, no MPS or no second GPU.
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <thread>
#include <vector>

#include "bench/ipc/mps_daemon.hpp"
#include "bench/statistics.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "gpu_client.cuh"
#include "ipc/attachment.hpp"
#include "ipc/pool.hpp"
#include "ipc/step.hpp"

extern char** environ;

using namespace carousel;
using namespace carousel::ipc;
using namespace carousel::test;

namespace {

constexpr u32 all_clients = 8;
static_assert(all_clients <= most_clients);
constexpr step steps[] = {step::cell_claimed,   step::cell_written, step::cell_published, step::cell_popping,
                          step::cell_leased,    step::cell_passed,  step::cell_consumed,  step::cell_returned,
                          step::task_filling,   step::task_written, step::task_submitted, step::task_claimed,
                          step::task_committed, step::task_failed};

void rest_us(u64 us) { std::this_thread::sleep_for(std::chrono::microseconds(us)); }

// CUDA in this process searches for an MPS daemon in that folder.
pid_t start(const std::vector<std::string>& words, const bench::mps_folder& in) {
    in.enter();
    std::vector<char*> argv;
    for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
    argv.push_back(nullptr);
    pid_t pid = 0;
    if (::posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ) != 0)
        throw std::runtime_error("starting " + words[0]);
    return pid;
}

f64 ms_between(u64 begun, u64 end) { return static_cast<f64>(end - begun) / 1e6; }

// Checks whether the process has ended; if so, it is reaped and `status` has the result.
bool ended(pid_t pid, int& status) { return ::waitpid(pid, &status, WNOHANG) == pid; }

class field {
public:
    /// `clients_in`: where the clients' CUDA searches for an MPS daemon; no other process does.
    field(u64 kills, u64 seed, int gpus, u64 most_s, bool calm, const bench::mps_folder& clients_in)
        : kills_(kills),
          seed_(seed),
          random_(seed),
          gpus_(gpus),
          calm_(calm),
          until_(now_ns() + most_s * ns_per_s),
          clients_in_(clients_in) {
        char folder[] = "/tmp/ipc-gpu-kills-XXXXXX";
        if (::mkdtemp(folder) == nullptr) throw std::runtime_error("making a folder below /tmp");
        folder_ = folder;
        ::setenv("XDG_RUNTIME_DIR", folder, 1);
        book_ = &map_book(folder_ + "/book");
        hold();
        attached_ = std::make_unique<attachment>("field", 60);
        const u64 unit = 65536, bytes = (sizeof(gpu_story) + unit - 1) / unit * unit;
        const u32 place = attached_->place("story", {kind::gpu_pool, bytes, unit, 0});
        pool book(attached_->block().block_of<pool_block>(place), attached_->epoch());
        story_ = book.offset(book.try_acquire(static_cast<u32>(bytes / unit)).value());
        for (u32 k = 0; k < all_clients; ++k) begin(k);
    }
    ~field() {
        for (const pid_t p : clients_) finish(p);
        attached_.reset();
        finish(holder_);
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    field(const field&) = delete;
    field& operator=(const field&) = delete;

    void inject_faults() {
        const u64 begun = now_ns();
        u64 at = 0;
        while (fewest() < kills_ && now_ns() < until_) {
            rest_us(random_() % 10'000);
            if (++at % 512 == 0 && !calm_) renew_holder();
            if (at % 512 == 256 && !calm_) kill_repairer();
            record_ends();
            record_repairs();
            const u32 k = static_cast<u32>(random_() % all_clients);
            if (book_->ready[k] != 0 && killed_at_[k] == 0 && (!at_step_[k] || random_() % 8 == 0)) {
                killed_at_[k] = now_ns();
                ::kill(clients_[k], SIGKILL);
            }
            if (by_itself_ > 20) break;  // the GPU is in trouble, or the domain
        }
        fault_injection_s_ = ms_between(begun, now_ns()) / 1000;
    }

    int judge() {
        for (pid_t& p : clients_) finish(p), p = 0;
        const u64 begun = now_ns();
        while (others() > 0 && now_ns() - begun < 30 * ns_per_s) rest_us(10'000);
        if (others() > 0)
            book_->find(fmt::format("{} dead clients are still in the registry after 30 s", others()));
        const f64 settled_s = static_cast<f64>(now_ns() - begun) / 1e9;
        outside_.enter();
        const final_check last = check_at_end("field", story_, attached_->block());
        check_rules(last);
        fmt::print(
            "seed {}: killed {} clients in {:.1f} s, {} at a step, {} holders, {} menders; {} ended by "
            "themselves\n{} elements consumed, {} deeds; leased: {} in doubt, {} tombs; popped: {} lost, {} "
            "missing, {} tombs; tasks: {} in doubt, {} letters; {} turns; settled in {:.2f} s\n",
            seed_, killed_, fault_injection_s_, book_->at_step.load(), holders_, repairers_, by_itself_,
            last.story->done, book_->operations.load(), uncertain_, last.tombs[0], last.lost[1], missing_,
            last.tombs[1], tasks_uncertain_, dead_letters_, last.story->turns, settled_s);
        fmt::print("killed in the midst of it:");
        for (u32 p = 0; p < all_primitives; ++p) fmt::print(" {} {}", primitive_names[p], struck_[p]);
        fmt::print(
            "{}\nms, medians: SIGKILL to the end of the process {:.1f}, its end to mended words {:.1f} (95 "
            "of "
            "100 within {:.1f}, {} seen); a mend in a process that has its context {:.3f}\n",
            fewest() < kills_ ? fmt::format(" (fewer than {}: time was over)", kills_) : "", median(end_ms_),
            median(repair_ms_), late(repair_ms_), repair_ms_.size(), last.repair_us / 1000);
        if (book_->broken == 0) return 0;
        fmt::print("BROKEN {} times, first: {}\n", book_->broken.load(), book_->first_broken);
        return 1;
    }

private:
    void check_rules(const final_check& l) {
        if (by_itself_ > 0) book_->find(fmt::format("{} clients ended by themselves", by_itself_));
        if (l.story->torn > 0) book_->find(fmt::format("{} elements were torn", l.story->torn));
        if (l.story->not_owned > 0)
            book_->find(fmt::format("{} leases weren't their holder's", l.story->not_owned));
        if (l.story->overwritten > 0)
            book_->find(fmt::format("{} words of blocks were another's", l.story->overwritten));
        for (u32 k = 0; k < std::min(book_->next_item[0].load(), items_each); ++k) {
            const u32 s = l.story->item[k];
            if (times(s, finished) > 1) book_->find(fmt::format("element {} was committed twice", k));
            if (times(s, sent) > 0 && times(s, finished) == 0) {
                if (times(s, finishing) == 0) book_->find(fmt::format("element {} is lost", k));
                ++uncertain_;  // its holder died at its commit, and had not yet put that down
            }
        }
        for (u32 k = 0; k < std::min(book_->next_item[1].load(), items_each); ++k) {
            const u32 s = l.story->item[items_each + k];
            if (times(s, finished) > 1) book_->find(fmt::format("element {} was popped twice", k));
            if (times(s, sent) > 0 && times(s, finished) == 0) ++missing_;
        }
        for (u32 k = 0; k < std::min(book_->next_item[2].load(), items_each); ++k) {
            const u32 s = l.story->item[2 * items_each + k];
            dead_letters_ += times(s, dead_letters);
            if (times(s, finished) + times(s, dead_letters) > 1)
                book_->find(fmt::format("task {} ended twice", k));
            if (times(s, sent) > 0 && times(s, finished) + times(s, dead_letters) == 0) {
                if (times(s, finishing) == 0) book_->find(fmt::format("task {} is lost", k));
                ++tasks_uncertain_;
            }
        }
        if (l.lost[0] != 0) book_->find("a queue that is leased alone has lost something");
        // A death may also strike between the pop and its line in the story, or the push and its own.
        if (missing_ > l.lost[1] + killed_ * 2 * 128) book_->find("more are missing than deaths can explain");
        for (const u32 room : l.room)
            if (room != queue_elements)
                book_->find(fmt::format("capacity is {} of {}", room, queue_elements));
        if (l.free_permits != 1 || l.waiting != 0)
            book_->find(
                fmt::format("{} permits are free, {} places of the line taken", l.free_permits, l.waiting));
        if (l.left != 0) book_->find(fmt::format("{} cells are still taken", l.left));
        if (l.pool_free != l.pool_bytes)
            book_->find(fmt::format("{} bytes are leaked", l.pool_bytes - l.pool_free));
    }
    void hold() {
        const char* where = std::getenv("CAROUSEL_PROGRAMS");
        const std::string programs =
            where != nullptr ? where : std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
        holder_ =
            start({programs + "/carousel", "hold", "field", "--device", "cuda:0", "--device-size", "320M"},
                  outside_);
    }
    void renew_holder() {
        finish(holder_);
        hold();
        ++holders_;
    }
    void kill_repairer() {
        const shm::process_id m{static_cast<i32>(attached_->block().repairer.load()),
                                attached_->block().repairer_start.load()};
        const shm::unique_fd pidfd(m.pid == 0 ? -1 : shm::open_pidfd(m));
        if (pidfd && shm::is_alive(m) && shm::signal_pidfd(pidfd.get(), SIGKILL) == 0) ++repairers_;
    }
    [[nodiscard]] u64 fewest() const { return *std::min_element(std::begin(struck_), std::end(struck_)); }
    static f64 median(std::vector<f64> all) { return all.empty() ? 0 : bench::median_of(std::move(all)); }
    static f64 late(std::vector<f64> all) {
        std::sort(all.begin(), all.end());
        return all.empty() ? 0 : all[std::min(all.size() - 1, all.size() * 95 / 100)];
    }
    // A process that has ended is followed by another one.
    void record_ends() {
        for (u32 k = 0; k < all_clients; ++k) {
            int status = 0;
            if (!ended(clients_[k], status)) continue;
            if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) ++by_itself_;
            ++killed_;
            for (u32 p = 0; p < all_primitives; ++p) struck_[p] += book_->in_use[k][p] != 0 ? 1 : 0;
            if (killed_at_[k] != 0) end_ms_.push_back(ms_between(killed_at_[k], now_ns()));
            if (book_->ready[k] != 0) dead_.push_back({book_->ready[k], now_ns()});
            begin(k);
        }
    }
    // An entry is free after the repair of everything that its incarnation had.
    void record_repairs() {
        for (std::size_t k = dead_.size(); k-- > 0;) {
            if (find_client(attached_->block().registry, dead_[k].epoch)) continue;
            repair_ms_.push_back(ms_between(dead_[k].at_ns, now_ns()));
            dead_.erase(dead_.begin() + static_cast<std::ptrdiff_t>(k));
        }
    }
    void begin(u32 k) {
        book_->ready[k] = 0, killed_at_[k] = 0;
        for (std::atomic<u32>& u : book_->in_use[k]) u = 0;
        at_step_[k] = random_() % 2 == 0;
        const step deadly = at_step_[k] ? steps[random_() % std::size(steps)] : step::count_;
        clients_[k] = start({"/proc/self/exe", folder_ + "/book", std::to_string(story_),
                             std::to_string(random_()), std::to_string(static_cast<u32>(deadly)),
                             std::to_string(k), std::to_string(static_cast<int>(k) % gpus_)},
                            clients_in_);
    }
    static void finish(pid_t p) {
        if (p <= 0) return;
        ::kill(p, SIGKILL);
        ::waitpid(p, nullptr, 0);
    }
    [[nodiscard]] u32 others() const {
        u32 n = 0;
        for (u32 k = 0; k < max_clients; ++k) {
            const client_id c = client_at(attached_->block().registry, k);
            n += c && c.epoch != attached_->epoch() ? 1U : 0U;
        }
        return n;
    }

    u64 kills_, seed_, story_ = 0;
    std::mt19937_64 random_;
    int gpus_;
    bool calm_;
    u64 until_;
    std::string folder_;
    host_book* book_ = nullptr;
    std::unique_ptr<attachment> attached_;
    pid_t holder_ = 0, clients_[all_clients] = {};
    bool at_step_[all_clients] = {};
    u64 killed_ = 0, holders_ = 0, repairers_ = 0, by_itself_ = 0;
    u64 uncertain_ = 0, missing_ = 0, tasks_uncertain_ = 0, dead_letters_ = 0;
    u64 struck_[all_primitives] = {}, killed_at_[all_clients] = {};
    struct death {
        u32 epoch;
        u64 at_ns;
    };
    std::vector<death> dead_;  // not repaired yet
    std::vector<f64> end_ms_, repair_ms_;
    f64 fault_injection_s_ = 0;
    const bench::mps_folder outside_;  // in which there is no daemon
    const bench::mps_folder& clients_in_;
};

// Queried in a child: the process that starts others must not have touched CUDA.
int gpus_here() {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(number_of_gpus());
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

u64 number(const char* text) { return std::strtoull(text, nullptr, 10); }

}  // namespace

int main(int argc, char** argv) {
    try {
        if (argc == 7)
            client_main({"field", argv[1], number(argv[2]), number(argv[3]),
                         static_cast<u32>(number(argv[4])), static_cast<u32>(number(argv[5])),
                         static_cast<int>(number(argv[6]))});
        const std::string mode = argc < 3 ? "" : argv[1];
        if (mode != "slices" && mode != "mps" && mode != "two-gpus")
            return fmt::print(stderr,
                              "usage: ipc_gpu_kills slices|mps|two-gpus KILLS [SEED] [SECONDS] [calm]\n"),
                   2;
        const int gpus = mode == "two-gpus" ? 2 : 1, here = gpus_here();
        if (here < gpus)
            return fmt::print("skipped: {}\n", here == 0 ? "CUDA finds no GPU here"
                                                         : "no two GPUs here that reach each other"),
                   77;
        const bench::mps_folder folder;
        std::unique_ptr<bench::mps_daemon> daemon;
        if (mode == "mps") daemon = std::make_unique<bench::mps_daemon>(folder);
        if (daemon && !daemon->runs())
            return fmt::print("skipped: no MPS daemon starts here (nvidia-cuda-mps-control)\n"), 77;
        fmt::print("{}: ", mode);
        field f(number(argv[2]), argc > 3 ? number(argv[3]) : 1, gpus, argc > 4 ? number(argv[4]) : 120,
                argc == 6, folder);
        f.inject_faults();
        return f.judge();
    } catch (const std::exception& e) {
        fmt::print(stderr, "{}\n", e.what());
        return 3;
    }
}
