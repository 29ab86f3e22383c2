// Lesson 12: claims about the cost of isolation.
#include "lab/lesson.hpp"

namespace carousel::lab {

const lesson isolation_lesson{
    .number = 12,
    .name = "isolation",
    .title = "time slices, MPS, processes and threads: cost and benefit of isolation",
    .question =
        "Two workers take turns on one processor. How much more does a turn cost with two processes than "
        "with two threads?",
    .answers = {"Less than 1.5 times as much", "Up to three times as much", "More than that"},
    .decided_by = "a turn",
    .programs = {{"carousel-lab-isolation", "cpu", 60}, {"carousel-lab-isolation-cuda", "gpu", 90}},
    .plot = {"from one worker to the other",
             "",
             "us",
             {{"CPU: threads", "threads.switch_us"},
              {"CPU: processes", "processes.switch_us"},
              {"CPU: threads, 2 MiB each", "threads.touching_us"},
              {"CPU: processes, 2 MiB each", "processes.touching_us"},
              {"GPU: one process", "cuda.one.hop_us"},
              {"GPU: MPS", "cuda.mps.hop_us"},
              {"GPU: time slices", "cuda.slices.hop_us"}}},
    .claims = {
        {"a turn",
         "",
         "cpu",
         false,
         {{{above("processes.ratio", 0.2), below("processes.ratio", 1.5)},
           "{threads.switch_us} us between threads, {processes.switch_us} between processes, ratio "
           "{processes.ratio}; if each turn reads 2 MiB, {threads.touching_us} and {processes.touching_us}. "
           "The cost of a switch is caused by the kernel's scheduler, not by the change of address space.",
           0},
          {{above("processes.ratio", 1.5), below("processes.ratio", 3)},
           "{threads.switch_us} us between threads, {processes.switch_us} between processes, ratio "
           "{processes.ratio}; if each turn reads 2 MiB, {threads.touching_us} and {processes.touching_us}, "
           "because each switch changes the address space and reloads its address translations.",
           1},
          {{above("processes.ratio", 3), below("processes.ratio", 1000)},
           "{threads.switch_us} us between threads, {processes.switch_us} between processes: this kernel (or "
           "its hypervisor) makes a change of address space expensive.",
           2}}},
        {"the start of a worker",
         "",
         "cpu",
         false,
         {{{above("process.start_us", 0), above("thread.start_us", 0)},
           "A process takes {process.start_us} us to fork and reap, a thread {thread.start_us} us. A process "
           "with a GPU context takes thousands of times as long, which is the reason for standby "
           "processes."}}},
        {"a thread writes to an unmapped address",
         "",
         "cpu",
         true,
         {{{equal("threads.survives", 0)}, "The other thread is also dead, because both are in one process."},
          {{equal("threads.survives", 1)},
           "The other thread continued, because something here catches SIGSEGV."}}},
        {"a process writes to an unmapped address",
         "",
         "cpu",
         true,
         {{{equal("processes.survives", 1)},
           "The other process continued, delayed by at most {processes.stall_us} us. This is the benefit of "
           "separate processes."}}},
        {"CUDA: a hop in time slices",
         "Processes run on a GPU concurrently.",
         "gpu",
         false,
         {{{above("cuda.slices.ratio", 3)},
           "A hop takes {cuda.slices.hop_us} us from a kernel of one process to a kernel of another, and "
           "{cuda.one.hop_us} us within one process. The whole GPU switches between the processes."},
          {{above("cuda.slices.ratio", 0.3), below("cuda.slices.ratio", 3.001)},
           "A hop takes {cuda.slices.hop_us} us, and {cuda.one.hop_us} us within one process: on this driver "
           "the kernels do not wait for a time slice. Check whether MPS is on."}}},
        {"CUDA: a context's memory",
         "",
         "gpu",
         false,
         {{{above("cuda.context.mib", 0)},
           "{cuda.context.mib} MiB of GPU memory per process, before it allocates any data."}}},
        {"CUDA: another process's kernel faults, in time slices",
         "",
         "gpu",
         true,
         {{{equal("cuda.slices.code", 0), above("cuda.slices.faulty", 0)},
           "The faulty process got error {cuda.slices.faulty}; the other process got none and was delayed by "
           "at most {cuda.slices.stall_ms} ms."},
          {{above("cuda.slices.code", 0), above("cuda.slices.faulty", 0)},
           "The other process got error {cuda.slices.code}, because the two shared a context. Check whether "
           "MPS is on."}}},
        {"CUDA: a hop under MPS",
         "",
         "mps",
         false,
         {{{above("cuda.mps.hop_us", 0), below("cuda.mps.ratio", 3)},
           "A hop takes {cuda.mps.hop_us} us, and {cuda.one.hop_us} us within one process, because no "
           "process waits for a time slice."},
          {{above("cuda.mps.ratio", 3), below("cuda.mps.ratio", 1000)},
           "A hop takes {cuda.mps.hop_us} us, and {cuda.one.hop_us} us within one process, which is more "
           "than expected."}}},
        {"CUDA: another process's kernel faults, under MPS",
         "MPS clients are isolated from each other.",
         "mps",
         true,
         {{{above("cuda.mps.code", 0), above("cuda.mps.faulty", 0)},
           "The faulty process got error {cuda.mps.faulty}, and the other process got {cuda.mps.code}, "
           "because every client of the server shares the fault. Memory that a process without CUDA holds "
           "survives it."},
          {{equal("cuda.mps.code", 0), above("cuda.mps.faulty", 0)},
           "The other process continued, because this driver isolates faults of its MPS clients."}}},
    }};

}  // namespace carousel::lab
