// Lesson 14: claims about ranks of one node.
#include "lab/lessons/list.hpp"

namespace carousel::lab {

const lesson ranks_lesson{
    .number = 14,
    .name = "ranks",
    .title = "ranks of MPI on one node pass blocks as clients of a space",
    .question =
        "A block of 8 MiB goes from rank to rank, by its offset or as a copy. How do the times compare?",
    .answers = {"About the same: memory is fast", "The offset takes less than half of the copy's",
                "The copy is faster: no locks"},
    .decided_by = "a block of 8 MiB, by offset and by copies",
    .space = true,
    .programs = {{"carousel-lab-ranks", "cpu", 60}},
    .plot = {"from one rank to the next, each page touched or copied", "bytes", "us", {}},
    .claims = {
        {"who the ranks are",
         "",
         "cpu",
         false,
         {{{equal("ranks.mpi", 1)},
           "mpirun started them: {ring.number} processes of its job are clients of the space."},
          {{equal("ranks.mpi", 0)},
           "They are {ring.number} forked processes, since mpirun could not start them here."}}},
        {"a ring of ranks",
         "MPI_Send, MPI_Recv.",
         "cpu",
         false,
         {{{equal("ring.wrong", 0)},
           "{ring.laps} laps of three sizes: every page of every block said in each rank what it should."}}},
        {"a block of 8 MiB, by offset and by copies",
         "",
         "cpu",
         false,
         {{{below("offset.share", 0.5), above("offset.share", 0)},
           "{offset.us} us by its offset, a word of each page changed; {pipe.us} us through a pipe: "
           "{offset.share} of it.",
           1},
          {{above("offset.share", 0.5), below("offset.share", 2)},
           "{offset.us} us by its offset, {pipe.us} us through a pipe: on a machine that is busy the turns "
           "of "
           "the ranks count, and not the bytes.",
           0},
          {{above("offset.share", 2)}, "{offset.us} us by its offset, {pipe.us} us through a pipe.", 2}}},
        {"process_vm_readv",
         "",
         "direct",
         false,
         {{{above("direct.us", 0)},
           "{direct.us} us for 8 MiB from one process's memory into another's: one copy, and the right of "
           "ptrace over the other."}}},
        {"MPI_Send",
         "MPI_Send, MPI_Recv.",
         "mpi_send",
         false,
         {{{below("mpi.share", 1), above("mpi.share", 0), equal("mpi.wrong", 0)},
           "{mpi.us} us for 8 MiB by MPI_Send; the block's offset takes {mpi.share} of that. Open MPI copies "
           "too, by process_vm_readv where it may."},
          {{above("mpi.share", 1), equal("mpi.wrong", 0)},
           "{mpi.us} us for 8 MiB by MPI_Send, {offset.us} us by its offset: the ranks wait for each other "
           "longer than a copy takes, on a machine that is busy."}}},
        {"a rank is killed with a block",
         "",
         "cpu",
         true,
         {{{equal("ranks.mpi", 1), equal("killed.free", 4), below("killed.left", 3)},
           "mpirun ended the job (code {killed.code}; {killed.left} of 3 other ranks came through), and the "
           "pool "
           "has all {killed.free} blocks again."},
          {{equal("killed.free", 4), equal("killed.left", 3)},
           "The {killed.left} others went on, with a sentence instead of the block; the pool has all "
           "{killed.free} blocks again."}}},
    }};

}  // namespace carousel::lab
