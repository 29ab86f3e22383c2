// Lesson 3: claims about the order in which programs start.
#include "lab/lesson.hpp"

namespace carousel::lab {

const lesson order_lesson{
    .number = 3,
    .name = "order",
    .title = "open before allocate: the process that must wait",
    .question =
        "A program opens shared memory whose creator has only called shm_open(), and reads its first word. "
        "What happens?",
    .answers = {"It reads 0", "shm_open() fails", "SIGBUS"},
    .decided_by = "the creator is killed after shm_open()",
    .space = true,
    .programs = {{"carousel-lab-order", "cpu"}, {"carousel-lab-order-cuda", "gpu", 90}},
    .plot = {"from the start of the first program until the second has the value",
             "",
             "ms",
             {{"consumer first, 200 ms apart", "consumer_first.ms"},
              {"producer first, 200 ms apart", "producer_first.ms"},
              {"producer killed after the transfer", "producer_killed.ms"}}},
    .claims = {
        {"the consumer starts first",
         "Start the producer before the consumer.",
         "shm",
         false,
         {{{equal("first.code", 2)},
           "shm_open() returns ENOENT, and the program ends. With programs started from a script, this "
           "happens sooner or later."}}},
        {"no process holds the space",
         "",
         "cpu",
         false,
         {{{equal("no_holder.names_it", 1), below("no_holder.ms", 5000)},
           "The wait timed out after {no_holder.ms} ms, and the error message names the program to start. A "
           "wait without a timeout would report nothing."}}},
        {"either order, with a space",
         "",
         "cpu",
         false,
         {{{equal("consumer_first.got", 1), equal("producer_first.got", 1)},
           "Both orders work: {consumer_first.ms} ms if the consumer starts first, {producer_first.ms} ms if "
           "the producer does, including the pause of 200 ms between the two. The space is created before "
           "either and outlives both."}}},
        {"the creator is killed after shm_open()",
         "shm_open, ftruncate, mmap.",
         "shm",
         true,
         {{{equal("unsized.signal", 7)},
           "The reader got SIGBUS, because the name exists but the memory has size 0. The writer's death "
           "kills the reader.",
           2},
          {{below("unsized.signal", 0)}, "The reader got an error, not a signal.", 1},
          {{equal("unsized.signal", 0)},
           "The reader read a value, because memory of length 0 can be read here.",
           0}}},
        {"the creator is killed after ftruncate()",
         "",
         "shm",
         true,
         {{{equal("unset.code", 5)},
           "The reader takes 0 for the value. Nothing indicates that the value was never written."}}},
        {"the producer is killed after the transfer",
         "",
         "cpu",
         true,
         {{{equal("producer_killed.got", 1)},
           "The pushed element reached the consumer {producer_killed.ms} ms after the start, because a "
           "queue's cell is either published or not, whichever process dies."}}},
        {"CUDA: two programs that were started separately",
         "One launcher must start both programs.",
         "gpu",
         false,
         {{{equal("cuda.consumer_first.code", 0), equal("cuda.producer_first.code", 0)},
           "Neither program is the other's parent; they share only a file's path. Consumer first: "
           "{cuda.consumer_first.ms} ms; producer first: {cuda.producer_first.ms} ms, including the pause of "
           "300 ms between the two. The rest is the initialisation of CUDA in two processes."}}},
        {"CUDA: the producer has ended when the consumer starts",
         "Write the handle and exit.",
         "gpu",
         true,
         {{{equal("cuda.ended.code", 5)},
           "The file is complete, but its handle is refused, because the exporter must run until the last "
           "importer has opened the handle."},
          {{equal("cuda.ended.code", 0)},
           "The handle could still be opened, because another process holds that memory."},
          {{equal("cuda.ended.code", 6)},
           "The handle could be opened, but it mapped memory of another allocation."}}},
    }};

}  // namespace carousel::lab
