// Lesson 12: claims about the cost of isolation.
#include "lab/lessons/list.hpp"

namespace carousel::lab {

const lesson isolation_lesson{
    .number = 12,
    .name = "isolation",
    .title = "time slices, MPS, processes and threads: what isolation costs and buys",
    .question =
        "Two workers take turns on one processor. What do two processes pay for a turn, against two threads?",
    .answers = {"Less than half as much again", "Up to three times as much", "More than that"},
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
           "{processes.ratio}; with 2 MiB to look at {threads.touching_us} and {processes.touching_us}. What "
           "a "
           "switch costs is the kernel's way through the scheduler, not the change of address space.",
           0},
          {{above("processes.ratio", 1.5), below("processes.ratio", 3)},
           "{threads.switch_us} us between threads, {processes.switch_us} between processes, ratio "
           "{processes.ratio}; with 2 MiB to look at {threads.touching_us} and {processes.touching_us}: a "
           "new "
           "address space each time, and its translations anew.",
           1},
          {{above("processes.ratio", 3), below("processes.ratio", 1000)},
           "{threads.switch_us} us between threads, {processes.switch_us} between processes: this kernel (or "
           "its "
           "hypervisor) makes a change of address space dear.",
           2}}},
        {"the start",
         "",
         "cpu",
         false,
         {{{above("process.start_us", 0), above("thread.start_us", 0)},
           "A process, forked and reaped, {process.start_us} us; a thread {thread.start_us} us. With a GPU "
           "context it is thousands of times as much: hence standbys."}}},
        {"a thread writes to where nothing is",
         "",
         "cpu",
         true,
         {{{equal("threads.survives", 0)}, "The other thread is dead, too: they were one process."},
          {{equal("threads.survives", 1)}, "The other thread went on: something here catches SIGSEGV."}}},
        {"a process writes to where nothing is",
         "",
         "cpu",
         true,
         {{{equal("processes.survives", 1)},
           "The other process went on, held up {processes.stall_us} us at most. That is what the price is "
           "paid "
           "for."}}},
        {"CUDA: a hop in time slices",
         "Processes run on a GPU side by side.",
         "gpu",
         false,
         {{{above("cuda.slices.ratio", 3)},
           "{cuda.slices.hop_us} us from a kernel of one process to a kernel of another; within one process "
           "{cuda.one.hop_us}. The whole GPU changes hands."},
          {{above("cuda.slices.ratio", 0.3), below("cuda.slices.ratio", 3.001)},
           "{cuda.slices.hop_us} us, within one process {cuda.one.hop_us}: this driver doesn't make them "
           "wait for "
           "a slice. Is MPS on?"}}},
        {"CUDA: a context's memory",
         "",
         "gpu",
         false,
         {{{above("cuda.context.mib", 0)},
           "{cuda.context.mib} MiB of the GPU for each process, before it has any data."}}},
        {"CUDA: a neighbour's kernel faults, in time slices",
         "",
         "gpu",
         true,
         {{{equal("cuda.slices.code", 0), above("cuda.slices.faulty", 0)},
           "The faulty one got error {cuda.slices.faulty}; its neighbour none, held up "
           "{cuda.slices.stall_ms} ms "
           "at most."},
          {{above("cuda.slices.code", 0), above("cuda.slices.faulty", 0)},
           "The neighbour got error {cuda.slices.code}: these two shared a context's fate. Is MPS on?"}}},
        {"CUDA: a hop under MPS",
         "",
         "mps",
         false,
         {{{above("cuda.mps.hop_us", 0), below("cuda.mps.ratio", 3)},
           "{cuda.mps.hop_us} us, within one process {cuda.one.hop_us}: nobody waits for a slice."},
          {{above("cuda.mps.ratio", 3), below("cuda.mps.ratio", 1000)},
           "{cuda.mps.hop_us} us, within one process {cuda.one.hop_us}: more than it should be."}}},
        {"CUDA: a neighbour's kernel faults, under MPS",
         "MPS clients are isolated from each other.",
         "mps",
         true,
         {{{above("cuda.mps.code", 0), above("cuda.mps.faulty", 0)},
           "The faulty one got error {cuda.mps.faulty}, and its neighbour {cuda.mps.code}: every client of "
           "the "
           "server shares the fault. Memory that a process without CUDA holds survives it."},
          {{equal("cuda.mps.code", 0), above("cuda.mps.faulty", 0)},
           "The neighbour went on: this driver isolates its MPS clients' faults."}}},
    }};

}  // namespace carousel::lab
