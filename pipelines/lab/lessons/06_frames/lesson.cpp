// Lesson 6: claims about a ring of frames.
#include "lab/lessons/list.hpp"

namespace carousel::lab {

const lesson frames_lesson{
    .number = 6,
    .name = "frames",
    .title = "the frame ring with status words, its producer killed in mid-write",
    .question =
        "A ring of four slots with the words EMPTY, WRITING, READY. The producer is killed in mid-write and "
        "a "
        "new one goes on with the next frame. What does the consumer get?",
    .answers = {"Half a frame, then the rest", "Nothing more: it waits at that slot for ever",
                "All frames but one"},
    .decided_by = "a status word that says what, and not whose",
    .programs = {{"carousel-lab-frames", "cpu", 60}, {"carousel-lab-frames-cuda", "gpu", 60}},
    .plot = {"frames that came, of twenty; the producer is killed in the fifth",
             "",
             "frames",
             {{"anonymous words", "naive.got"}, {"the successor clears the ring", "reset.got"}}},
    .claims = {
        {"no status word",
         "The newest frame lies in the buffer.",
         "cpu",
         true,
         {{{equal("bare.torn", 1)},
           "The buffer holds half of one frame and half of the next, and says nothing."},
          {{equal("bare.torn", 0)},
           "The buffer was whole, by luck: the kill came before or behind the write."}}},
        {"a status word that says what, and not whose",
         "EMPTY, WRITING, READY.",
         "cpu",
         true,
         {{{equal("naive.got", 4), equal("naive.wrong", 0)},
           "{naive.got} of {naive.of} came. The slot says WRITING, and nobody can know that nobody writes: "
           "the "
           "consumer stands there for ever, and the successor behind the full ring.",
           1},
          {{above("naive.got", 4), equal("naive.wrong", 0)},
           "{naive.got} of {naive.of} came: somebody made the dead one's slot free.",
           2}}},
        {"the successor clears the ring",
         "Initialise the ring at the start.",
         "cpu",
         true,
         {{{equal("reset.got", 16), equal("reset.wrong", 0)},
           "{reset.got} of {reset.of} came: with the half frame three went that were whole, READY and not "
           "read "
           "yet."},
          {{equal("reset.got", 20)}, "All came: the ring was empty when it was cleared."}}},
        {"words with an owner, twenty kills",
         "",
         "cpu",
         true,
         {{{equal("owned.complete", 1), equal("owned.lost", 0), equal("owned.repeated", 0),
            equal("owned.torn", 0), above("owned.mid_write", 0)},
           "{owned.frames} frames of 1 MiB came, lost, repeated and torn: 0. {owned.mid_write} of "
           "{owned.kills} "
           "kills hit in mid-write; whoever saw the death made that epoch's word EMPTY by one "
           "compare-and-swap, {owned.repair_us} us behind the kill. {owned.frame_us} us a frame."}}},
        {"CUDA: a frame that a kernel writes, its process killed",
         "The process is dead, so its buffer is free.",
         "gpu",
         true,
         {{{above("cuda.late.ms", 0.2), equal("cuda.late.after_fence", 0)},
           "The buffer still changed {cuda.late.ms} ms behind the kill; the pidfd said so {cuda.fence.ms} ms "
           "behind it, and nothing changed any more. Until that fence the buffer is quarantined."},
          {{below("cuda.late.ms", 0.201), equal("cuda.late.after_fence", 0)},
           "Nothing was seen to change behind the kill; the pidfd came {cuda.fence.ms} ms behind it."}}},
        {"CUDA: the ring goes on",
         "",
         "gpu",
         true,
         {{{equal("cuda.frames.got", 20), equal("cuda.frames.wrong", 0)},
           "All {cuda.frames.got} frames came whole: the successor wrote the dead one's frame again, "
           "{cuda.again.ms} ms behind its start."}}},
    }};

}  // namespace carousel::lab
