// Lesson 8: claims about work queues.
#include "lab/lesson.hpp"

namespace carousel::lab {

const lesson work_lesson{
    .number = 8,
    .name = "work",
    .title = "a work queue with a master and four workers, half of them killed",
    .question =
        "Four workers take 200 tasks by a shared index; two are killed during a task. How many tasks are "
        "never done?",
    .answers = {"None: the others take them", "One for each that was killed",
                "All tasks after the first death"},
    .decided_by = "a shared index that all workers increment",
    .space = true,
    .programs = {{"carousel-lab-work", "cpu", 60}, {"carousel-lab-work-cuda", "gpu", 60}},
    .plot = {"200 tasks by a space's work queue, two of four workers killed",
             "",
             "ms",
             {{"CPU: processes", "held.ms"}, {"CUDA: kernels of processes", "cuda.held.ms"}}},
    .claims = {
        {"a shared index that all workers increment",
         "next.fetch_add(1) gives each worker its task.",
         "cpu",
         true,
         {{{above("naive.missing", 0), below("naive.missing", 5)},
           "{naive.missing} tasks were never done, and it is unknown which ones, because the index records "
           "no owner.",
           1},
          {{equal("naive.missing", 0)},
           "All were done, because here the two workers were killed after their last task.",
           0}}},
        {"a work queue of a space",
         "",
         "cpu",
         true,
         {{{equal("held.once", 200), above("held.killed", 0)},
           "{held.killed} workers were killed, and each of the 200 tasks was committed once, in {held.ms} "
           "ms; {held.dead_letters} dead letters."}}},
        {"a task that kills its worker",
         "Try it again.",
         "cpu",
         true,
         {{{equal("poison.deaths", 3), equal("poison.dead_letters", 1)},
           "Three workers died on it; then it became a dead letter, to be inspected later. Without a limit "
           "it would kill workers forever."}}},
        {"CUDA: a shared index that kernels increment",
         "atomicAdd(&next, 1) gives each thread its task.",
         "gpu",
         true,
         {{{equal("cuda.naive.killed", 2), above("cuda.naive.missing", 0), below("cuda.naive.missing", 17)},
           "{cuda.naive.missing} tasks were never done, namely those that the eight threads of each of the "
           "{cuda.naive.killed} killed processes had taken."},
          {{equal("cuda.naive.missing", 0)},
           "All were done, because here the two workers were killed after their last task."}}},
        {"CUDA: kernels that claim from a space's work queue",
         "",
         "gpu",
         true,
         {{{equal("cuda.held.killed", 2), equal("cuda.held.once", 200), above("cuda.held.again", 0)},
           "Each of the 200 tasks was committed once, {cuda.held.again} of them by a second worker after the "
           "fence of the first, in {cuda.held.ms} ms in total. The results are in a block of the space's GPU "
           "memory and are passed by its offset."},
          {{equal("cuda.held.killed", 2), equal("cuda.held.once", 200), equal("cuda.held.again", 0)},
           "Each of the 200 tasks was committed once, in {cuda.held.ms} ms; the two killed workers had no "
           "task at that time."}}},
        {"CUDA: a task that kills its worker",
         "Try it again.",
         "gpu",
         true,
         {{{equal("cuda.poison.deaths", 3), equal("cuda.poison.dead_letters", 1)},
           "Three processes died on it; then it became a dead letter, and no kernel claimed it again."}}},
    }};

}  // namespace carousel::lab
