// Lesson 9: claims about memory pools.
#include "lab/lesson.hpp"

namespace carousel::lab {

const lesson pool_lesson{
    .number = 9,
    .name = "pool",
    .title = "a pool of blocks, and the leak of a naive pool",
    .question =
        "Twenty processes, one after the other, take one of sixteen blocks and are killed. How many get a "
        "block?",
    .answers = {"Twenty", "Sixteen", "One"},
    .decided_by = "a bitmap in shared memory",
    .space = true,
    .programs = {{"carousel-lab-pool", "cpu", 60}},
    .plot = {"processes that got a block, of twenty; each is killed",
             "",
             "processes",
             {{"naive: a bitmap", "naive.served"}, {"pool of a space", "held.served"}}},
    .claims = {
        {"a block that changes its owner",
         "Pass the pointer.",
         "cpu",
         true,
         {{{equal("given.whole", 1)},
           "The block arrived intact although its sender was dead, because only the block's offset is sent, "
           "and the block belongs to the queue until it is received."}}},
        {"a bitmap in shared memory",
         "Set the bit to allocate, clear it to free.",
         "cpu",
         true,
         {{{equal("naive.served", 16), equal("naive.left", 0)},
           "{naive.served} processes got a block, and the others none, because bits set by dead processes "
           "stay set; {naive.left} of 16 blocks are left.",
           1},
          {{above("naive.served", 19)},
           "All twenty got a block, because another process clears the bits of the dead processes.",
           0}}},
        {"a pool of a space",
         "",
         "cpu",
         true,
         {{{equal("held.served", 20), equal("held.free", 16)},
           "All {held.kills} got a block, and {held.free} of 16 blocks are free. Each block was returned "
           "after its owner's fence, within {held.longest_us} us at most."}}},
    }};

}  // namespace carousel::lab
