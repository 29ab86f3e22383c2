// Sends blocks from one rank to another by MPI_Send, as in the textbooks, for comparison with passing a
// block's offset. Usage: mpirun -n 2 carousel-lab-ranks-mpi
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0, ranks = 0, wrong = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != 2) MPI_Abort(MPI_COMM_WORLD, 2);
    constexpr int times = 9, sizes[] = {64 << 10, 1 << 20, 8 << 20};
    for (const int bytes : sizes) {
        std::vector<char> block(static_cast<size_t>(bytes));
        std::vector<double> us;
        for (int k = 0; k < times; ++k) {  // sends the block back, so that one clock measures the round trip
            const double begin = MPI_Wtime();
            if (rank == 0) {
                block.back() = static_cast<char>(k);
                MPI_Send(block.data(), bytes, MPI_CHAR, 1, k, MPI_COMM_WORLD);
            }
            MPI_Recv(block.data(), bytes, MPI_CHAR, 1 - rank, k, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (rank == 1) ++block.back(), MPI_Send(block.data(), bytes, MPI_CHAR, 0, k, MPI_COMM_WORLD);
            us.push_back((MPI_Wtime() - begin) * 1e6 / 2);
            wrong += rank == 0 && block.back() != static_cast<char>(k + 1);
        }
        std::sort(us.begin(), us.end());
        if (rank == 0)
            std::printf("curve MPI_Send %d %.2f\nfigure mpi.us %.1f\n", bytes, us[times / 2], us[times / 2]);
    }
    if (rank == 0) std::printf("figure mpi.wrong %d\n", wrong);
    MPI_Finalize();
    return 0;
}
