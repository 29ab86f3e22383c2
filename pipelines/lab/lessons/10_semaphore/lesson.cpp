// Lesson 10: claims about semaphores.
#include "lab/lessons/list.hpp"

namespace carousel::lab {

const lesson semaphore_lesson{
    .number = 10,
    .name = "semaphore",
    .title = "a semaphore, and the naive one that stays taken for ever",
    .question =
        "A process is killed while it has the only permit of a counter in shared memory. When does the next "
        "one get it?",
    .answers = {"At once: the kernel gives it back", "When its process is reaped", "Never"},
    .decided_by = "a counter whose holder is dead",
    .space = true,
    .programs = {{"carousel-lab-semaphore", "cpu", 60}},
    .plot = {"one turn of four processes; a permit of a dead one",
             "",
             "us",
             {{"a turn", "turns.us"}, {"from the kill to the next holder", "killed.us"}}},
    .claims = {
        {"turns of four processes",
         "",
         "cpu",
         false,
         {{{equal("turns.well", 1), equal("turns.count", 2000)},
           "2000 turns of {turns.us} us, and the word says {turns.count}: one at a time."}}},
        {"a wait with a bound",
         "",
         "cpu",
         false,
         {{{equal("bound.names", 1)}, "Its sentence names the process that has the permit."}}},
        {"a counter whose holder is dead",
         "sem_wait() and sem_post() in shared memory.",
         "cpu",
         true,
         {{{equal("naive.again", 0)},
           "Nobody got it within the second that this lesson gave it, and nobody will: the count doesn't "
           "know whose it is.",
           2},
          {{equal("naive.again", 1)}, "It came back by itself.", 0}}},
        {"a permit of a space whose holder is dead",
         "",
         "cpu",
         true,
         {{{equal("killed.again", 1), equal("killed.free", 1)},
           "The next one had it {killed.us} us behind the kill, and once only: when the holder's end is "
           "certain, its permit is free."}}},
    }};

}  // namespace carousel::lab
