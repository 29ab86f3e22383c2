// Lesson 4: claims about the speed of imported memory.
#include "lab/lesson.hpp"

namespace carousel::lab {

const lesson bandwidth_lesson{
    .number = 4,
    .name = "bandwidth",
    .title = "imported and local memory compared: bandwidth by size, latency of dependent loads",
    .question = "How fast does a process read memory that another process has created?",
    .answers = {"As fast as its own memory", "At half the rate", "At the rate of a pipe"},
    .decided_by = "read bandwidth",
    .programs = {{"carousel-lab-bandwidth", "cpu", 60}, {"carousel-lab-bandwidth-cuda", "gpu", 60}},
    .plot = {"read bandwidth by size", "bytes", "GB/s", {}},
    .claims = {
        {"read bandwidth",
         "Reading another process's memory is slower than reading local memory.",
         "cpu",
         false,
         {{{above("read.ratio", 0.7), below("read.ratio", 1.4)},
           "At 64 MiB, a process reads its own memory at {read.own} GB/s and the other process's at "
           "{read.other} GB/s; over all sizes the ratio is {read.ratio}. Once memory is mapped, a load "
           "involves no other process.",
           0},
          {{above("read.ratio", 0.1), below("read.ratio", 0.7)},
           "The other process's memory is read at {read.ratio} times the rate. Check huge pages: here "
           "anonymous memory gets them automatically, and a memfd does not "
           "(/sys/kernel/mm/transparent_hugepage).",
           1},
          {{above("read.ratio", 1.4), below("read.ratio", 10)},
           "The other process's memory is {read.ratio} times as fast, because its pages are placed better "
           "here (huge pages, NUMA node).",
           0}}},
        {"dependent loads (a pointer chase)",
         "",
         "cpu",
         false,
         {{{above("chase.ratio", 0.7), below("chase.ratio", 1.4)},
           "At 64 MiB, a step takes {chase.own} ns in a process's own memory and {chase.other} ns in the "
           "other process's; the ratio is {chase.ratio}."},
          {{above("chase.ratio", 1.4), below("chase.ratio", 10)},
           "At 64 MiB, a step takes {chase.own} ns in a process's own memory and {chase.other} ns in the "
           "other process's; the ratio is {chase.ratio}. The other process's memory has small pages, so its "
           "loads miss the TLB; anonymous memory has huge pages."},
          {{above("chase.ratio", 0.1), below("chase.ratio", 0.7)},
           "The other process's memory has a lower latency (ratio {chase.ratio}), because its pages are "
           "placed better here."}}},
        {"the creator is killed while its memory is read",
         "The memory belongs to the process that allocated it.",
         "cpu",
         true,
         {{{above("killed.ratio", 0.3)},
           "The read continued at {killed.ratio} times the rate, because pages belong to every process that "
           "maps them or holds their descriptor."}}},
        {"CUDA: imported and local memory compared",
         "Reading another process's memory is slower than reading local memory.",
         "gpu",
         false,
         {{{above("cuda.legacy.ratio", 0.95), below("cuda.legacy.ratio", 1.05), above("cuda.vmm.ratio", 0.95),
            below("cuda.vmm.ratio", 1.05)},
           "Kernels read 256 MiB of local cudaMalloc memory at {cuda.local.read} GB/s, of memory imported by "
           "a legacy handle at {cuda.legacy.read} (ratio {cuda.legacy.ratio}), and of VMM memory imported by "
           "descriptor at {cuda.vmm.read} ({cuda.vmm.ratio}). There is no difference."},
          {{above("cuda.legacy.ratio", 0.2), below("cuda.legacy.ratio", 1.5), above("cuda.vmm.ratio", 0.2),
            below("cuda.vmm.ratio", 1.5)},
           "Kernels read local memory at {cuda.local.read} GB/s, memory imported by a legacy handle at "
           "{cuda.legacy.read}, and imported VMM memory at {cuda.vmm.read}: on this GPU the rates differ. "
           "Check whether another process uses the GPU, or whether the memory is on another GPU."}}},
        {"CUDA: dependent loads (a pointer chase)",
         "",
         "gpu",
         false,
         {{{above("cuda.chase.ratio", 0.9), below("cuda.chase.ratio", 1.1)},
           "{cuda.local.chase} ns per step in local memory, {cuda.legacy.chase} in imported: no difference."},
          {{above("cuda.chase.ratio", 1.1), below("cuda.chase.ratio", 50)},
           "{cuda.local.chase} ns per step in local memory, {cuda.legacy.chase} in imported, ratio "
           "{cuda.chase.ratio}."}}},
        {"CUDA: the exporter is killed while its memory is read",
         "",
         "gpu",
         true,
         {{{above("cuda.killed.ratio", 0.5)},
           "A process that had mapped it continues to read, at {cuda.killed.ratio} times the rate, because "
           "the mapping keeps the memory."}}},
    }};

}  // namespace carousel::lab
