// MPI ranks on one node that share work and memory through a space:
//   mpirun -n 4 ranks SPACE TASKS
// mpirun ends all ranks when one of them dies. Without mpirun, start any number of processes, one of them
// with rank 0:
//   ranks SPACE TASKS RANK
#include <mpi.h>

#include <carousel/ipc.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

using std::chrono::milliseconds;
using std::chrono::seconds;

struct task {
    unsigned number;
};
struct result {
    unsigned number, rank;
};
constexpr unsigned values = 1024;  // per result

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    const bool mpi = argc == 3;
    int rank = mpi ? 0 : std::atoi(argv[3]);
    if (mpi) MPI_Init(&argc, &argv), MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const unsigned count = static_cast<unsigned>(std::atoi(argv[2]));
    unsigned done = 0, all_done = 0;
    try {
        auto space = carousel::ipc::open(argv[1], {.wait_s = 20});
        auto pool = space.pool("results", 2 << 20, 8192);
        auto results = space.block_queue<result>("done", 64, pool);
        auto tasks = space.work_queue<task>("tasks", 4096, 15);
        if (rank == 0) {
            for (unsigned k = 0; k < count; ++k) tasks.submit({k}, seconds(20));
            std::vector<bool> have(count);
            double sum = 0;
            unsigned got = 0, again = 0;
            while (got < count) {
                const auto r = results.receive(seconds(20));
                const auto* in = reinterpret_cast<const double*>(r.block.data().data());
                const bool first = !have[r.about.number];
                have[r.about.number] = true;
                for (unsigned k = 0; first && k < values; ++k) sum += in[k];
                ++(first ? got : again);
            }
            std::printf("%u results, sum %.0f, %u again\n", got, sum, again);
        } else {
            for (;;) {
                // The result is sent before the commit: after a crash in between, the result is sent twice.
                auto claimed = tasks.claim(seconds(2));
                auto block = pool.acquire(values * sizeof(double), seconds(20));
                auto* out = reinterpret_cast<double*>(block.data().data());
                for (unsigned k = 0; k < values; ++k) out[k] = claimed.value().number + k;
                // Simulates longer work, so that a kill interrupts a task.
                std::this_thread::sleep_for(milliseconds(mpi ? 0 : 2));
                results.send(std::move(block), {claimed.value().number, static_cast<unsigned>(rank)},
                             seconds(20));
                claimed.commit();
                ++done;
            }
        }
    } catch (const carousel::ipc::timed_out& e) {  // for a worker this exception means that no task is left
        if (rank == 0) return std::fprintf(stderr, "rank 0: %s\n", e.what()), 1;
    } catch (const carousel::error& e) {
        std::fprintf(stderr, "rank %d: %s\n", rank, e.what());
        return e.code();
    }
    if (mpi) MPI_Reduce(&done, &all_done, 1, MPI_UNSIGNED, MPI_SUM, 0, MPI_COMM_WORLD), MPI_Finalize();
    std::printf("rank %d: %u tasks\n", rank, done);
    if (mpi && rank == 0) std::printf("all ranks: %u tasks\n", all_done);
    return 0;
}
