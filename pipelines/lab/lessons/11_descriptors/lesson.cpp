// Lesson 11: claims about memory shared by descriptor.
#include "lab/lesson.hpp"

namespace carousel::lab {

const lesson descriptors_lesson{
    .number = 11,
    .name = "descriptors",
    .title = "memory by descriptor, which outlives its processes",
    .question =
        "64 MiB are created by one process, held by another and used by ten more. All but the holder are "
        "killed, one after the other. What does the memory contain?",
    .answers = {"Nothing: it was freed with its creator", "Everything, including the work of all ten",
                "What the creator wrote, but not what the killed clients wrote"},
    .decided_by = "ten processes, one memory",
    .programs = {{"carousel-lab-descriptors", "cpu", 60}, {"carousel-lab-descriptors-cuda", "gpu", 60}},
    .plot = {"time until a new process can read",
             "",
             "us",
             {{"memfd: descriptor", "descriptor.us"},
              {"memfd: map and touch", "map.us"},
              {"CUDA VMM: import", "cuda.import.us"},
              {"CUDA VMM: map", "cuda.map.us"}}},
    .claims = {
        {"ten processes, one memory",
         "Memory is owned by the process or by the driver.",
         "cpu",
         true,
         {{{equal("processes.number", 10), equal("processes.damaged", 0), equal("processes.count", 10)},
           "Each of {processes.number} clients found every word as its dead predecessor had left it. A new "
           "process gets the descriptor in {descriptor.us} us and reads the first word {map.us} us later.",
           1},
          {{equal("processes.number", 10), above("processes.damaged", 9)},
           "No client found the expected contents.",
           0}}},
        {"its holder is also killed",
         "",
         "cpu",
         true,
         {{{equal("orphan.count", 10), equal("memfd.left", 0)},
           "The process that had mapped it continued to read. When that process unmapped it, the memory was "
           "freed, and nothing was left to remove: memory without a name can't leak."}}},
        {"memory with a name, whose creator is killed",
         "shmget(), shm_open().",
         "shm",
         true,
         {{{equal("sysv.left", 1), equal("posix.left", 1)},
           "Both remain in memory, unused, until they are removed by hand or the machine restarts."}}},
        {"one client truncates it",
         "",
         "cpu",
         true,
         {{{equal("unsealed.signal", 7), equal("sealed.signal", 0), equal("sealed.code", 1)},
           "ftruncate() by one process causes SIGBUS in the other. With F_SEAL_SHRINK the call fails "
           "(EPERM), and the reader continues: Carousel seals all memory that it passes on."}}},
        {"CUDA: three processes, one memory",
         "The memory exists only while its exporter runs.",
         "gpu",
         true,
         {{{equal("cuda.processes.number", 3), equal("cuda.processes.damaged", 0)},
           "The creator of {cuda.mib} MiB of cuMemCreate memory was killed, then each of "
           "{cuda.processes.number} processes that used it, but every word was right. Importing takes "
           "{cuda.import.us} us, mapping {cuda.map.us} us."}}},
        {"CUDA: GPU memory that no process uses",
         "",
         "gpu",
         false,
         {{{above("cuda.held.share", 0.9), below("cuda.freed.share", 0.1)},
           "While no CUDA process had mapped the memory, cudaMemGetInfo did not count its {cuda.mib} MiB as "
           "free, because the descriptor holds them. After the descriptor was closed, they were free again."},
          {{below("cuda.held.share", 0.1)},
           "While only the descriptor held it, the memory counted as free."}}},
        {"CUDA: a read-only mapping",
         "",
         "gpu",
         true,
         {{{equal("cuda.readonly.read", 1), above("cuda.readonly.code", 0), equal("cuda.readonly.whole", 1)},
           "Reads work; a kernel that writes destroys its process's context (error {cuda.readonly.code}), "
           "and the memory is unchanged."}}},
    }};

}  // namespace carousel::lab
