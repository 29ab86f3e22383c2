// Lesson 14: claims about ranks of one node.
#include "lab/lesson.hpp"

namespace carousel::lab {

const lesson ranks_lesson{
    .number = 14,
    .name = "ranks",
    .title = "MPI ranks on one node pass blocks as clients of a space",
    .question =
        "A block of 8 MiB is passed from rank to rank, by its offset or as a copy. How do the times compare?",
    .answers = {"About the same: memory is fast", "The offset takes less than half the time of the copy",
                "The copy is faster: it needs no locks"},
    .decided_by = "a block of 8 MiB, by offset and by copies",
    .space = true,
    .programs = {{"carousel-lab-ranks", "cpu", 60}},
    .plot = {"from one rank to the next, with each page touched or copied", "bytes", "us", {}},
    .claims = {
        {"how the ranks were started",
         "",
         "cpu",
         false,
         {{{equal("ranks.mpi", 1)},
           "mpirun started them: the {ring.number} processes of its job are clients of the space."},
          {{equal("ranks.mpi", 0)},
           "They are {ring.number} forked processes, because mpirun could not start them here."}}},
        {"a ring of ranks",
         "MPI_Send, MPI_Recv.",
         "cpu",
         false,
         {{{equal("ring.wrong", 0)},
           "In {ring.laps} laps of three sizes, every page of every block had the expected contents in each "
           "rank."}}},
        {"a block of 8 MiB, by offset and by copies",
         "",
         "cpu",
         false,
         {{{below("offset.share", 0.5), above("offset.share", 0)},
           "It takes {offset.us} us by its offset, with one word of each page changed, and {pipe.us} us "
           "through a pipe. The ratio is {offset.share}.",
           1},
          {{above("offset.share", 0.5), below("offset.share", 2)},
           "It takes {offset.us} us by its offset and {pipe.us} us through a pipe, because on a busy machine "
           "the time depends on the scheduling of the ranks, not on the bytes.",
           0},
          {{above("offset.share", 2)}, "{offset.us} us by its offset, {pipe.us} us through a pipe.", 2}}},
        {"process_vm_readv",
         "",
         "direct",
         false,
         {{{above("direct.us", 0)},
           "{direct.us} us for 8 MiB from one process's memory into another's: one copy, which needs ptrace "
           "permission for the other process."}}},
        {"MPI_Send",
         "MPI_Send, MPI_Recv.",
         "mpi_send",
         false,
         {{{below("mpi.share", 1), above("mpi.share", 0), equal("mpi.wrong", 0)},
           "{mpi.us} us for 8 MiB by MPI_Send; passing the offset takes {mpi.share} of that. Open MPI also "
           "copies, with process_vm_readv if permitted."},
          {{above("mpi.share", 1), equal("mpi.wrong", 0)},
           "It takes {mpi.us} us for 8 MiB by MPI_Send and {offset.us} us by its offset, because on a busy "
           "machine the ranks wait for each other longer than a copy takes."}}},
        {"a rank is killed while it has a block",
         "",
         "cpu",
         true,
         {{{equal("ranks.mpi", 1), equal("killed.free", 4), below("killed.left", 3)},
           "mpirun ended the job (code {killed.code}; {killed.left} of 3 other ranks finished), and all "
           "{killed.free} blocks are back in the pool."},
          {{equal("killed.free", 4), equal("killed.left", 3)},
           "The {killed.left} other ranks continued, with an error message instead of the block; all "
           "{killed.free} blocks are back in the pool."}}},
    }};

}  // namespace carousel::lab
