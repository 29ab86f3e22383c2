// Lesson 10: claims about semaphores.
#include "lab/lesson.hpp"

namespace carousel::lab {

const lesson semaphore_lesson{
    .number = 10,
    .name = "semaphore",
    .title = "a semaphore, and a naive one that stays taken forever",
    .question =
        "A process is killed while it has the only permit of a counter in shared memory. When does the next "
        "process get the permit?",
    .answers = {"Immediately: the kernel returns it", "When its process is reaped", "Never"},
    .decided_by = "a counter whose holder is dead",
    .space = true,
    .programs = {{"carousel-lab-semaphore", "cpu", 60}},
    .plot = {"a turn of four processes, and the permit of a dead process",
             "",
             "us",
             {{"a turn", "turns.us"}, {"from the kill to the next holder", "killed.us"}}},
    .claims = {
        {"turns of four processes",
         "",
         "cpu",
         false,
         {{{equal("turns.well", 1), equal("turns.count", 2000)},
           "2000 turns took {turns.us} us each, and the counter is {turns.count}, because only one process "
           "at a time had the permit."}}},
        {"a wait with a timeout",
         "",
         "cpu",
         false,
         {{{equal("bound.names", 1)}, "The error message names the process that has the permit."}}},
        {"a counter whose holder is dead",
         "sem_wait() and sem_post() in shared memory.",
         "cpu",
         true,
         {{{equal("naive.again", 0)},
           "No process got it within this lesson's timeout of one second, and none ever will, because the "
           "counter does not record its owner.",
           2},
          {{equal("naive.again", 1)}, "The permit was returned.", 0}}},
        {"a space's permit whose holder is dead",
         "",
         "cpu",
         true,
         {{{equal("killed.again", 1), equal("killed.free", 1)},
           "The next process got the permit {killed.us} us after the kill, and only once: a permit is freed "
           "when the end of its holder is certain."}}},
    }};

}  // namespace carousel::lab
