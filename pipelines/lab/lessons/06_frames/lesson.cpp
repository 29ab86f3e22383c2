// Lesson 6: claims about a ring of frames.
#include "lab/lesson.hpp"

namespace carousel::lab {

const lesson frames_lesson{
    .number = 6,
    .name = "frames",
    .title = "a frame ring with status words, whose producer is killed during a write",
    .question =
        "A ring of four slots with the words EMPTY, WRITING, READY. The producer is killed during a write, "
        "and a new one continues with the next frame. What does the consumer get?",
    .answers = {"Half of a frame, then the other frames", "Nothing more: it waits at that slot forever",
                "All frames but one"},
    .decided_by = "a status word without an owner",
    .programs = {{"carousel-lab-frames", "cpu", 60}, {"carousel-lab-frames-cuda", "gpu", 60}},
    .plot = {"frames received, of twenty; the producer is killed during the fifth",
             "",
             "frames",
             {{"words without an owner", "naive.got"}, {"the successor clears the ring", "reset.got"}}},
    .claims = {
        {"no status word",
         "The buffer contains the newest frame.",
         "cpu",
         true,
         {{{equal("bare.torn", 1)},
           "The buffer holds half of one frame and half of the next, without any indication."},
          {{equal("bare.torn", 0)},
           "The buffer was complete, by luck, because the kill came before or after the write."}}},
        {"a status word without an owner",
         "EMPTY, WRITING, READY.",
         "cpu",
         true,
         {{{equal("naive.got", 4), equal("naive.wrong", 0)},
           "{naive.got} of {naive.of} frames were received. The slot is WRITING, and no process can detect "
           "that its writer is dead, so the consumer waits there forever, and the successor waits for the "
           "full ring.",
           1},
          {{above("naive.got", 4), equal("naive.wrong", 0)},
           "{naive.got} of {naive.of} frames were received, because another process freed the dead "
           "producer's slot.",
           2}}},
        {"the successor clears the ring",
         "Initialise the ring at the start.",
         "cpu",
         true,
         {{{equal("reset.got", 16), equal("reset.wrong", 0)},
           "{reset.got} of {reset.of} frames were received. The half-written frame was lost, and so were "
           "three complete READY frames that had not been read yet."},
          {{equal("reset.got", 20)},
           "All frames were received, because the ring was empty when it was cleared."}}},
        {"status words with an owner, and twenty kills",
         "",
         "cpu",
         true,
         {{{equal("owned.complete", 1), equal("owned.lost", 0), equal("owned.repeated", 0),
            equal("owned.torn", 0), above("owned.mid_write", 0)},
           "{owned.frames} frames of 1 MiB were received; lost, repeated or torn: 0. {owned.mid_write} of "
           "{owned.kills} kills hit during a write; the process that detected the death set that epoch's "
           "word to EMPTY by one compare-and-swap, {owned.repair_us} us after the kill. {owned.frame_us} us "
           "per frame."}}},
        {"CUDA: a process is killed while its kernel writes a frame",
         "The process is dead, so its buffer is free.",
         "gpu",
         true,
         {{{above("cuda.late.ms", 0.2), equal("cuda.late.after_fence", 0)},
           "The buffer still changed {cuda.late.ms} ms after the kill. The pidfd reported the death "
           "{cuda.fence.ms} ms after the kill; after that, nothing changed. Until that fence the buffer is "
           "quarantined."},
          {{below("cuda.late.ms", 0.201), equal("cuda.late.after_fence", 0)},
           "No change was observed after the kill; the pidfd reported the death {cuda.fence.ms} ms after "
           "it."}}},
        {"CUDA: the ring continues",
         "",
         "gpu",
         true,
         {{{equal("cuda.frames.got", 20), equal("cuda.frames.wrong", 0)},
           "All {cuda.frames.got} frames were received complete. The successor wrote the dead producer's "
           "frame again, {cuda.again.ms} ms after the successor's start."}}},
    }};

}  // namespace carousel::lab
