// Lesson 7: claims about queues between processes.
#include "lab/lesson.hpp"

namespace carousel::lab {

const lesson queue_lesson{
    .number = 7,
    .name = "queue",
    .title = "a queue between processes: what a claim leaves when its producer dies",
    .question =
        "A producer claims a place in a ring and is killed before it writes. How many of the next ten values "
        "does the consumer get?",
    .answers = {"All ten: it skips the empty place", "None: it waits at the place forever",
                "Ten, one of them garbage"},
    .decided_by = "a claimed place whose producer is dead",
    .space = true,
    .programs = {{"carousel-lab-queue", "cpu", 60}, {"carousel-lab-queue-cuda", "gpu", 60}},
    .plot = {"time per element through the queue, two producers",
             "",
             "ns",
             {{"CPU: processes", "held.ns"}, {"CUDA: kernels of processes", "cuda.held.ns"}}},
    .claims = {
        {"two producers, one consumer",
         "",
         "cpu",
         false,
         {{{equal("held.wrong", 0)},
           "{held.number} elements were received, those of each producer in order, at {held.ns} ns each."}}},
        {"a claimed place whose producer is dead",
         "Claim by fetch_add, write, set the flag.",
         "cpu",
         true,
         {{{equal("naive.got", 0)},
           "None of the ten was received, because the consumer waits at a place that will never be filled. A "
           "fetch_add records no owner, so no process can repair it.",
           1},
          {{above("naive.got", 9)},
           "All ten were received, because this ring skips places that are not full.",
           0}}},
        {"a leased element whose consumer is dead",
         "",
         "cpu",
         true,
         {{{equal("leased.again", 2)},
           "It was delivered again {leased.us} us after the request, because a lease without a commit is "
           "returned after the fence."}}},
        {"a popped element whose consumer is dead",
         "",
         "cpu",
         true,
         {{{equal("popped.lost", 0)},
           "It is lost but not counted, because pop() had returned before its process died. pop() delivers "
           "at most once; use lease() and commit() if each element must be delivered."},
          {{above("popped.lost", 0)},
           "It is lost, and counted as lost ({popped.lost}), because pop() delivers at most once."}}},
        {"CUDA: a claimed place whose producer is dead",
         "Claim by atomicAdd, write, set the flag.",
         "gpu",
         true,
         {{{equal("cuda.naive.claimed", 11), equal("cuda.naive.got", 0)},
           "Eleven places were claimed and ten of them were written, but the consumer's kernel got no value, "
           "because it waits at the first place, whose producer's kernel died with its process."},
          {{equal("cuda.naive.claimed", 11), above("cuda.naive.got", 0)},
           "{cuda.naive.got} of the ten were received, because the dead process's kernel had still written "
           "its value."}}},
        {"CUDA: kernels of two producers and of a consumer",
         "",
         "gpu",
         false,
         {{{equal("cuda.held.got", 40000), equal("cuda.held.wrong", 0)},
           "{cuda.held.got} elements went from kernels of two processes to a kernel of a third, those of "
           "each producer in order, at {cuda.held.ns} ns each, with one thread at each end of the queue; the "
           "processes take turns."}}},
        {"CUDA: a process killed while thousands of threads push and pop",
         "",
         "gpu",
         true,
         {{{equal("cuda.storm.got", 10), equal("cuda.storm.left", 0), above("cuda.storm.tombs", 0)},
           "After the kernel ended, {cuda.storm.tombs} places were claimed but not filled, and "
           "{cuda.storm.lost} elements were popped but not used. Each word contains its owner, so after the "
           "fence a short-lived program freed these places on the GPU, and the next ten elements were "
           "received {cuda.storm.ms} ms after the kill."},
          {{equal("cuda.storm.got", 10), equal("cuda.storm.left", 0), equal("cuda.storm.tombs", 0)},
           "The next ten elements were received {cuda.storm.ms} ms after the kill, which hit no thread "
           "between its claim and its write."}}},
        {"CUDA: a leased element whose consumer is dead",
         "",
         "gpu",
         true,
         {{{equal("cuda.leased.again", 2), equal("cuda.popped.lost", 0)},
           "The leased elements were delivered again {cuda.leased.ms} ms after the kill. The popped elements "
           "were not delivered again, because pop() delivers at most once."}}},
    }};

}  // namespace carousel::lab
