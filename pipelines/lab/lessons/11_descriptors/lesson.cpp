// Lesson 11: claims about memory shared by descriptor.
#include "lab/lessons/list.hpp"

namespace carousel::lab {

const lesson descriptors_lesson{
    .number = 11,
    .name = "descriptors",
    .title = "memory by descriptor, which outlives everybody",
    .question =
        "64 MiB made by one process, held by another, used by ten more. All but the holder are killed, one "
        "behind the other. What is in it?",
    .answers = {"Nothing: it went with its maker", "Everything, the work of all ten included",
                "What the maker wrote, but not what the killed clients did"},
    .decided_by = "ten lives, one memory",
    .programs = {{"carousel-lab-descriptors", "cpu", 60}, {"carousel-lab-descriptors-cuda", "gpu", 60}},
    .plot = {"what a newcomer needs until it can read",
             "",
             "us",
             {{"memfd: descriptor", "descriptor.us"},
              {"memfd: map and touch", "map.us"},
              {"CUDA VMM: import", "cuda.import.us"},
              {"CUDA VMM: map", "cuda.map.us"}}},
    .claims = {
        {"ten lives, one memory",
         "Memory is owned by the process, or by the driver.",
         "cpu",
         true,
         {{{equal("lives.number", 10), equal("lives.damaged", 0), equal("lives.count", 10)},
           "Each of {lives.number} clients found every word as the dead one before it had left it. A "
           "newcomer "
           "has the descriptor in {descriptor.us} us and its first word {map.us} us later.",
           1},
          {{equal("lives.number", 10), above("lives.damaged", 9)},
           "No client found what should be there.",
           0}}},
        {"its holder is killed, too",
         "",
         "cpu",
         true,
         {{{equal("orphan.count", 10), equal("memfd.left", 0)},
           "Who had it mapped read on. When that one let go nobody had it, and nothing was left to clear "
           "away: memory without a name can't be forgotten."}}},
        {"memory with a name, its maker killed",
         "shmget(), shm_open().",
         "shm",
         true,
         {{{equal("sysv.left", 1), equal("posix.left", 1)},
           "Both were left, with nobody using them, until somebody removes them by hand or the machine "
           "starts anew."}}},
        {"one client makes it shorter",
         "",
         "cpu",
         true,
         {{{equal("unsealed.signal", 7), equal("sealed.signal", 0), equal("sealed.code", 1)},
           "ftruncate() by one and SIGBUS for the other. With F_SEAL_SHRINK the call is refused (EPERM), and "
           "the reader reads: Carousel seals all that it gives away."}}},
        {"CUDA: three lives, one memory",
         "The driver owns it; or: the exporter must live.",
         "gpu",
         true,
         {{{equal("cuda.lives.number", 3), equal("cuda.lives.damaged", 0)},
           "{cuda.mib} MiB of cuMemCreate, its maker killed, then each of {cuda.lives.number} that used it: "
           "every word was right. Import {cuda.import.us} us, map {cuda.map.us} us."}}},
        {"CUDA: memory of a GPU that no process uses",
         "",
         "gpu",
         false,
         {{{above("cuda.held.share", 0.9), below("cuda.freed.share", 0.1)},
           "While no process with CUDA had it, its {cuda.mib} MiB were missing from what cudaMemGetInfo "
           "calls "
           "free: the descriptor holds them. When that was closed they came back."},
          {{below("cuda.held.share", 0.1)},
           "While only the descriptor held it, the memory counted as free."}}},
        {"CUDA: a mapping that may only read",
         "",
         "gpu",
         true,
         {{{equal("cuda.readonly.read", 1), above("cuda.readonly.code", 0), equal("cuda.readonly.whole", 1)},
           "It reads; a kernel that writes ends its process's context (error {cuda.readonly.code}), and the "
           "memory is as it was."}}},
    }};

}  // namespace carousel::lab
