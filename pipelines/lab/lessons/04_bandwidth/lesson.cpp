// Lesson 4: what is known of imported memory's speed.
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
    }};

}  // namespace carousel::lab
