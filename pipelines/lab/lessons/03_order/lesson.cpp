// Lesson 3: claims about the order in which programs start.
#include "lab/lessons/list.hpp"

namespace carousel::lab {

const lesson order_lesson{
    .number = 3,
    .name = "order",
    .title = "open before allocate: who waits for whom",
    .question =
        "A program opens shared memory whose maker is just behind shm_open(), and reads its first word. What "
        "happens?",
    .answers = {"It reads 0", "shm_open() fails", "SIGBUS"},
    .decided_by = "the maker is killed behind shm_open()",
    .space = true,
    .programs = {{"carousel-lab-order", "cpu"}, {"carousel-lab-order-cuda", "gpu", 90}},
    .plot = {"from the start of the first program to the value at the second",
             "",
             "ms",
             {{"consumer first, 200 ms apart", "consumer_first.ms"},
              {"producer first, 200 ms apart", "producer_first.ms"},
              {"producer killed when it has given", "producer_killed.ms"}}},
    .claims = {
        {"the consumer comes first",
         "Start the producer before the consumer.",
         "shm",
         false,
         {{{equal("first.code", 2)},
           "shm_open() says ENOENT, and the program ends. Whoever starts programs from a script has this "
           "once a "
           "week."}}},
        {"nobody holds the space",
         "",
         "cpu",
         false,
         {{{equal("nobody.names_it", 1), below("nobody.ms", 5000)},
           "Behind {nobody.ms} ms, its bound, the sentence says what to start. A wait without a bound would "
           "say "
           "nothing."}}},
        {"either first, by a space",
         "",
         "cpu",
         false,
         {{{equal("consumer_first.got", 1), equal("producer_first.got", 1)},
           "Both orders work: {consumer_first.ms} and {producer_first.ms} ms, of which 200 are the pause "
           "between the "
           "two. The space is made before either and outlives both."}}},
        {"the maker is killed behind shm_open()",
         "shm_open, ftruncate, mmap.",
         "shm",
         true,
         {{{equal("unsized.signal", 7)},
           "SIGBUS: the name is there and has no bytes. The reader dies of the writer's death.",
           2},
          {{below("unsized.signal", 0)}, "The reader came back with an error and not with a signal.", 1},
          {{equal("unsized.signal", 0)}, "It read a value: memory of length 0 can be read here.", 0}}},
        {"the maker is killed behind ftruncate()",
         "",
         "shm",
         true,
         {{{equal("unset.code", 5)},
           "The reader takes 0 for the value. Nothing says that it was never written."}}},
        {"the producer is killed when it has given",
         "",
         "cpu",
         true,
         {{{equal("producer_killed.got", 1)},
           "What it had pushed arrived at the consumer, {producer_killed.ms} ms behind the beginning: a "
           "queue's cell "
           "is published or it is not, whatever dies."}}},
        {"CUDA: two programs that were started apart",
         "Both must come from one launcher.",
         "gpu",
         false,
         {{{equal("cuda.consumer_first.code", 0), equal("cuda.producer_first.code", 0)},
           "Neither is the other's parent, and they share a file's path: the consumer first, "
           "{cuda.consumer_first.ms} "
           "ms; the producer first, {cuda.producer_first.ms} ms, of which 300 are the pause between the two. "
           "The "
           "rest is two starts of CUDA."}}},
        {"CUDA: the producer has ended when the consumer comes",
         "Write the handle, and go.",
         "gpu",
         true,
         {{{equal("cuda.ended.code", 5)},
           "The file is whole, and its handle is refused: the exporter must live until the last importer has "
           "opened it."},
          {{equal("cuda.ended.code", 0)}, "The handle still opened: something else holds that memory."},
          {{equal("cuda.ended.code", 6)}, "It opened, and what it named was somebody else's memory."}}},
    }};

}  // namespace carousel::lab
