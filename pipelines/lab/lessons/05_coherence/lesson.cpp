// Lesson 5: claims about words that one process writes and another one polls.
#include "lab/lesson.hpp"

namespace carousel::lab {

const lesson coherence_lesson{
    .number = 5,
    .name = "coherence",
    .title = "coherence: what a polling loop sees with plain, volatile, relaxed and acquire loads",
    .question =
        "while (*ready == 0) {} polls a plain word that another process sets. When must it end according to "
        "the C++ standard?",
    .answers = {"When the other process has set it",
                "The standard does not define it: never, immediately, or when the word is set",
                "At the next context switch"},
    .decided_by = "a plain load in a loop",
    .programs = {{"carousel-lab-coherence", "cpu", 60}, {"carousel-lab-coherence-cuda", "gpu", 90}},
    .plot = {"latency of one hop between two processes",
             "",
             "us",
             {{"CPU: relaxed word", "relaxed.hop_us"},
              {"CPU: release and acquire", "acquire.hop_us"},
              {"GPU: spinning kernels, MPS", "cuda.mps.hop_us"},
              {"GPU: spinning kernels, time slices", "cuda.slices.hop_us"}}},
    .claims = {
        {"a plain load in a loop",
         "Poll the flag: while (*ready == 0);",
         "cpu",
         false,
         {{{equal("plain.sees", 0)},
           "It never saw the write, because the compiled code loads the word once and loops forever. (The "
           "lesson killed it.)",
           1},
          {{equal("plain.sees", 2)},
           "It ended before the word was written, because the compiler removed the loop, as it may if a loop "
           "has no effects.",
           1},
          {{equal("plain.sees", 1)},
           "It saw the write: this compiler left the load in the loop. The standard does not require this, "
           "because a data race is undefined behaviour.",
           1}}},
        {"a volatile load in a loop",
         "Make it volatile.",
         "cpu",
         false,
         {{{equal("volatile.sees", 1)},
           "It saw the write. Volatile means that each load is executed, not that data written before the "
           "flag is visible."}}},
        {"a relaxed load in a loop",
         "",
         "cpu",
         false,
         {{{equal("relaxed.sees", 1)},
           "It saw the write, because caches are coherent between processes, too."}}},
        {"data with a relaxed flag",
         "",
         "cpu",
         false,
         {{{equal("relaxed.torn", 0)},
           "None of {relaxed.tries} messages was stale, at {relaxed.hop_us} us per hop. This processor (or "
           "this compiler) happens to keep the order; the language does not guarantee it, and other machines "
           "do not keep it."},
          {{above("relaxed.torn", 0)},
           "{relaxed.torn} of {relaxed.tries} messages were stale although the flag was new, because nothing "
           "orders the two stores."}}},
        {"data with a release/acquire flag",
         "",
         "cpu",
         false,
         {{{equal("acquire.torn", 0)},
           "None of {acquire.tries} messages was stale, as the standard guarantees. A hop takes "
           "{acquire.hop_us} us, and {relaxed.hop_us} us with a relaxed flag."}}},
        {"each process writes its own word and reads the other's",
         "Two flags make a lock.",
         "cpu",
         false,
         {{{above("weak.both_zero", 0), equal("seq_cst.both_zero", 0)},
           "Both read 0 in {weak.both_zero} of {weak.tries} tries, because a store waits in its processor's "
           "store buffer while the load executes. With seq_cst this happened in 0 of {seq_cst.tries} tries."},
          {{equal("weak.both_zero", 0), equal("seq_cst.both_zero", 0)},
           "In {weak.tries} tries, the two processes never both read 0. The standard allows that both read "
           "0, but a busy or small machine may not show it. With seq_cst it is forbidden."}}},
        {"one memory mapped twice in one process",
         "IPC memory can't be shared within a process.",
         "cpu",
         false,
         {{{equal("twice.two_places", 1), equal("twice.same", 1)},
           "Two addresses refer to the same memory: a write through one is visible through the other."}}},
        {"the writer is killed",
         "",
         "cpu",
         true,
         {{{equal("killed.poller_ends", 0), equal("killed.saved", 1)},
           "The loop kept spinning for half a second until this lesson wrote the word for the dead process; "
           "the loop ended {killed.us} us later. A loop without a timeout depends on the survival of another "
           "process."}}},
        {"CUDA: a plain load in a kernel's loop",
         "Poll the flag in the kernel.",
         "gpu",
         false,
         {{{equal("cuda.plain.sees", 0)},
           "It never saw the write of the other process's kernel, because the compiled code loads the word "
           "once."},
          {{equal("cuda.plain.sees", 1)},
           "It saw the write: this compiler left the load in the loop, but no compiler has to."}}},
        {"CUDA: a volatile, a relaxed and an acquire load",
         "Make it volatile.",
         "gpu",
         false,
         {{{equal("cuda.volatile.sees", 1), equal("cuda.relaxed.sees", 1), equal("cuda.acquire.sees", 1)},
           "All three saw the write. The scope must be system-wide (.sys), because the writer is another "
           "process."}}},
        {"CUDA: a hop between two spinning kernels, in time slices",
         "Let the kernel wait for the kernel of the other process.",
         "gpu",
         false,
         {{{above("cuda.slices.hop_us", 500)},
           "A hop takes {cuda.slices.hop_us} us, because the spinning kernel uses its whole time slice, "
           "during which the kernel that it waits for can't run."},
          {{below("cuda.slices.hop_us", 500.001), above("cuda.slices.hop_us", 0)},
           "A hop takes {cuda.slices.hop_us} us, because the two kernels ran concurrently here. Check "
           "whether MPS is on."}}},
        {"CUDA: a hop between two spinning kernels, under MPS",
         "",
         "mps",
         false,
         {{{above("cuda.mps.hop_us", 0), below("cuda.mps.hop_us", 200)},
           "A hop takes {cuda.mps.hop_us} us, because both kernels run on the GPU concurrently."}}},
        {"CUDA: data with a flag",
         "",
         "mps",
         false,
         {{{equal("cuda.acquire.torn", 0), above("cuda.relaxed.torn", 0)},
           "Release and acquire: 0 of {cuda.tries} messages were stale. Relaxed: {cuda.relaxed.torn} were "
           "stale, because the L1 cache of a multiprocessor keeps data that it has read before."},
          {{equal("cuda.acquire.torn", 0), equal("cuda.relaxed.torn", 0)},
           "Release and acquire: 0 of {cuda.tries} messages were stale. Relaxed: here none were stale "
           "either, but nothing guarantees that."}}},
    }};

}  // namespace carousel::lab
