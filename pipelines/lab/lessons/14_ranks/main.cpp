// Ranks of one node that pass blocks of memory in a ring, as clients of a space. If Open MPI is installed,
// mpirun starts this program again once per rank; otherwise the ranks are forked. For comparison, the program
// also copies data between two processes, by a pipe and by process_vm_readv (as MPI's own transport does).
// Usage: carousel-lab-ranks SPACE (the name given to `carousel hold`)
#include <poll.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <carousel/ipc.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "../program.hpp"

namespace {

using lesson::end_of;
using lesson::now_us;
using lesson::start;
using std::chrono::seconds;
constexpr unsigned ranks = 4, laps = 25, page = 4096, blocks = 4, dying_rank = 2;
constexpr size_t most = 8 << 20, sizes[] = {64 << 10, 1 << 20, most};
std::string space;

/// A rank's result.
struct word {
    unsigned rank, size, wrong, hops;
    double us;
};
/// The first word of each page of a block counts the block's hops. Returns false if a count is wrong.
bool advance(std::span<std::byte> block, unsigned hops) {
    bool whole = true;
    for (size_t at = 0; at < block.size(); at += page) {
        unsigned seen = 0;
        std::memcpy(&seen, &block[at], sizeof seen);
        whole = whole && seen == hops;
        seen = hops + 1;
        std::memcpy(&block[at], &seen, sizeof seen);
    }
    return whole;
}
struct ring {
    carousel::ipc::space lab = carousel::ipc::open(space);
    carousel::ipc::shared_pool pool = lab.pool("blocks", blocks* most);
    carousel::ipc::shared_queue<word> words = lab.queue<word>("words", 64);
    std::vector<carousel::ipc::block_queue<unsigned>> to;  // one queue per rank
    explicit ring(const char* job) {
        for (unsigned r = 0; r < ranks; ++r)
            to.push_back(lab.block_queue<unsigned>(std::string(job) + std::to_string(r), 4, pool));
    }
};

/// Runs one rank's part of a round, in which blocks of every size circulate. Rank 0 starts the round and
/// measures the time per hop.
int pass_round(unsigned rank) {
    ring all("to-");
    for (unsigned size = 0; size < std::size(sizes); ++size) {
        unsigned wrong = 0, hops = 0;
        double begin = 0;
        for (unsigned lap = 0; lap < laps; ++lap) {
            if (rank == 0 && lap == 0) {
                auto block = all.pool.acquire(sizes[size], seconds(5));
                std::memset(block.data().data(), 0, block.data().size());
                begin = now_us();
                wrong += !advance(block.data(), hops);
                all.to[1].send(std::move(block), ++hops, seconds(5));
                continue;
            }
            auto got = all.to[rank].receive(seconds(10));
            hops = got.about;
            wrong += !advance(got.block.data(), hops);
            all.to[(rank + 1) % ranks].send(std::move(got.block), ++hops, seconds(5));
        }
        double us = 0;
        if (rank == 0) us = (now_us() - begin) / (hops ? hops : 1);
        if (rank == 0) (void)all.to[0].receive(seconds(10));  // ends the last lap and frees the block
        all.words.push({rank, size, wrong, hops, us}, seconds(5));
    }
    return 0;
}
/// A rank is killed while it holds a block that it has received. The remaining ranks report after a timeout
/// of two seconds.
int pass_and_die(unsigned rank) {
    ring all("last-");
    try {
        if (rank == 0) {
            auto block = all.pool.acquire(most, seconds(5));
            all.to[1].send(std::move(block), 1, seconds(5));
        }
        auto got = all.to[rank].receive(seconds(2));
        if (rank == dying_rank) return kill(getpid(), SIGKILL);
        all.to[(rank + 1) % ranks].send(std::move(got.block), 1, seconds(5));
    } catch (const carousel::ipc::timed_out&) {
        // expected for ranks downstream of the dead rank
    }
    usleep(rank == 1 ? 2'000'000 : 0);  // rank 1 has done its part, but does not exit yet
    all.words.push({rank, 99, 0, 0, 0}, seconds(5));
    return 0;
}
int rank_main(const std::string& job, unsigned rank) {
    return job == "die" ? pass_and_die(rank) : pass_round(rank);
}

/// Returns the job's exit code; `by_mpi`: runs the job by mpirun, which starts this program once per rank.
int run_job(const std::string& job, bool by_mpi, const char* self) {
    if (by_mpi)
        return end_of(start([&] {
            setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1), setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
            dup2(STDERR_FILENO, STDOUT_FILENO);  // mpirun's own output contains no figures
            execlp("mpirun", "mpirun", "--oversubscribe", "--bind-to", "none", "--mca", "plm", "isolated",
                   "-n", std::to_string(ranks).c_str(), self, space.c_str(), job.c_str(), nullptr);
            return 127;
        }));
    int code = 0;
    std::vector<pid_t> pids;
    for (unsigned r = 0; r < ranks; ++r) pids.push_back(start([&, r] { return rank_main(job, r); }));
    for (const pid_t pid : pids) code = end_of(pid) != 0 ? 1 : code;
    return code;
}

