// Lesson 7: what is known of it.
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
    .programs = {{"carousel-lab-queue", "cpu", 60}},
    .plot = {"an element through the queue, two producers", "", "ns", {{"Carousel queue", "held.ns"}}},
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
    }};

}  // namespace carousel::lab
