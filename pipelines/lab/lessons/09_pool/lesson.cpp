// Lesson 9: claims about memory pools.
#include "lab/lessons/list.hpp"

namespace carousel::lab {

const lesson pool_lesson{
    .number = 9,
    .name = "pool",
    .title = "a pool of blocks, and the leak that a naive one has",
    .question =
        "Sixteen blocks, and twenty processes one behind the other that take one and are killed. How many "
        "get theirs?",
    .answers = {"Twenty", "Sixteen", "One"},
    .decided_by = "a bitmap in shared memory",
    .space = true,
    .programs = {{"carousel-lab-pool", "cpu", 60}},
    .plot = {"twenty processes are killed with a block: who got one",
             "",
             "processes",
             {{"naive: a bitmap", "naive.served"}, {"pool of a space", "held.served"}}},
    .claims = {
        {"a block that changes hands",
         "Pass the pointer.",
         "cpu",
         true,
         {{{equal("given.whole", 1)},
           "The block came whole, its giver dead: what travels is an offset, and the block belongs to the "
           "queue until it is received."}}},
        {"a bitmap in shared memory",
         "Set the bit to take, clear it to give back.",
         "cpu",
         true,
         {{{equal("naive.served", 16), equal("naive.left", 0)},
           "{naive.served} got one, then nobody: the dead keep their bits, {naive.left} of 16 blocks are "
           "left.",
           1},
          {{above("naive.served", 19)}, "All twenty got one: somebody gives the bits of the dead back.", 0}}},
        {"a pool of a space",
         "",
         "cpu",
         true,
         {{{equal("held.served", 20), equal("held.free", 16)},
           "All {held.kills} got one, and {held.free} of 16 blocks are free: each came back behind its "
           "owner's fence, {held.longest_us} us at most."}}},
    }};

}  // namespace carousel::lab
