// Lesson 8: claims about work queues.
#include "lab/lessons/list.hpp"

namespace carousel::lab {

const lesson work_lesson{
    .number = 8,
    .name = "work",
    .title = "a work queue, a master and four workers, half of them killed",
    .question =
        "Four workers take 200 tasks by a shared index; two are killed in mid-task. How many tasks are never "
        "done?",
    .answers = {"None: the others take them", "One for each that was killed", "All behind the first death"},
    .decided_by = "an index that everybody counts up",
    .space = true,
    .programs = {{"carousel-lab-work", "cpu", 60}, {"carousel-lab-work-cuda", "gpu", 60}},
    .plot = {"200 tasks by a space's work queue, two of four workers killed",
             "",
             "ms",
             {{"CPU: processes", "held.ms"}, {"CUDA: kernels of processes", "cuda.held.ms"}}},
    .claims = {
        {"an index that everybody counts up",
         "next.fetch_add(1) gives each worker its task.",
         "cpu",
         true,
         {{{above("naive.missing", 0), below("naive.missing", 5)},
           "{naive.missing} tasks were never done, and nobody knows which: the index has no owner.",
           1},
          {{equal("naive.missing", 0)}, "All were done: the two were killed behind the last task here.", 0}}},
        {"a work queue of a space",
         "",
         "cpu",
         true,
         {{{equal("held.once", 200), above("held.killed", 0)},
           "{held.killed} workers were killed, and each of the 200 tasks was committed once, in {held.ms} "
           "ms; {held.letters} dead letters."}}},
        {"a task that kills its worker",
         "Try it again.",
         "cpu",
         true,
         {{{equal("poison.deaths", 3), equal("poison.letters", 1)},
           "Three workers died of it; then it was a dead letter, to be looked at by somebody. Without a "
           "bound it would have killed for ever."}}},
        {"CUDA: an index that kernels count up",
         "atomicAdd(&next, 1) gives each thread its task.",
         "gpu",
         true,
         {{{equal("cuda.naive.killed", 2), above("cuda.naive.missing", 0), below("cuda.naive.missing", 17)},
           "{cuda.naive.missing} tasks were never done: what eight threads each of the {cuda.naive.killed} "
           "killed "
           "processes had taken."},
          {{equal("cuda.naive.missing", 0)},
           "All were done: the two were killed behind the last task here."}}},
        {"CUDA: kernels that claim from a space's work queue",
         "",
         "gpu",
         true,
         {{{equal("cuda.held.killed", 2), equal("cuda.held.once", 200), above("cuda.held.again", 0)},
           "Each of the 200 tasks was committed once, {cuda.held.again} of them by a second worker, behind "
           "the "
           "fence of the first: {cuda.held.ms} ms in all. The results lie in a block of the space's GPU "
           "memory, "
           "and travel by its offset."},
          {{equal("cuda.held.killed", 2), equal("cuda.held.once", 200), equal("cuda.held.again", 0)},
           "Each of the 200 tasks was committed once, in {cuda.held.ms} ms; the two were killed with none in "
           "hand."}}},
        {"CUDA: a task that kills its worker",
         "Try it again.",
         "gpu",
         true,
         {{{equal("cuda.poison.deaths", 3), equal("cuda.poison.letters", 1)},
           "Three processes died of it; then it was a dead letter, and no kernel claimed it any more."}}},
    }};

}  // namespace carousel::lab