double print_round(ring& all) {
    unsigned wrong = 0, results = 0;
    double us = 0;
    for (word w; results < ranks * std::size(sizes); ++results) {
        w = all.words.pop(seconds(5));
        wrong += w.wrong;
        if (w.rank != 0) continue;
        std::printf("curve by-offset %zu %.2f\n", sizes[w.size], w.us);
        if (sizes[w.size] == most) us = w.us;
    }
    std::printf("figure ring.wrong %u\nfigure ring.number %u\nfigure ring.laps %u\nfigure offset.us %.1f\n",
                wrong, ranks, laps, us);
    return us;
}

/// Returns the median time in us to copy `bytes` from a child's memory, by a pipe or by process_vm_readv; 0
/// if the copy fails.
double copy_us(size_t bytes, bool by_pipe) {
    void* at = mmap(nullptr, most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    int ways[2];
    if (at == MAP_FAILED || pipe(ways) != 0) return 0;
    constexpr unsigned times = 9;
    const pid_t sender = start([&] {
        std::memset(at, 1, most);
        char go = 1;
        if (!by_pipe) return write(ways[1], &go, 1) == 1 ? pause() : 1;
        for (unsigned k = 0; k < times; ++k)
            for (size_t sent = 0; sent < bytes;) {
                const ssize_t n = write(ways[1], static_cast<char*>(at) + sent, bytes - sent);
                if (n <= 0) return 1;
                sent += static_cast<size_t>(n);
            }
        return 0;
    });
    char go = 0;
    bool well = by_pipe || read(ways[0], &go, 1) == 1;
    std::vector<double> each;
    for (unsigned k = 0; k < times && well; ++k) {
        const double begin = now_us();
        if (by_pipe)
            for (size_t got = 0; got < bytes && well;) {
                const ssize_t n = read(ways[0], static_cast<char*>(at) + got, bytes - got);
                well = n > 0, got += well ? static_cast<size_t>(n) : 0;
            }
        else {
            const iovec here{at, bytes}, there{at, bytes};
            well = process_vm_readv(sender, &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
        }
        each.push_back(now_us() - begin);
    }
    well = well && static_cast<char*>(at)[bytes - 1] == 1;
    kill(sender, SIGKILL);
    (void)end_of(sender);
    close(ways[0]), close(ways[1]), munmap(at, most);
    std::sort(each.begin(), each.end());
    return well ? each[each.size() / 2] : 0;
}
double copies(const char* name, bool by_pipe) {
    double us = 0;
    for (const size_t bytes : sizes)
        if ((us = copy_us(bytes, by_pipe)) > 0) std::printf("curve %s %zu %.2f\n", name, bytes, us);
    return us;
}

/// Measures MPI_Send by the companion program; returns the time in us for the largest block, 0 if that
/// program cannot run here.
double by_mpi_send(bool by_mpi, const std::string& self) {
    const std::string program = self + "-mpi";
    if (!by_mpi || access(program.c_str(), X_OK) != 0) {
        std::printf("missing mpi_send %s\n",
                    by_mpi ? "this build has no Open MPI" : "no mpirun here can start ranks");
        return 0;
    }
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1), setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    FILE* results =
        popen(("timeout 20 mpirun --oversubscribe --bind-to none --mca plm isolated -n 2 '" + program + "'")
                  .c_str(),
              "r");
    char line[200];
    double us = 0, last = 0;
    while (results != nullptr && std::fgets(line, sizeof line, results) != nullptr) {
        std::fputs(line, stdout);
        if (std::sscanf(line, "figure mpi.us %lf", &last) == 1) us = last;
    }
    const bool well = results != nullptr && pclose(results) == 0 && us > 0;
    if (!well) std::printf("missing mpi_send mpirun could not start two ranks\n");
    return well ? us : 0;
}

/// Runs the job in which a rank is killed. Waits until the dead rank's block is free again, and counts the
/// remaining ranks.
void killed(ring& all, bool by_mpi, const char* self) {
    const int code = run_job("die", by_mpi, self);
    const double begin = now_us();
    while (all.pool.state().free_bytes < blocks * most && now_us() < begin + 5e6) usleep(100);
    unsigned left = 0;
    while (all.words.try_pop()) ++left;
    std::printf("figure killed.left %u\nfigure killed.code %d\nfigure killed.free %d\n", left, code,
                static_cast<int>(all.pool.state().free_bytes / most));
}

void run(const char* self) {
    ring all("to-");
    bool by_mpi = end_of(start([] {
                      (void)!freopen("/dev/null", "w", stdout);
                      execlp("mpirun", "mpirun", "--version", nullptr);
                      return 127;
                  })) == 0;
    if (!by_mpi)
        std::printf("Open MPI is not installed here (no mpirun), so the ranks are forked processes.\n");
    if (by_mpi && run_job("ring", true, self) != 0) {
        std::printf(
            "mpirun is installed but could not start four ranks, so the ranks are forked processes.\n");
        by_mpi = false;
        while (all.words.try_pop()) {
        }
        if (run_job("ring", false, self) != 0)
            throw carousel::error(carousel::exit_code::stage_failed, "no ring");
    } else if (!by_mpi && run_job("ring", false, self) != 0) {
        throw carousel::error(carousel::exit_code::stage_failed, "a rank did not finish");
    }
    std::printf("figure ranks.mpi %d\n", by_mpi);
    const double offset_us = print_round(all);
    const double pipe_us = copies("pipe", true), direct_us = copies("process_vm_readv", false);
    std::printf("figure pipe.us %.1f\nfigure offset.share %.3f\n", pipe_us, offset_us / pipe_us);
    if (direct_us > 0) std::printf("figure direct.us %.1f\n", direct_us);
    if (direct_us <= 0)
        std::printf("missing direct process_vm_readv is refused here: %s\n", std::strerror(errno));
    if (const double us = by_mpi_send(by_mpi, self); us > 0)
        std::printf("figure mpi.share %.3f\n", offset_us / us);
    std::fflush(stdout);
    killed(all, by_mpi, self);
}

}  // namespace

int main(int argc, char** argv) {
    if (lesson::wants_usage(argc, argv, "carousel-lab-ranks SPACE")) return 2;
    space = argc > 1 ? argv[1] : "lab";
    try {
        const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
        if (argc > 2 && rank != nullptr) return rank_main(argv[2], static_cast<unsigned>(std::atoi(rank)));
        if (argc > 2) return 2;  // this mpirun does not set the rank's number
        run(std::filesystem::read_symlink("/proc/self/exe").c_str());
        return 0;
    } catch (const carousel::error& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return e.code();
    }
}
