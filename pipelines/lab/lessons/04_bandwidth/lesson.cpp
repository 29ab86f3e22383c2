// Lesson 4: claims about the speed of imported memory.
#include "lab/lessons/list.hpp"

namespace carousel::lab {

const lesson bandwidth_lesson{
    .number = 4,
    .name = "bandwidth",
    .title = "imported against local: bandwidth by size, latency of a chase",
    .question = "How fast does a process read memory that another one has made?",
    .answers = {"As fast as its own", "At half the rate", "At the rate of a pipe"},
    .decided_by = "reading",
    .programs = {{"carousel-lab-bandwidth", "cpu", 60}, {"carousel-lab-bandwidth-cuda", "gpu", 60}},
    .plot = {"reading by size", "bytes", "GB/s", {}},
    .claims = {
        {"reading",
         "IPC has a cost; or: zero copy, no cost.",
         "cpu",
         false,
         {{{above("read.ratio", 0.7), below("read.ratio", 1.4)},
           "Its own {read.own} GB/s at 64 MiB, the other's {read.other}; over all sizes the ratio is "
           "{read.ratio}. "
           "Once mapped there is no other process in the way of a load.",
           0},
          {{above("read.ratio", 0.1), below("read.ratio", 0.7)},
           "The other's memory is read at {read.ratio} times the rate. Look at huge pages: anonymous memory "
           "gets "
           "them by itself here, and a memfd doesn't (/sys/kernel/mm/transparent_hugepage).",
           1},
          {{above("read.ratio", 1.4), below("read.ratio", 10)},
           "The other's memory is faster, {read.ratio} times: its pages lie better here (huge pages, the "
           "NUMA node).",
           0}}},
        {"a chase of pointers",
         "",
         "cpu",
         false,
         {{{above("chase.ratio", 0.7), below("chase.ratio", 1.4)},
           "{chase.own} ns a step at 64 MiB in its own, {chase.other} in the other's; ratio {chase.ratio}."},
          {{above("chase.ratio", 1.4), below("chase.ratio", 10)},
           "{chase.own} ns a step at 64 MiB in its own, {chase.other} in the other's, ratio {chase.ratio}: "
           "small "
           "pages. A chase misses the TLB where anonymous memory has huge pages."},
          {{above("chase.ratio", 0.1), below("chase.ratio", 0.7)},
           "The other's memory has less latency, ratio {chase.ratio}: its pages lie better here."}}},
        {"the maker is killed while it is read",
         "The memory belongs to the process that allocated it.",
         "cpu",
         true,
         {{{above("killed.ratio", 0.3)},
           "The reading went on at {killed.ratio} times the rate: pages belong to whoever maps them or holds "
           "their "
           "descriptor."}}},
        {"CUDA: imported against local",
         "IPC has a cost; or: zero copy, no cost.",
         "gpu",
         false,
         {{{above("cuda.legacy.ratio", 0.95), below("cuda.legacy.ratio", 1.05), above("cuda.vmm.ratio", 0.95),
            below("cuda.vmm.ratio", 1.05)},
           "Kernels read 256 MiB of cudaMalloc at {cuda.local.read} GB/s, imported by a legacy handle at "
           "{cuda.legacy.read} (ratio {cuda.legacy.ratio}), VMM by descriptor at {cuda.vmm.read} "
           "({cuda.vmm.ratio}): no difference."},
          {{above("cuda.legacy.ratio", 0.2), below("cuda.legacy.ratio", 1.5), above("cuda.vmm.ratio", 0.2),
            below("cuda.vmm.ratio", 1.5)},
           "Local {cuda.local.read} GB/s, legacy {cuda.legacy.read}, VMM {cuda.vmm.read}: on this GPU "
           "imported memory is not the same. Is somebody else at work on it, or is it mapped from another "
           "GPU?"}}},
        {"CUDA: a chase of pointers",
         "",
         "gpu",
         false,
         {{{above("cuda.chase.ratio", 0.9), below("cuda.chase.ratio", 1.1)},
           "{cuda.local.chase} ns a step in local memory, {cuda.legacy.chase} in imported: no difference."},
          {{above("cuda.chase.ratio", 1.1), below("cuda.chase.ratio", 50)},
           "{cuda.local.chase} ns a step in local memory, {cuda.legacy.chase} in imported, ratio "
           "{cuda.chase.ratio}."}}},
        {"CUDA: the exporter is killed while it is read",
         "",
         "gpu",
         true,
         {{{above("cuda.killed.ratio", 0.5)},
           "Who had mapped it reads on, at {cuda.killed.ratio} times the rate: the mapping keeps the "
           "memory."}}},
    }};

}  // namespace carousel::lab
