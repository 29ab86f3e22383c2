// MPI_Send round trips between two ranks, for comparison with the hops of `carousel bench ipc`. Built if Open
// MPI is installed, started by mpirun with two ranks: carousel-bench-mpi ROUND_TRIPS. Rank 0 prints the
// median and the 95th percentile of the one-way time in us, the number of round trips, and the number of
// wrong round trips.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
    const int round_trips = argc > 1 ? std::atoi(argv[1]) : 0;
    if (round_trips < 1) return 2;
    MPI_Init(&argc, &argv);
    int rank = 0, ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != 2) MPI_Abort(MPI_COMM_WORLD, 2);
    const int warm_up = round_trips / 10 + 1, other = 1 - rank;
    int wrong = 0;
    std::vector<double> us;
    for (int k = 1, v = 0; k <= round_trips + warm_up; ++k) {
        const auto begin = std::chrono::steady_clock::now();
        if (rank == 0) MPI_Send(&k, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
        MPI_Recv(&v, 1, MPI_INT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1) MPI_Send(&k, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
        const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
        if (k > warm_up) us.push_back(took.count() / 2);
        wrong += v != k;
    }
    if (rank == 0) {
        std::sort(us.begin(), us.end());
        std::printf("%.4f %.4f %zu %d\n", us[us.size() / 2], us[us.size() * 95 / 100], us.size(), wrong);
    }
    MPI_Finalize();
    return 0;
}
