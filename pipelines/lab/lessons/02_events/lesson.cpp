// Lesson 2: claims about events between processes.
#include "lab/lesson.hpp"

namespace carousel::lab {

const lesson events_lesson{
    .number = 2,
    .name = "events",
    .title = "events between processes: a flag that is set too early, and a recorder that dies",
    .question = "A process is killed before it signals. What does the process that waits for the signal see?",
    .answers = {"An error", "Nothing, forever", "The signal: the kernel cleans up"},
    .decided_by = "a signal whose sender is dead",
    .programs = {{"carousel-lab-events", "cpu"}, {"carousel-lab-events-cuda", "gpu", 60}},
    .plot = {"from the kill of the producer until the waiter continues",
             "",
             "us",
             {{"a word written by a third process", "word.us"},
              {"CUDA: a word that a stream waits for", "cuda.word.us"}}},
    .claims = {
        {"ready is set before the work",
         "Set ready = 1 and record the event; the consumer waits for ready.",
         "cpu",
         false,
         {{{above("early.wrong", 0)},
           "{early.wrong} of {early.tries} frames were read before they were complete, because the flag "
           "means that the producer has started, not that it has finished."},
          {{equal("early.wrong", 0)},
           "All {early.tries} frames were right, by luck, because here the reader was never scheduled "
           "between the flag and the work. Nothing guarantees that."}}},
        {"ready is set after the work",
         "",
         "cpu",
         false,
         {{{equal("late.wrong", 0)},
           "None of {late.tries} frames was wrong, because the producer sets the flag by a release after its "
           "work, and the consumer reads it by an acquire before the data."}}},
        {"the textbook's flag; its producer is killed after setting it",
         "",
         "cpu",
         true,
         {{{equal("textbook.ready", 1), equal("textbook.whole", 0)},
           "ready is 1, the data is missing, and no error will ever be reported."}}},
        {"a signal whose sender is dead",
         "Wait for the semaphore (or the event).",
         "cpu",
         true,
         {{{equal("hang.released", 0)},
           "No signal arrived within this lesson's timeout of one second; the wait in the textbooks has no "
           "timeout. A semaphore or an event does not notice the death of a process.",
           1},
          {{equal("hang.released", 1)}, "The wait ended although no process had posted.", 2}}},
        {"a word that a third process may write",
         "",
         "cpu",
         true,
         {{{equal("word.saved", 1), below("word.us", 1e6)},
           "A pidfd reported the death, one compare-and-swap changed the word from SUBMITTED to ABORTED, and "
           "the waiter continued {word.us} us after the kill. Carousel's job words work like this."}}},
        {"CUDA: an event that was never recorded",
         "The consumer's stream waits for the event.",
         "gpu",
         false,
         {{{equal("cuda.unrecorded.code", 0), equal("cuda.early.whole", 0)},
           "It reads as complete (cudaSuccess), and the stream that waited for it read data that was not "
           "written yet, because the textbook's producer sets ready before it records the event."},
          {{above("cuda.unrecorded.code", 0)},
           "Here the event is reported as not complete (error {cuda.unrecorded.code})."}}},
        {"CUDA: an event that is recorded before the wait",
         "",
         "gpu",
         false,
         {{{equal("cuda.late.whole", 1)}, "The stream waits correctly, and the data is complete."}}},
        {"CUDA: the recorder is killed during its work",
         "The event fires when the work is done.",
         "gpu",
         true,
         {{{equal("cuda.dead.code", 600)},
           "A second after the death the event still reads cudaErrorNotReady, and always will, because no "
           "process can complete it."},
          {{equal("cuda.dead.code", 0)},
           "The event reads cudaSuccess although its work was aborted, as can happen under MPS. Only a word "
           "written by the producer is authoritative."},
          {{above("cuda.dead.code", 600)},
           "The process that queried it got error {cuda.dead.code}, because under MPS it shares the fault of "
           "the dead process."}}},
        {"CUDA: the textbook's flag and event; the producer is killed after setting the flag",
         "ready = 1; kernel; cudaEventRecord. The consumer waits for ready, then for the event.",
         "gpu",
         true,
         {{{equal("cuda.textbook.code", 0), equal("cuda.textbook.whole", 0)},
           "ready was 1, but the frame was never written. The wait for the event and the following copy "
           "still returned cudaSuccess, because an event that was never recorded counts as complete."},
          {{above("cuda.textbook.code", 0), equal("cuda.textbook.whole", 0)},
           "ready was 1, but the frame was never written, and the consumer got error {cuda.textbook.code}, "
           "which does not identify the process at fault."}}},
        {"CUDA: a stream that waits for the event of a dead process",
         "",
         "gpu",
         true,
         {{{equal("cuda.hang.released", 0)},
           "The stream hung for {cuda.hang.s} s until this lesson killed its process; it would hang forever, "
           "as would every device-wide synchronisation of that process."},
          {{equal("cuda.hang.released", 1)},
           "The stream continued after the death, because this driver completes such an event."}}},
        {"CUDA: a stream that waits for a word",
         "",
         "gpu",
         true,
         {{{equal("cuda.word.saved", 1)},
           "Another process wrote the word for the dead process, and the stream continued {cuda.word.us} us "
           "later."}}},
    }};

}  // namespace carousel::lab
