// Lesson 2: claims about events between processes.
#include "lab/lessons/list.hpp"

namespace carousel::lab {

const lesson events_lesson{
    .number = 2,
    .name = "events",
    .title = "an event across processes: ready too early, and a recorder that dies",
    .question = "A process is killed before it signals. What does the one see that waits for its signal?",
    .answers = {"An error", "Nothing, for ever", "The signal: the kernel cleans up"},
    .decided_by = "a signal whose sender is dead",
    .programs = {{"carousel-lab-events", "cpu"}, {"carousel-lab-events-cuda", "gpu", 60}},
    .plot = {"from the kill of the producer to the waiter's going on",
             "",
             "us",
             {{"a word, written by a third", "word.us"}, {"CUDA: a stream's word", "cuda.word.us"}}},
    .claims = {
        {"ready is set, then the work begins",
         "Set ready = 1 and record the event; the consumer waits for ready.",
         "cpu",
         false,
         {{{above("early.wrong", 0)},
           "Of {early.tries} frames {early.wrong} were read before they were there: the flag says that "
           "somebody "
           "began, not that something is done."},
          {{equal("early.wrong", 0)},
           "All {early.tries} frames were right, by luck: the reader never got the processor between flag "
           "and work "
           "here. Nothing promises that."}}},
        {"the work, then ready",
         "",
         "cpu",
         false,
         {{{equal("late.wrong", 0)},
           "Of {late.tries} frames none was wrong: release behind the work, acquire before the reading."}}},
        {"the textbook's flag, its producer killed behind it",
         "",
         "cpu",
         true,
         {{{equal("textbook.ready", 1), equal("textbook.whole", 0)},
           "ready says 1, the data is not there, and nothing will ever say so."}}},
        {"a signal whose sender is dead",
         "Wait for the semaphore (or the event).",
         "cpu",
         true,
         {{{equal("hang.released", 0)},
           "Nothing came within the second that this lesson gave it; the texts' wait has no bound. A "
           "semaphore or "
           "an event knows nothing of processes.",
           1},
          {{equal("hang.released", 1)}, "The wait ended although nobody had posted.", 2}}},
        {"a word that a third one may write",
         "",
         "cpu",
         true,
         {{{equal("word.saved", 1), below("word.us", 1e6)},
           "The death was seen by a pidfd, the word changed from SUBMITTED to ABORTED by one "
           "compare-and-swap, and "
           "the waiter went on {word.us} us behind the kill. That is what Carousel's job words are."}}},
        {"CUDA: an event that nobody has recorded",
         "The consumer's stream waits for the event.",
         "gpu",
         false,
         {{{equal("cuda.unrecorded.code", 0), equal("cuda.early.whole", 0)},
           "It reads as complete (cudaSuccess), and the stream that waited for it read what wasn't there "
           "yet: the "
           "textbook's ready was set before the record."},
          {{above("cuda.unrecorded.code", 0)},
           "It reads as not complete here (error {cuda.unrecorded.code})."}}},
        {"CUDA: an event that was recorded first",
         "",
         "gpu",
         false,
         {{{equal("cuda.late.whole", 1)}, "Then the stream waits as it should, and the data is whole."}}},
        {"CUDA: the recorder is killed in mid-work",
         "The event fires when the work is done.",
         "gpu",
         true,
         {{{equal("cuda.dead.code", 600)},
           "A second behind the death it still reads cudaErrorNotReady, and so it will: nobody can complete "
           "it."},
          {{equal("cuda.dead.code", 0)},
           "It reads cudaSuccess although its work was aborted: under MPS it may. A word must decide."},
          {{above("cuda.dead.code", 600)},
           "The one that asked got error {cuda.dead.code}: under MPS it shares the fault of the dead one."}}},
        {"CUDA: the textbook's ready and event, its producer killed behind ready",
         "ready = 1; kernel; cudaEventRecord. The consumer waits for ready, then for the event.",
         "gpu",
         true,
         {{{equal("cuda.textbook.code", 0), equal("cuda.textbook.whole", 0)},
           "ready said 1, the wait for the event and the copy behind it returned cudaSuccess, and the frame "
           "was "
           "never made: the event was never recorded, and such a one is complete."},
          {{above("cuda.textbook.code", 0), equal("cuda.textbook.whole", 0)},
           "ready said 1, the frame was never made, and the consumer got error {cuda.textbook.code}, which "
           "doesn't "
           "say whose fault it is."}}},
        {"CUDA: a stream that waits for the dead one's event",
         "",
         "gpu",
         true,
         {{{equal("cuda.hang.released", 0)},
           "It hung, {cuda.hang.s} s until this lesson killed it; it would hang for ever, and every "
           "device-wide "
           "synchronisation of its process with it."},
          {{equal("cuda.hang.released", 1)},
           "It went on behind the death: this driver completes such an event."}}},
        {"CUDA: a stream that waits for a word",
         "",
         "gpu",
         true,
         {{{equal("cuda.word.saved", 1)},
           "Another process wrote the word in the dead one's place, and the stream went on {cuda.word.us} us "
           "later."}}},
    }};

}  // namespace carousel::lab
