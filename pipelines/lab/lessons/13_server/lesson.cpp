// Lesson 13: claims about an inference server.
#include "lab/lessons/list.hpp"

namespace carousel::lab {

const lesson server_lesson{
    .number = 13,
    .name = "server",
    .title = "an inference server: weights held once, many workers, one killed under load",
    .question =
        "Four workers with a pipe of requests each. One is killed under load. What becomes of the requests "
        "in "
        "its pipe?",
    .answers = {"The other workers take them", "They are gone, and nobody is told",
                "Who asked gets an error for each"},
    .decided_by = "requests dealt by turns",
    .space = true,
    .programs = {{"carousel-lab-server", "cpu", 60}},
    .plot = {"from the kill to who takes its place",
             "",
             "us",
             {{"a worker that starts", "anew.takeover_us"}, {"a standby", "standby.takeover_us"}}},
    .claims = {
        {"one set of weights",
         "Each worker loads the model.",
         "cpu",
         false,
         {{{below("memory.share", 0.6), above("memory.share", 0)},
           "Four workers with a copy of {weights.mib} MiB each come to {copies.mib} MiB, with one set to "
           "{one.mib}. The first answer is there behind {copies.first_us} and {one.first_us} us."},
          {{above("memory.share", 0.6), below("memory.share", 5)},
           "{copies.mib} MiB with copies, {one.mib} with one set: here the weights are not what counts."}}},
        {"requests dealt by turns",
         "A queue for each worker.",
         "cpu",
         true,
         {{{above("dealt.lost", 0)},
           "{dealt.lost} of {dealt.of} requests were never answered. They were in the dead one's pipe, and "
           "nobody else can read it.",
           1},
          {{equal("dealt.lost", 0)}, "All were answered: the dead one's pipe was empty.", 0}}},
        {"requests claimed from a space",
         "",
         "cpu",
         true,
         {{{equal("anew.lost", 0), equal("anew.wrong", 0)},
           "All {load.requests} requests were answered, and rightly: what the dead one had claimed waited "
           "again behind its "
           "fence. Half were answered within {anew.p50_us} us, the last behind {anew.longest_us}; a worker "
           "that "
           "started and loaded its weights was ready {anew.takeover_us} us behind the kill."}}},
        {"a standby takes the place",
         "",
         "cpu",
         true,
         {{{equal("standby.lost", 0), equal("standby.wrong", 0), above("standby.gain", 1)},
           "Ready {standby.takeover_us} us behind the kill, {standby.gain} times as soon: all that a start "
           "costs "
           "was paid before. On a GPU a start is hundreds of ms."},
          {{equal("standby.lost", 0), equal("standby.wrong", 0), below("standby.gain", 1.0001)},
           "Ready {standby.takeover_us} us behind the kill, no sooner than one that started: this machine is "
           "busy, or starts are cheap on it."}}},
        {"a worker writes into the weights",
         "",
         "cpu",
         true,
         {{{equal("stray.signal", 11), equal("stray.whole", 1)},
           "SIGSEGV, for it alone: the memory is sealed against new mappings that write "
           "(F_SEAL_FUTURE_WRITE), and the others' weights are whole."}}},
    }};

}  // namespace carousel::lab
