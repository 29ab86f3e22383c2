// Lesson 5: claims about words that one process writes and another one polls.
#include "lab/lessons/list.hpp"

namespace carousel::lab {

const lesson coherence_lesson{
    .number = 5,
    .name = "coherence",
    .title = "coherence: what a poller sees by plain, volatile, relaxed and acquire loads",
    .question =
        "while (*ready == 0) {} polls a plain word that another process sets. When must it end, by the "
        "C++ standard?",
    .answers = {"When the other process has set it",
                "The standard requires nothing: never, at once, or when it is set",
                "At the next context switch"},
    .decided_by = "a plain load in a loop",
    .programs = {{"carousel-lab-coherence", "cpu", 60}, {"carousel-lab-coherence-cuda", "gpu", 90}},
    .plot = {"one hop between two processes",
             "",
             "us",
             {{"CPU: relaxed word", "relaxed.hop_us"},
              {"CPU: release, acquire", "acquire.hop_us"},
              {"GPU: spinning kernels, MPS", "cuda.mps.hop_us"},
              {"GPU: spinning kernels, time slices", "cuda.slices.hop_us"}}},
    .claims = {
        {"a plain load in a loop",
         "Poll the flag: while (*ready == 0);",
         "cpu",
         false,
         {{{equal("plain.sees", 0)},
           "It never saw the write: the compiler loads once and loops for ever. (The lesson killed it.)",
           1},
          {{equal("plain.sees", 2)},
           "It ended before anything was written: a loop that does nothing may be left out, and was.",
           1},
          {{equal("plain.sees", 1)},
           "It saw the write: this compiler left the load in the loop. The standard does not require that, "
           "because a data race is undefined behaviour.",
           1}}},
        {"a volatile load in a loop",
         "Make it volatile.",
         "cpu",
         false,
         {{{equal("volatile.sees", 1)},
           "It saw the write. Volatile means that the load happens, not that what was written before the "
           "flag is "
           "there."}}},
        {"a relaxed load in a loop",
         "",
         "cpu",
         false,
         {{{equal("relaxed.sees", 1)},
           "It saw the write: caches are coherent, whichever process a line belongs to."}}},
        {"data beside a relaxed flag",
         "",
         "cpu",
         false,
         {{{equal("relaxed.torn", 0)},
           "None of {relaxed.tries} messages was old, at {relaxed.hop_us} us a hop. This processor (or this "
           "compiler) "
           "keeps the order by itself; the language doesn't promise it, and another machine won't."},
          {{above("relaxed.torn", 0)},
           "{relaxed.torn} of {relaxed.tries} messages were old behind a new flag: nothing orders them."}}},
        {"data beside a flag of release and acquire",
         "",
         "cpu",
         false,
         {{{equal("acquire.torn", 0)},
           "None of {acquire.tries} was old, and this is promised; {acquire.hop_us} us a hop against "
           "{relaxed.hop_us} relaxed."}}},
        {"each writes its own word and reads the other's",
         "Two flags make a lock.",
         "cpu",
         false,
         {{{above("weak.both_zero", 0), equal("seq_cst.both_zero", 0)},
           "Both read 0 in {weak.both_zero} of {weak.tries} tries: a store waits in its processor's buffer "
           "while the "
           "load goes ahead. With seq_cst in 0 of {seq_cst.tries}."},
          {{equal("weak.both_zero", 0), equal("seq_cst.both_zero", 0)},
           "Not seen in {weak.tries} tries here, and allowed all the same: a busy or a small machine doesn't "
           "show "
           "it. With seq_cst it is forbidden."}}},
        {"one memory mapped twice in one process",
         "IPC memory can't be shared within a process.",
         "cpu",
         false,
         {{{equal("twice.two_places", 1), equal("twice.same", 1)},
           "Two addresses, one memory: what is written by one is read by the other."}}},
        {"the writer is killed",
         "",
         "cpu",
         true,
         {{{equal("killed.poller_ends", 0), equal("killed.saved", 1)},
           "The poller spun on, half a second until this lesson wrote the word in the dead one's place; "
           "{killed.us} us later it had ended. A loop without a bound is a promise about somebody else's "
           "life."}}},
        {"CUDA: a plain load in a kernel's loop",
         "Poll the flag in the kernel.",
         "gpu",
         false,
         {{{equal("cuda.plain.sees", 0)},
           "It never saw the write of the other process's kernel: the compiler loads once."},
          {{equal("cuda.plain.sees", 1)},
           "It saw the write: this compiler left the load in the loop. None has to."}}},
        {"CUDA: a volatile, a relaxed and an acquire load",
         "Make it volatile.",
         "gpu",
         false,
         {{{equal("cuda.volatile.sees", 1), equal("cuda.relaxed.sees", 1), equal("cuda.acquire.sees", 1)},
           "All three saw it. The scope must be the system's (.sys): the other is another process."}}},
        {"CUDA: a hop between two spinning kernels, in time slices",
         "Let the kernel wait for the other process's.",
         "gpu",
         false,
         {{{above("cuda.slices.hop_us", 500)},
           "{cuda.slices.hop_us} us: the spinning kernel keeps its whole time slice, while the one that it "
           "waits "
           "for has none."},
          {{below("cuda.slices.hop_us", 500.001), above("cuda.slices.hop_us", 0)},
           "{cuda.slices.hop_us} us: the two ran at the same time here. Is MPS on?"}}},
        {"CUDA: the same under MPS",
         "",
         "mps",
         false,
         {{{above("cuda.mps.hop_us", 0), below("cuda.mps.hop_us", 200)},
           "{cuda.mps.hop_us} us: both kernels are on the GPU at once."}}},
        {"CUDA: data beside a flag",
         "",
         "mps",
         false,
         {{{equal("cuda.acquire.torn", 0), above("cuda.relaxed.torn", 0)},
           "Release and acquire: 0 of {cuda.tries} messages were old. Relaxed: {cuda.relaxed.torn} were, "
           "since a "
           "multiprocessor's L1 holds what it has read before."},
          {{equal("cuda.acquire.torn", 0), equal("cuda.relaxed.torn", 0)},
           "Release and acquire: 0 of {cuda.tries} messages were old; relaxed none either here, which "
           "nothing "
           "promises."}}},
    }};

}  // namespace carousel::lab
