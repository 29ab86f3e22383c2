// Lesson 13: claims about an inference server.
#include "lab/lesson.hpp"

namespace carousel::lab {

const lesson server_lesson{
    .number = 13,
    .name = "server",
    .title = "an inference server: weights held once, many workers, one killed under load",
    .question =
        "Four workers have one pipe of requests each. One worker is killed under load. What happens to the "
        "requests in its pipe?",
    .answers = {"The other workers take them", "They are lost, and no process is notified",
                "The sender gets an error for each"},
    .decided_by = "requests distributed in turn",
    .space = true,
    .programs = {{"carousel-lab-server", "cpu", 60}},
    .plot = {"from the kill until a replacement is ready",
             "",
             "us",
             {{"a worker that is started", "restart.takeover_us"}, {"a standby", "standby.takeover_us"}}},
    .claims = {
        {"one set of weights",
         "Each worker loads its own model.",
         "cpu",
         false,
         {{{below("memory.share", 0.6), above("memory.share", 0)},
           "Four workers use {copies.mib} MiB with a copy of {weights.mib} MiB each, and {one.mib} MiB with "
           "one shared set. The first answer arrives after {copies.first_us} us with copies, {one.first_us} "
           "us with one set."},
          {{above("memory.share", 0.6), below("memory.share", 5)},
           "The workers use {copies.mib} MiB with copies and {one.mib} MiB with one set, so here the weights "
           "are not the main cost."}}},
        {"requests distributed in turn",
         "A queue for each worker.",
         "cpu",
         true,
         {{{above("dealt.lost", 0)},
           "{dealt.lost} of {dealt.of} requests were never answered. They were in the dead worker's pipe, "
           "and no other process can read it.",
           1},
          {{equal("dealt.lost", 0)}, "All were answered, because the dead worker's pipe was empty.", 0}}},
        {"requests claimed from a space",
         "",
         "cpu",
         true,
         {{{equal("restart.lost", 0), equal("restart.wrong", 0)},
           "All {load.requests} requests were answered correctly, because requests that the dead worker had "
           "claimed returned to the queue after its fence. Half were answered within {restart.p50_us} us, "
           "the slowest within {restart.longest_us} us; a replacement that had to start and load its weights "
           "was ready {restart.takeover_us} us after the kill."}}},
        {"a standby takes over",
         "",
         "cpu",
         true,
         {{{equal("standby.lost", 0), equal("standby.wrong", 0), above("standby.gain", 1)},
           "Ready {standby.takeover_us} us after the kill, {standby.gain} times as fast, because the standby "
           "was already started. On a GPU a start takes hundreds of ms."},
          {{equal("standby.lost", 0), equal("standby.wrong", 0), below("standby.gain", 1.0001)},
           "Ready {standby.takeover_us} us after the kill, not faster than a newly started worker, because "
           "this machine is busy, or process starts are cheap on it."}}},
        {"a worker writes to the weights",
         "",
         "cpu",
         true,
         {{{equal("wild_write.signal", 11), equal("wild_write.whole", 1)},
           "Only that worker got SIGSEGV, because the memory is sealed against new writable mappings "
           "(F_SEAL_FUTURE_WRITE). The weights are intact for the other workers."}}},
    }};

}  // namespace carousel::lab
