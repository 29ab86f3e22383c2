// Lesson 7: claims about queues between processes.
#include "lab/lessons/list.hpp"

namespace carousel::lab {

const lesson queue_lesson{
    .number = 7,
    .name = "queue",
    .title = "a queue between processes: what a claim leaves when its maker dies",
    .question =
        "A producer claims a place in a ring, and is killed before it has written. What does the consumer "
        "get of the next ten values?",
    .answers = {"All ten: it skips the empty place", "None: it waits at the place for ever",
                "Ten, one of them rubbish"},
    .decided_by = "a claimed place whose producer is dead",
    .space = true,
    .programs = {{"carousel-lab-queue", "cpu", 60}, {"carousel-lab-queue-cuda", "gpu", 60}},
    .plot = {"an element through the queue, two producers",
             "",
             "ns",
             {{"CPU: processes", "held.ns"}, {"CUDA: kernels of processes", "cuda.held.ns"}}},
    .claims = {
        {"two producers, one consumer",
         "",
         "cpu",
         false,
         {{{equal("held.wrong", 0)},
           "{held.number} elements came, each producer's in its order, at {held.ns} ns each."}}},
        {"a claimed place whose producer is dead",
         "Claim by fetch_add, write, set the flag.",
         "cpu",
         true,
         {{{equal("naive.got", 0)},
           "None of the ten: the consumer stands at a place that nobody will fill. A fetch_add has no owner, "
           "so nobody can mend it.",
           1},
          {{above("naive.got", 9)}, "All ten came: this ring skips what is not full.", 0}}},
        {"a leased element whose consumer is dead",
         "",
         "cpu",
         true,
         {{{equal("leased.again", 2)},
           "It was delivered again {leased.us} us behind the asking: a lease without a commit comes back "
           "behind the fence."}}},
        {"a popped element whose consumer is dead",
         "",
         "cpu",
         true,
         {{{equal("popped.lost", 0)},
           "It is gone, and not counted: the pop had returned before its process died. pop() is at most "
           "once; lease() and commit() where each must arrive."},
          {{above("popped.lost", 0)},
           "It is gone, and counted as lost ({popped.lost}): pop() is at most once."}}},
        {"CUDA: a claimed place whose producer is dead",
         "Claim by atomicAdd, write, set the flag.",
         "gpu",
         true,
         {{{equal("cuda.naive.claimed", 11), equal("cuda.naive.got", 0)},
           "Eleven places were claimed, ten were written, and the consumer's kernel got none: it stands at "
           "the "
           "first, whose kernel died with its process."},
          {{equal("cuda.naive.claimed", 11), above("cuda.naive.got", 0)},
           "{cuda.naive.got} of the ten came: the dead one's kernel had gone on to write."}}},
        {"CUDA: the kernels of two producers, those of a consumer",
         "",
         "gpu",
         false,
         {{{equal("cuda.held.got", 40000), equal("cuda.held.wrong", 0)},
           "{cuda.held.got} elements went from kernels of two processes to a kernel of a third, each "
           "producer's in "
           "its order, {cuda.held.ns} ns each: one thread at each end, and the processes by turns."}}},
        {"CUDA: killed while thousands of threads push and pop",
         "",
         "gpu",
         true,
         {{{equal("cuda.storm.got", 10), equal("cuda.storm.left", 0), above("cuda.storm.tombs", 0)},
           "When the kernel was gone, places were claimed and not filled ({cuda.storm.tombs}) and elements "
           "popped and not "
           "used ({cuda.storm.lost}). Each word says whose it is: behind the fence a short-lived program "
           "freed them "
           "on the GPU, and the next ten elements came {cuda.storm.ms} ms behind the kill."},
          {{equal("cuda.storm.got", 10), equal("cuda.storm.left", 0), equal("cuda.storm.tombs", 0)},
           "The next ten elements came {cuda.storm.ms} ms behind the kill, which hit no thread between its "
           "claim "
           "and its value."}}},
        {"CUDA: a leased element whose consumer is dead",
         "",
         "gpu",
         true,
         {{{equal("cuda.leased.again", 2), equal("cuda.popped.lost", 0)},
           "What was leased came again {cuda.leased.ms} ms behind the kill; what was popped before didn't, "
           "as "
           "pop says."}}},
    }};

}  // namespace carousel::lab
